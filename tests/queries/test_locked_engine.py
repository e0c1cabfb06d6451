"""An engine's cursors, which are kept only for the next query of the same snapshot."""

import threading
from contextlib import closing
from dataclasses import replace
from datetime import date
from pathlib import Path

import duckdb
import pytest

import queries.locked_engine
from queries import ENTRIES, FilesGone, QueryFailed, QueryTimeout, Scope, Warehouse
from queries.locked_engine import MAX_IDLE_CURSORS
from queries.snapshot import parsed, set_variables
from tests.support.visits import land, visit

DAYS = (date(2026, 3, 2), date(2026, 3, 8))
ACME, BEE = Scope("acme", *DAYS), Scope("bee", *DAYS)
OVERVIEW = ENTRIES["traffic-overview"]
FOR_EVER = "SELECT count(*) FROM range(10000000) AS a(x), range(10000000) AS b(y) WHERE (x + y) % 7 = x"


@pytest.fixture(scope="module")
def lake(shared_lake):
    """A lake with two visits of one organization and one visit of another."""
    land(shared_lake, "acme", [visit(visitor=1), visit(visitor=2)])
    land(shared_lake, "bee", [visit()])
    return shared_lake


@pytest.fixture
def times_set(warehouse, monkeypatch):
    """The organizations for which variables were set, one entry for each time."""
    found = []

    def noted(cursor, snapshot):
        found.append(snapshot.scope.organization)
        set_variables(cursor, snapshot)

    monkeypatch.setattr(queries.locked_engine, "set_variables", noted)
    return found


def total(warehouse, snapshot):
    return warehouse.answer(OVERVIEW, snapshot)["total_visits"]


def test_a_background_engine_uses_one_core_and_caches_no_footers(lake):
    kept, threads = [], []
    for in_background in (False, True):
        with closing(Warehouse(lake, in_background=in_background)) as warehouse:
            snapshot = warehouse.snapshot(ACME)
            assert total(warehouse, snapshot) == 2
            with warehouse._engine.cursor(snapshot) as cursor:
                size = cursor.execute("SELECT memory_usage_bytes FROM duckdb_memory() WHERE tag = 'OBJECT_CACHE'")
                kept.append(size.fetchall()[0][0])
                threads += cursor.execute("SELECT current_setting('threads')").fetchall()
    assert kept[0] > 10 * kept[1]
    assert threads[1] == (1,)


def test_memory_is_still_freed_after_another_engine_ends(lake):
    def threads():
        return len([*Path("/proc/self/task").iterdir()])

    with closing(Warehouse(lake)) as warehouse:
        total(warehouse, warehouse.snapshot(ACME))
        with_it = threads()
        duckdb.connect().close()
        assert threads() == with_it - 1
        total(warehouse, warehouse.snapshot(BEE))
        assert threads() == with_it


def test_a_dashboard_sets_its_variables_twice(warehouse, times_set):
    """Once to read its visits, and once for all answers."""
    warehouse.answer(ENTRIES["dashboard"], warehouse.snapshot(ACME))
    warehouse.tables(ENTRIES["dashboard"], warehouse.snapshot(BEE))
    assert times_set == ["acme", "acme", "bee", "bee"]


def test_no_snapshot_is_answered_with_variables_from_another(warehouse, times_set):
    acme, bee = warehouse.snapshot(ACME), warehouse.snapshot(BEE)
    assert [total(warehouse, one) for one in (acme, bee) * 3] == [2, 1] * 3
    assert times_set == ["acme", "bee"]
    assert total(warehouse, replace(acme)) == 2  # an equal snapshot, but another object
    assert times_set == ["acme", "bee", "acme"]


def test_sql_is_parsed_once_for_cursors_with_different_variables(warehouse):
    text = "SELECT getvariable('scope').organization"
    statements, rows = [], []
    for scope in (ACME, BEE):
        with warehouse._engine.cursor(warehouse.snapshot(scope)) as cursor:
            statements.append(parsed(cursor, text))
            rows += cursor.execute(statements[-1]).fetchall()
    assert statements[0] is statements[1]
    assert rows == [("acme",), ("bee",)]


def test_concurrent_queries_have_separate_cursors(warehouse):
    acme = warehouse.snapshot(ACME)
    with warehouse._engine.cursor(acme, is_kept=True) as one, warehouse._engine.cursor(acme, is_kept=True) as other:
        assert one is not other
    assert len(warehouse._engine._idle) == 2
    snapshots = [warehouse.snapshot(ACME) for _ in range(MAX_IDLE_CURSORS + 2)]
    for snapshot in snapshots:
        total(warehouse, snapshot)
    kept = [idle.snapshot for idle in warehouse._engine._idle]
    assert [*map(id, kept)] == [*map(id, snapshots[2:])]
    warehouse.close()
    assert warehouse._engine._idle == []


def test_a_timed_out_query_leaves_no_cursor(lake):
    with closing(Warehouse(lake, seconds=0.3)) as warehouse:
        acme = warehouse.snapshot(ACME)
        for _ in range(2):
            with pytest.raises(QueryTimeout), warehouse._engine.cursor(acme, is_kept=True) as cursor:
                cursor.execute(FOR_EVER)
            assert warehouse._engine._idle == []
            assert total(warehouse, acme) == 2


def test_a_cancelled_query_or_replaced_engine_keeps_no_cursor(warehouse):
    acme, cancelled = warehouse.snapshot(ACME), threading.Event()
    assert total(warehouse, acme) == 2
    threading.Timer(0.1, lambda: warehouse.stop(cancelled)).start()
    with pytest.raises(QueryFailed), warehouse._engine.cursor(acme, cancelled, is_kept=True) as cursor:
        cursor.execute(FOR_EVER)
    with pytest.raises(QueryFailed, match="cancelled"):
        warehouse.answer(OVERVIEW, acme, cancelled)
    assert warehouse._engine._idle == []
    assert total(warehouse, acme) == 2
    warehouse._engine._replace(warehouse._engine._duckdb)
    assert warehouse._engine._idle == []
    assert total(warehouse, acme) == 2


def test_missing_files_leave_no_cursor(lake, warehouse):
    land(lake, "gone", [visit()])
    gone = warehouse.snapshot(Scope("gone", *DAYS))
    Path(lake.visit_files("gone", *DAYS)[-1]).unlink()
    with pytest.raises(FilesGone):
        total(warehouse, gone)
    assert warehouse._engine._idle == []
