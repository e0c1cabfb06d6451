"""Defines the relations in an engine: by running the prelude the first time, and by copying the definitions later.

DuckDB binds each of a hundred views when the view is created: that would cost every command and every server 0.35 s of
processor time. Copying the views takes 0.02 s. They are copied from a file in the lake.
"""

import hashlib
from contextlib import suppress
from pathlib import Path
from typing import Final
from uuid import uuid4

import duckdb

from data.store.layout import LINK_CHANGES, LINKS, LakeFolders
from data.store.rollups import Schema, write_seed
from data.visits import VISITS
from queries.prelude import prelude, sql_text
from queries.snapshot import empty_snapshot, set_variables

_ATTACH: Final = "ATTACH $file AS defined (BLOCK_SIZE 16384)"
_ATTACH_READ_ONLY: Final = "ATTACH $file AS defined (READ_ONLY)"


def define_relations(engine: duckdb.DuckDBPyConnection, lake: LakeFolders) -> None:
    """Define the relations, without any visits, in an empty engine. Write the lake's empty seed rollup if it is missing
    or damaged, or has other columns.

    The definitions are copied from a file in the lake. If that file is missing, damaged or from another version, the
    prelude is run, and the file is written if possible. Raises BadInput if the seed cannot be written.
    """
    write_seed(lake, rollup_schema(engine))
    set_variables(engine, empty_snapshot(lake))
    file = relations_file(lake)
    if not _copy_relations(engine, file):
        for text in prelude():
            engine.execute(text)
        _keep(engine, file, lake)


def rollup_schema(engine: duckdb.DuckDBPyConnection) -> Schema:
    """Return the Arrow schema of a rollup file."""
    return engine.sql(sql_text("rollups")).to_arrow_table().schema


def relations_file(lake: LakeFolders) -> Path:
    """Return the path of this program's database of relations; its name is a hash of everything that defines them."""
    defined_by = str((duckdb.__version__, prelude(), VISITS, LINKS, LINK_CHANGES))
    return lake.root / "relations" / f"{hashlib.sha256(defined_by.encode()).hexdigest()[:16]}.duckdb"


def _copy_relations(engine: duckdb.DuckDBPyConnection, file: Path) -> bool:
    """Copy the relations from a file and return whether that succeeded; if not, the engine is unchanged."""
    try:
        engine.execute(_ATTACH_READ_ONLY, {"file": str(file)})
        try:
            engine.execute("COPY FROM DATABASE defined TO memory")
            return True
        finally:
            engine.execute("DETACH defined")
    except duckdb.InterruptException:
        raise
    except duckdb.Error:
        return False


def _keep(engine: duckdb.DuckDBPyConnection, file: Path, lake: LakeFolders) -> None:
    """Write the file for the next engine, and delete the files of other versions, if the lake is writable."""
    if lake.seeds != lake.root:
        return
    staged = lake.staging / f"relations-{uuid4()}.duckdb"
    with suppress(duckdb.Error, OSError):  # such as on a full disk: the next engine tries again
        engine.execute(_ATTACH, {"file": str(staged)})
        try:
            engine.execute("COPY FROM DATABASE memory TO defined")
        finally:
            engine.execute("DETACH defined")
        file.parent.mkdir(exist_ok=True)
        staged.replace(file)
        for other in file.parent.iterdir():
            if other != file:
                other.unlink()
    staged.unlink(missing_ok=True)
