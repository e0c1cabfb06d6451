"""The relations, bound once for all lakes of the tests: binding takes most of an engine's start-up time."""

import shutil
from contextlib import closing
from pathlib import Path

import duckdb

from data.store.layout import LakeFolders
from queries.definitions import define_relations, relations_file
from tests.support.lakes import opened


def bind_relations(folder: Path) -> Path:
    """Bind the relations in a new folder; return their file."""
    with opened(folder / "lake", create=True) as lake, closing(duckdb.connect()) as engine:
        define_relations(engine, lake)
        return relations_file(lake)


def give_relations(lake: LakeFolders, file: Path) -> None:
    """Copy a relations file to where a lake's engines look for it; its name identifies the relations."""
    folder = relations_file(lake).parent
    folder.mkdir()
    shutil.copy(file, folder)
