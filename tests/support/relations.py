"""The relations, bound once in a process: to bind them is most of the time that an engine takes to start."""

import hashlib
import os
import threading
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb
import pyarrow as pa

import queries.locked_engine
import queries.own_sql
import queries.rollups
import queries.variables
from data import Lake
from data.store.rollups import write_seed

if TYPE_CHECKING:
    import pytest

define_relations = queries.variables.define_relations


class DefinedOnce:
    """Stands for define_relations(): the first engine runs the prelude, the others copy what that one defined.

    A prelude with another text is run again, and so is one for other variables, whose types are those of columns.
    Other processes that are given the same folder copy from it, too.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = threading.Lock()

    def __call__(self, engine: duckdb.DuckDBPyConnection, lake: Lake) -> None:
        types = engine.execute("SELECT name, type FROM duckdb_variables() ORDER BY name").fetchall()
        defined_by = str((queries.variables.prelude(), types))
        file = self._folder / f"{hashlib.sha256(defined_by.encode()).hexdigest()}.duckdb"
        with self._lock:
            if not file.exists():
                define_relations(engine, lake)
                own = file.with_suffix(f".{os.getpid()}")
                own.unlink(missing_ok=True)
                with suppress(duckdb.Error):  # not enough memory: the next engine tries
                    _copy(engine, f"ATTACH '{own}' AS defined", "memory", "defined")
                    schema = queries.variables.rollup_schema(engine).serialize()
                    file.with_suffix(".schema").write_bytes(schema.to_pybytes())
                    own.replace(file)
                return
            write_seed(lake, pa.ipc.read_schema(pa.py_buffer(file.with_suffix(".schema").read_bytes())))
            queries.variables.set_variables(engine, queries.variables.empty_variables(lake))
            _copy(engine, f"ATTACH '{file}' AS defined (READ_ONLY)", "defined", "memory")


def _copy(engine: duckdb.DuckDBPyConnection, attach: str, source: str, target: str) -> None:
    engine.execute(f"{attach}; COPY FROM DATABASE {source} TO {target}; DETACH defined")


OF_OWN_SQL = """
from pathlib import Path
import queries.locked_engine
from tests.support.relations import DefinedOnce
queries.locked_engine.define_relations = DefinedOnce(Path({folder!r}))
"""


def define_once(patch: "pytest.MonkeyPatch", folder: Path) -> None:
    """Let all engines of this process share what the first one defines; the folder is for a file of it.

    The processes in which own SQL runs share it, too.
    """
    once = DefinedOnce(folder)
    for module in (queries.locked_engine, queries.rollups):
        patch.setattr(module, "define_relations", once)
    patch.setattr(queries.own_sql, "_PROGRAM", OF_OWN_SQL.format(folder=str(folder)) + queries.own_sql._PROGRAM)
