"""One file of relations for all lakes of the tests: to bind them is most of the time that an engine takes to start."""

import functools
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb

import queries.definitions
import queries.own_sql

if TYPE_CHECKING:
    import pytest

    from data.store.rollups import Schema

of_a_lake = queries.definitions.relations_file
read_schema = queries.definitions.rollup_schema

OF_OWN_SQL = """
from pathlib import Path
import queries.definitions
of_a_lake = queries.definitions.relations_file
queries.definitions.relations_file = lambda lake: Path({folder!r}) / of_a_lake(lake).name
"""


@functools.cache
def _schema_of_rollups() -> "Schema":
    """To ask for it is a tenth of the start of an engine."""
    with duckdb.connect() as engine:
        return read_schema(engine)


def share_file(patch: "pytest.MonkeyPatch", folder: Path) -> None:
    """Let all engines of this process, and of its processes for own SQL, copy the relations from a file in a folder.

    Engines of this process share the schema of rollups as well.
    """
    patch.setattr(queries.definitions, "relations_file", lambda lake: folder / of_a_lake(lake).name)
    patch.setattr(queries.definitions, "rollup_schema", lambda _: _schema_of_rollups())
    patch.setattr(queries.own_sql, "_PROGRAM", OF_OWN_SQL.format(folder=str(folder)) + queries.own_sql._PROGRAM)
