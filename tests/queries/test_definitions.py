"""Relations are defined once for a lake; engines that copy the definitions have the same relations."""

import re
import threading
from contextlib import closing

import duckdb
import pytest

from queries import RollupBuilder, definitions
from queries.definitions import define_relations, relations_file
from queries.traffic_values import TrafficValue
from tests.support.lakes import opened
from tests.support.visits import land, visit

CATALOG = [
    "SELECT view_name, sql, column_count, comment FROM duckdb_views() WHERE NOT internal",
    "SELECT function_name, function_type, parameters, macro_definition FROM duckdb_functions() WHERE NOT internal",
    "SELECT type_name, logical_type, type_size FROM duckdb_types() WHERE NOT internal",
    "SELECT table_name, sql, estimated_size FROM duckdb_tables()",
    "SELECT table_name, column_index, column_name, data_type FROM duckdb_columns() WHERE NOT internal",
    "FROM countries",
    "FROM referrer_sources",
    "SELECT database_name, type FROM duckdb_databases()",
]


@pytest.fixture
def lake(tmp_path):
    """A lake in which no relations are defined yet."""
    with opened(tmp_path / "lake", create=True) as lake:
        yield lake


@pytest.fixture
def file(lake):
    """The file with the lake's relations."""
    return relations_file(lake)


def defined(lake):
    """Return the definitions of a new engine as sorted words: DuckDB writes the columns after EXCLUDE in any order."""
    with closing(duckdb.connect()) as engine:
        define_relations(engine, lake)
        found = [engine.execute(question).fetchall() for question in CATALOG]
    assert all(found)
    return [sorted(sorted(re.findall(r"[\w']+|\S", repr(row))) for row in rows) for rows in found]


def test_copied_relations_equal_those_from_the_prelude(lake, file):
    whole = defined(lake)
    written = file.stat().st_ino
    assert defined(lake) == whole
    assert file.stat().st_ino == written
    assert {one.name for one in lake.staging.iterdir()} == set()


def test_building_rollups_defines_columns_of_traffic_values(lake, file):
    land(lake, "acme", [visit()])
    RollupBuilder(lake).run()
    with closing(duckdb.connect(file, read_only=True)) as bound:
        columns = "SELECT column_name FROM duckdb_columns() WHERE table_name = 'traffic_values' ORDER BY column_index"
        assert [name for (name,) in bound.execute(columns).fetchall()] == [*TrafficValue._fields]


def test_a_damaged_definitions_file_is_written_again(lake, file):
    whole, body = defined(lake), file.read_bytes()
    flipped = body[:70_000] + bytes(byte ^ 1 for byte in body[70_000:70_100]) + body[70_100:]
    for damage, damaged in {"cut": body[:20_000], "flipped": flipped, "empty": b"", "a folder": None}.items():
        if damaged is None:
            file.unlink()
            file.mkdir()
        else:
            file.write_bytes(damaged)
        assert [defined(lake) for _ in range(2)] == [whole] * 2, damage
        if damaged is not None:
            with closing(duckdb.connect(file, read_only=True)) as good:
                assert good.execute("SELECT count(*) FROM duckdb_views() WHERE NOT internal").fetchone()[0] > 50
        assert {one.name for one in lake.staging.iterdir()} == set(), damage


def test_the_definitions_file_replaces_files_of_other_versions(lake, file):
    file.parent.mkdir()
    (file.parent / "0.duckdb").write_bytes(b"of an older program")
    defined(lake)
    assert [*file.parent.iterdir()] == [file]


def test_an_engine_interrupted_while_copying_defines_nothing(lake, file, monkeypatch):
    forever = "SELECT count(*) FROM range(1_000_000_000_000) WHERE $file <> ''"
    monkeypatch.setattr(definitions, "_ATTACH_READ_ONLY", forever)
    is_over = threading.Event()

    def interrupt(engine):
        while not is_over.wait(0.1):  # an interrupt between two queries does nothing
            engine.interrupt()

    with closing(duckdb.connect()) as engine:
        interrupting = threading.Thread(target=interrupt, args=(engine,))
        interrupting.start()
        with pytest.raises(duckdb.InterruptException):
            define_relations(engine, lake)
        is_over.set()
        interrupting.join()
    assert not file.exists()
