"""Peers give the same answers or are rejected; bars are met or missed."""

import importlib.util
from dataclasses import replace
from datetime import date

import pytest

from benchmarks.bars import BARS, GOACCESS, MERGE_TREE, QUIET, REFRESHED, VIEWS, bar_of, missed
from benchmarks.figures import OURS, beside, figure, in_turn
from benchmarks.made.drawing import Drawing
from benchmarks.peers import MEMBERS, World, check, statements
from benchmarks.peers.clickhouse import ClickHouse
from benchmarks.peers.raw import Raw
from benchmarks.peers.sqlite import SQLite
from benchmarks.printing import row_of
from data import Lake
from data.manifest.files import insert_files
from data.store.landing import Landing
from queries import Scope, Warehouse
from service.demo.sample import Sample
from tests.support.manifests import database_of

SAMPLE = Sample(3_000, date(2026, 10, 31), days=12, links=40)
WHOLE = Scope("acme", date(2026, 10, 18), SAMPLE.last_day)
SCOPES = (WHOLE, replace(WHOLE, short_code=SAMPLE.codes()[30], end_date=date(2026, 10, 24)))


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    lake = Lake(tmp_path_factory.mktemp("world") / "lake", create=True)
    drawing = Drawing(SAMPLE, "acme", browsers=300)
    landing = Landing(lake, "acme")
    (days,) = drawing.parts()
    landing.stage(drawing.visits(days))
    with database_of(lake.manifest).transaction() as db:
        insert_files(db, landing.prepare_move()())
    drawing.close()
    return World(lake, "small", SAMPLE.visits, "digest")


@pytest.fixture(scope="module")
def warehouse(world):
    warehouse = Warehouse(world.lake)
    yield warehouse
    warehouse.close()


def test_raw_duckdb_and_sqlite_return_the_same_numbers(world, warehouse, tmp_path):
    sqlite = SQLite(tmp_path, world)
    for scope in SCOPES:
        check(Raw(world, WHOLE), "raw", warehouse, scope)
        check(sqlite, "SQLite", warehouse, scope)
    assert SQLite(tmp_path, world).path == sqlite.path  # loaded once


@pytest.mark.skipif(not importlib.util.find_spec("chdb"), reason="the group bench is not installed")
def test_clickhouse_returns_the_same_numbers(world, warehouse, tmp_path):
    clickhouse = ClickHouse(tmp_path / "clickhouse")
    for scope in SCOPES:
        check(clickhouse.table(world), "table", warehouse, scope)
    for way in (VIEWS, REFRESHED):
        check(clickhouse.views(world, way), way, warehouse, WHOLE)
    clickhouse.close()


def test_a_peer_with_different_answers_is_rejected(world, warehouse):
    class Other(Raw):
        def ask(self, member, scope):
            return super().ask(member, replace(scope, end_date=date(2026, 10, 30)))

    with pytest.raises(SystemExit, match="Other answers traffic-overview differently: 1 rows, not 1"):
        check(Other(world, WHOLE), "Other", warehouse, WHOLE)


@pytest.mark.parametrize("file", ["raw.sql", "sqlite.sql", "clickhouse.sql", "clickhouse-views.sql"])
def test_every_peer_has_a_statement_for_every_member(file):
    assert set(MEMBERS) <= set(statements(file))


@pytest.mark.parametrize(("ours", "quiet", "is_missed"), [(50, 1, False), (51, 26, False), (51, 25, True)])
def test_a_bar_with_two_limits_is_met_if_either_limit_is_met(ours, quiet, is_missed):
    figures = beside("another's cached, p99, pages", "ms", {OURS: [float(ours)], QUIET: [float(quiet)]})
    assert bool(missed(figures)) == is_missed


def cold(ratio, visits):
    """Return the figures of a cold dashboard that took this share of a peer's time."""
    return beside("cold dashboard", "ms", {OURS: [ratio] * 3, MERGE_TREE: [1.0] * 3}, visits)


def test_a_bar_applies_from_its_number_of_visits():
    kept, too_slow, small = cold(0.04, 20_000_000), cold(0.06, 20_000_000), cold(0.06, 1_000_000)
    assert missed([*kept, *too_slow, *small]) == [too_slow[1]]


@pytest.mark.parametrize(("visits", "most"), [(1_000_000, 1.5), (20_000_000, 1)])
def test_a_bar_for_larger_lakes_takes_precedence(visits, most):
    assert bar_of(beside("cold dashboard", "ms", {OURS: [1.0], REFRESHED: [1.0]}, visits)[1]).most == most


def test_the_row_of_a_missed_bar_is_marked():
    assert row_of(cold(0.06, 20_000_000)[1])[-3:] == ("0.06", "≤ 0.05", "missed")


def test_a_missed_aim_does_not_fail_a_run():
    slow_start = figure("exec to first 200", "s", [2.0], 20_000_000)
    assert str(bar_of(slow_start)) == "aim ≤ 1"
    assert missed([slow_start]) == []


def test_a_bar_in_megabytes_can_be_missed():
    assert missed([figure("server memory afterwards", "MB", [401.0], 20_000_000)])


def test_a_bar_for_lakes_of_every_size_can_be_missed():
    assert missed(beside("import", "s", {OURS: [1.1], GOACCESS: [2.0]}))


def test_a_case_has_at_most_one_bar_for_each_peer_and_size():
    assert len({(bar.case, bar.who, bar.visits) for bar in BARS}) == len(BARS)


def test_ways_are_measured_alternately_after_a_warm_up_round():
    asked = []
    ways = {name: lambda name=name: asked.append(name) or float(len(asked)) for name in ("a", "b")}
    assert in_turn(ways, 2) == {"a": [3.0, 5.0], "b": [4.0, 6.0]}
