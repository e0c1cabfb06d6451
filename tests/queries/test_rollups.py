"""Rollups: closed days are precomputed without changing any answer; changed days are counted again."""

import shutil
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import fields, replace
from datetime import UTC, date, datetime, timedelta
from functools import partial
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from data import Lake, LakeDamaged
from data.manifest.clock import format_time
from data.manifest.files import READERS_GRACE
from data.signals import BITS
from data.store import lake as lake_module
from data.store.rollups import ROW_GROUP, RelationRows, damaged_rollups, month_of, seed_path, write_rollup
from data.tasks.compaction import Compactor
from data.tasks.erasure import GRACE, Criteria, Eraser, delete_files
from data.tasks.lake_process import LakeProcess
from data.tasks.retention import apply_retention
from queries import ENTRIES, QueryFailed, RollupBuilder, Scope, Warehouse
from queries.prelude import relation_names, rollup_version, served_filters, sql_text
from queries.scope import FILTERS
from queries.shared_visits import MAX_SHARED_VISITS
from queries.snapshot import ROLLUP_FILTERS, Snapshot, one_source, source_of, visit_files
from tests.support.lakes import date_ahead, flip, opened
from tests.support.manifests import database_of
from tests.support.sql import LEAVES, answer, rows
from tests.support.visits import land, visit

DAYS = (date(2026, 1, 31), date(2026, 2, 14))
SCOPES = [
    Scope("acme", *DAYS),
    Scope("acme", date(2026, 2, 2), date(2026, 2, 12)),
    Scope("acme", *DAYS, domain="go.example"),
    Scope("acme", *DAYS, short_code="sale"),
    Scope("acme", *DAYS, traffic_type="ai"),
    Scope("acme", *DAYS, traffic_type="ai_referral", domain="link.example"),
    Scope("bee", *DAYS),
    Scope("acme", *DAYS, country="DE"),
    Scope("acme", *DAYS, device_type="bot", domain="go.example"),
    Scope("acme", *DAYS, agent="curl"),
    Scope("acme", *DAYS, agent="unknown", path="/sale"),
    Scope("acme", *DAYS, ai_source="ChatGPT"),
    Scope("acme", *DAYS, browser="Firefox"),
    Scope("acme", *DAYS, operating_system="Windows"),
    Scope("acme", *DAYS, referrer="(direct)"),
    Scope("acme", *DAYS, utm_source="mail", utm_campaign="unknown"),
    Scope("acme", *DAYS, traffic_group="people"),
    Scope("acme", *DAYS, traffic_group="ai"),
    Scope("acme", *DAYS, traffic_group="bots", domain="go.example"),
    Scope("acme", *DAYS, traffic_group="ai", country="unknown"),
]
MANY = ("traffic-overview", "devices", "top-links", "bot-traffic", "ai-platform-market-share", "ai-to-human-conversion",
        "domain-breakdown", "filter-values")  # fmt: skip
SHORT = Scope("acme", date(2026, 2, 1), date(2026, 2, 28))
DASHBOARD = ENTRIES["dashboard"]


def some(day: date, visitor: int = 1) -> list[dict]:
    """Return one day's visits: the same people on two domains, and agents that return to a few paths.

    The short code `late` is answered only on the tenth of a month, and `never` on no day.
    """
    at = datetime.combine(day, datetime.min.time()) + timedelta(hours=9)
    people = [
        visit(visited_at=at, domain=domain, short_code=code, path=f"/{code}", visitor=number, country="DE")
        for domain, code in (("go.example", "sale"), ("link.example", "sale"), ("go.example", "other"))
        for number in (visitor, 2)
    ]  # fmt: skip
    agents = [
        visit(
            visited_at=at + timedelta(hours=day.day % 5), domain="go.example", short_code="sale", path=path,
            bot_category=category, agent_kind=kind, agent=agent, operator="Acme", ai_source=source, status=404,
            device_type="bot", confidence="high", detection_method="user_agent", visitor=9, utm_source="mail",
        )
        for path in ("/sale", f"/{day.day % 3}.md")
        for category, kind, agent, source in (
            ("ai_assistant", "assistant_fetch", "ChatGPT-User", "ChatGPT"),
            ("ai_coding_agent", "coding_agent", "Claude-User", "Claude Code"),
            ("ai_referral", "referral", None, "ChatGPT"),
            ("other_bot", "library", "curl", None),
        )
    ]  # fmt: skip
    strays = [
        visit(
            visited_at=at, domain="go.example", short_code=code, status=status, bot_category=category,
            ai_source="Claude",
        )
        for code, status in (("late", 302 if day.day == 10 else 404), ("never", 404))
        for category in ("ai_assistant", "human")
    ]  # fmt: skip
    return people + agents + strays


@contextmanager
def counted_in(folder: Path, copy: Path) -> Iterator[tuple[Lake, Warehouse]]:
    """Copy the folder of a lake, and yield the copy and its warehouse."""
    shutil.copytree(folder, copy)
    with opened(copy) as lake, closing(Warehouse(lake)) as warehouse:
        yield lake, warehouse


@pytest.fixture(scope="module")
def landed_folder(tmp_path_factory, new_lake):
    """The folder of a lake with two weeks of one organization's visits, in two months, and three days of another's, all
    long past.
    """
    lake = new_lake(tmp_path_factory.mktemp("landed") / "lake")
    with closing(lake.manifest):
        days = [DAYS[0] + timedelta(number) for number in range((DAYS[1] - DAYS[0]).days + 1)]
        land(lake, "acme", [row for day in days if day.day != 13 for row in some(day)])
        land(lake, "bee", [row for day in days[3:6] for row in some(day, 7)])
    return lake.root


@pytest.fixture(scope="module")
def counted_folder(landed_folder, tmp_path_factory):
    """The folder of a copy of that lake with rollups."""
    folder = tmp_path_factory.mktemp("counted") / "lake"
    shutil.copytree(landed_folder, folder)
    with opened(folder) as lake:
        RollupBuilder(lake).run()
    return folder


@pytest.fixture
def lake(landed_folder, tmp_path):
    """A copy of the lake without rollups."""
    shutil.copytree(landed_folder, tmp_path / "lake")
    with opened(tmp_path / "lake") as lake:
        yield lake


@pytest.fixture
def counted(counted_folder, tmp_path):
    """A copy of the lake with rollups."""
    with counted_in(counted_folder, tmp_path / "counted") as counted:
        yield counted


@pytest.fixture(scope="module")
def read_only(counted_folder, tmp_path_factory):
    """The lake with rollups, for tests that only read."""
    with counted_in(counted_folder, tmp_path_factory.mktemp("read") / "lake") as counted:
        yield counted


@pytest.fixture(scope="module")
def reopened(counted_folder, tmp_path_factory):
    """The warehouse of a lake in which each organization's rollups lack one of its days."""
    with counted_in(counted_folder, tmp_path_factory.mktemp("reopened") / "lake") as (lake, warehouse):
        for organization in ("acme", "bee"):
            land(lake, organization, some(date(2026, 2, 5), visitor=5))
        yield warehouse


@pytest.fixture
def few_relations(monkeypatch):
    """Precompute only these relations for tests about months to count: counting all takes twenty times as long."""
    few = ("daily_categories", "daily_agents", "monthly_agent_pages")
    monkeypatch.setattr("queries.rollups.relation_names", lambda kind="": [name for name in few if kind in name])


FEW = ("traffic-overview", "bot-traffic")
"""Answers that read only these relations."""


def answers(warehouse: Warehouse, names: tuple[str, ...] = MANY, snapshot: Snapshot | None = None) -> dict:
    snapshot = snapshot or warehouse.snapshot(SHORT)
    return {name: warehouse.answer(ENTRIES[name], snapshot) for name in names}


def recounted(warehouse: Warehouse, names: tuple[str, ...] = MANY) -> dict:
    """Return the answers computed from visits alone."""
    snapshot = warehouse.snapshot(SHORT)
    counted = replace(snapshot, uncovered_files=snapshot.files, rollups=snapshot.rollups[:1], closed_days=())
    return answers(warehouse, names, replace(counted, sources=one_source("all_visits")))


def parts_of_dashboard(warehouse: Warehouse, snapshot: Snapshot) -> dict:
    """Return the dashboard's answers, each of which reads its visits separately."""
    return {name: warehouse.answer(part, snapshot) for name, part in DASHBOARD.members}


def closed(warehouse: Warehouse, scope: Scope = SHORT) -> int:
    return len(warehouse.snapshot(scope).closed_days)


def rollups(lake: Lake) -> list[Path]:
    rows = database_of(lake.manifest).rows("SELECT path FROM rollups WHERE deletable_at IS NULL ORDER BY path")
    return [lake.root / path for (path,) in rows]


def rollup_of_february(lake: Lake) -> Path:
    return next(path for path in rollups(lake) if "acme" in str(path) and "2026-02" in str(path))


def all_rows(lake: Lake) -> list[tuple]:
    """Return the rows of all rollups, in order."""
    query = "FROM read_parquet($1, hive_partitioning = FALSE) ORDER BY ALL"
    found = duckdb.execute(query, [[*map(str, rollups(lake))]]).fetchall()
    assert {row[0] for row in found} == set(relation_names()) - {"daily_disguised"}
    return found


@pytest.mark.parametrize("scope", SCOPES, ids=lambda scope: "-".join(scope.filters.values()) or scope.organization)
def test_relations_have_the_same_rows_from_rollups_and_visits(reopened, scope):
    served = reopened.snapshot(scope)
    counted = replace(served, sources=one_source("all_visits"))
    from_rollups = [name for name, source in served.sources.items() if source != "all_visits"]
    assert bool(from_rollups) == (scope.short_code is None)
    for name in from_rollups:
        days = "EXCLUDE (days)" if name.startswith("monthly") else ""  # visits give rows of several months as one row
        sql = f"SELECT DISTINCT * {days} FROM {name} ORDER BY ALL"
        assert rows(reopened, sql, served) == rows(reopened, sql, counted), name


def test_a_relation_reads_only_files_with_rows_for_the_scope(read_only, reopened, warehouse):
    def files_read(warehouse, scope):
        ((_, plan),) = rows(warehouse, "EXPLAIN FROM daily_devices", warehouse.snapshot(scope))
        return plan.count("READ_PARQUET")

    whole, not_served = SCOPES[0], SCOPES[3]
    assert files_read(read_only[1], whole) == files_read(warehouse, whole) == 1  # of rollups, of visits
    assert (files_read(reopened, not_served), files_read(reopened, whole)) == (1, 2)


def test_counted_and_stored_views_have_their_relations_columns(read_only):
    for name in relation_names():
        views = (name, f"{name}_counted", f"{name}_stored")
        whole, *parts = [[*read_only[1].describe(f"FROM {view}").items()] for view in views]
        assert parts == [whole, whole]


# The scopes that rollups may serve


SERVED = {
    "domain": {*relation_names()},
    "traffic_group": {*relation_names()},
    "traffic_type": {"daily_agents", "daily_categories", "daily_hours", "daily_statuses", "monthly_agent_pages"},
    "country": {"daily_countries"},
    "device_type": {"daily_categories", "daily_devices"},
    "browser": {"daily_browsers"},
    "operating_system": {"daily_operating_systems"},
    "referrer": {"daily_referrers"},
    "ai_source": {"daily_assistants", "daily_categories", "daily_link_sources", "monthly_assistant_pages"},
    "agent": {"daily_agents", "monthly_agent_pages"},
    "path": {"monthly_agent_pages", "monthly_assistant_pages"},
    "utm_source": {"daily_campaigns"},
    "utm_campaign": {"daily_campaigns"},
}


def test_relations_read_all_visits_for_undeclared_filters():
    for field in (field.name for field in fields(Scope) if field.default is None):
        served = {name for name in relation_names() if source_of(name, {field}) == "uncovered_visits"}
        assert served == SERVED.get(field, set())
    assert ROLLUP_FILTERS.union(*map(served_filters, relation_names())) <= {*FILTERS}


def test_a_filter_by_a_word_does_not_remove_links(lake, warehouse):
    """A link counts as answered if any of its visits was answered, even a visit that the filter excludes."""
    for scope in (Scope("acme", *DAYS, status="404"), Scope("acme", *DAYS, status="404", short_code="late")):
        codes = {row["short_code"] for row in answer(warehouse, "top-links", scope)}
        assert codes & {"late", "never"} == {"late"}


# The rollups of a lake, and their lifetime


def test_comments_do_not_change_the_rollup_version(monkeypatch):
    version: Callable[[], str] = partial(rollup_version.__wrapped__, behaviour=True, aside=0)
    monkeypatch.setattr("queries.prelude.sql_text", lambda name: f"-- More.\n{sql_text(name)}  -- again")
    assert version() == rollup_version(behaviour=True, aside=0) != rollup_version(behaviour=False, aside=0)
    other = ("status BETWEEN 400 AND 499", "status BETWEEN 400 AND 498")
    monkeypatch.setattr("queries.prelude.sql_text", lambda name: sql_text(name).replace(*other))
    assert version() != rollup_version(behaviour=True, aside=0)


def test_changed_convicting_signals_change_the_rollup_version(monkeypatch):
    before = rollup_version(behaviour=True, aside=0)
    monkeypatch.setattr("queries.prelude._CONVICTING", "CREATE MACRO convicting_signals() AS 239;")
    assert rollup_version.__wrapped__(behaviour=True, aside=0) != before


def test_setting_files_aside_changes_the_rollup_version():
    assert rollup_version(behaviour=True, aside=0) != rollup_version(behaviour=True, aside=BITS["file"])


@pytest.mark.parametrize("found", ["missing", "damaged", "of other columns"])
def test_a_missing_or_damaged_empty_rollup_is_written_again(lake, warehouse, found):
    path = seed_path(lake)
    schema, written = pq.read_schema(path), path.stat().st_mtime_ns
    Warehouse(lake).close()
    assert path.stat().st_mtime_ns == written
    if found == "of other columns":
        pq.write_table(pa.table({"relation": ["daily_devices"]}), path)
    elif found == "damaged":
        path.write_bytes(b"PAR1")
    else:
        path.unlink()
    Warehouse(lake).close()
    assert pq.read_schema(path) == schema
    assert pq.read_metadata(path).num_rows == 0


def test_closed_days_are_answered_without_reading_their_visits(read_only):
    lake, warehouse = read_only
    before, snapshot = answers(warehouse), warehouse.snapshot(SHORT)
    assert snapshot.uncovered_files == visit_files(lake, [])
    assert answers(warehouse, snapshot=replace(snapshot, files=visit_files(lake, []))) == before


def test_rows_of_a_rollup_are_uncompressed_and_sorted(read_only):
    file = pq.ParquetFile(rollup_of_february(read_only[0]))
    assert {file.metadata.row_group(0).column(n).compression for n in range(file.metadata.num_columns)} == {
        "UNCOMPRESSED"
    }
    rows = file.read(["relation", "for_domain", "day", "domain", "short_code", "path", "bot_category", "agent_kind"])
    for relation in relation_names():
        stored = [
            [(value is None, str(value)) for value in row.values()]  # NULL last
            for row in rows.filter(pc.field("relation") == relation).to_pylist()
        ]
        assert stored == sorted(stored)


def test_a_large_relation_is_written_one_row_group_at_a_time(read_only, tmp_path):
    schema, numbers = pq.read_schema(seed_path(read_only[0])), range(5 * ROW_GROUP - 1)
    codes = pa.table({"short_code": [str(number * 7_919 % len(numbers)) for number in numbers]})
    relations = [
        RelationRows("daily_links", [codes.slice(0, 9), codes.slice(9)]),
        RelationRows("daily_tools", [codes[:1]]),
    ]
    before = pa.default_memory_pool()
    pool = pa.proxy_memory_pool(before)
    pa.set_memory_pool(pool)
    try:
        write_rollup(relations, schema, tmp_path / "rollup.parquet")
    finally:
        pa.set_memory_pool(before)
    file = pq.ParquetFile(tmp_path / "rollup.parquet")
    groups = [file.read_row_group(number, ["relation", "short_code"]) for number in range(file.num_row_groups)]
    assert [len(group) for group in groups] == [*[ROW_GROUP] * 4, ROW_GROUP - 1, 1]
    assert [pc.unique(group["relation"]).to_pylist() for group in groups] == [*[["daily_links"]] * 5, ["daily_tools"]]
    assert pa.concat_tables(groups[:5])["short_code"].to_pylist() == sorted(codes["short_code"].to_pylist())
    assert file.schema_arrow.names == schema.names
    whole = pa.table([pa.nulls(len(codes), field.type) for field in schema], schema=schema)
    assert pool.max_memory() < whole.nbytes / 2


def test_open_days_have_no_rollup(lake, warehouse, few_relations):
    assert RollupBuilder(lake, lambda: datetime(2026, 2, 10, 23, 59, tzinfo=UTC)).run() == 3
    assert max(warehouse.snapshot(SHORT).closed_days) == date(2026, 2, 9)
    assert RollupBuilder(lake, quiet_period=timedelta(hours=1)).run() == 0  # everything has landed just now


def test_days_dated_by_a_clock_running_ahead_are_counted_once(lake, few_relations):
    date_ahead(lake)
    assert RollupBuilder(lake, quiet_period=timedelta(hours=1)).run() == 3
    assert RollupBuilder(lake).run() == 0
    date_ahead(lake)
    assert list(damaged_rollups(lake, before=datetime.now(UTC) - timedelta(days=1))) == []
    unchecked = "SELECT count(*) FROM rollups WHERE checked_at > ?"
    assert database_of(lake.manifest).rows(unchecked, [format_time(datetime.now(UTC))]) == [(0,)]


def test_late_visits_reopen_only_their_day_until_the_next_run(counted):
    lake, warehouse = counted
    days, old = closed(warehouse), rollups(lake)
    land(lake, "acme", some(date(2026, 2, 5), visitor=5) + some(date(2026, 2, 13)))
    assert closed(warehouse) == days - 1
    assert answers(warehouse) == recounted(warehouse)
    assert RollupBuilder(lake).run() == 1
    assert closed(warehouse) == days + 1
    assert len(set(rollups(lake)) - set(old)) == 1
    assert answers(warehouse) == recounted(warehouse)


def test_rollups_are_the_same_if_each_relation_reads_visits(lake, read_only, monkeypatch):
    monkeypatch.setattr("queries.rollups.MAX_VISITS_IN_MEMORY", 0)
    monkeypatch.setattr("queries.rollups.CHUNK_VISITS", 5 * len(some(DAYS[0])))
    RollupBuilder(lake).run()
    assert all_rows(lake) == all_rows(read_only[0])


def test_a_month_too_large_for_the_server_gets_its_own_process(lake, read_only, monkeypatch):
    process, day = LakeProcess(lake), len(some(DAYS[0]))
    for most, months, code in ((day, 1, None), (2 * day, 2, 0)):
        monkeypatch.setattr("queries.rollups.MAX_VISITS_IN_SERVER", most)
        assert RollupBuilder(lake, process=process).run(limit=months) == months
        assert (process._running and process._running.returncode) == code
    assert all_rows(lake) == all_rows(read_only[0])


def test_a_compacted_day_is_counted_from_its_new_file(counted, few_relations):
    lake, warehouse = counted
    Compactor(lake).run()
    land(lake, "acme", some(date(2026, 2, 5), visitor=5))
    RollupBuilder(lake).run()
    days = closed(warehouse)
    Compactor(lake).run()
    assert closed(warehouse) == days - 1
    assert RollupBuilder(lake).run() == 1
    assert closed(warehouse) == days
    assert answers(warehouse, FEW) == recounted(warehouse, FEW)


@pytest.mark.parametrize("criteria", [Criteria(short_code="sale"), Criteria(before=date(2026, 2, 9))], ids=str)
def test_erased_visits_disappear_from_answers_and_then_rollups(counted, criteria):
    lake, warehouse = counted
    old = {path: path.read_bytes() for path in rollups(lake)}
    erased = Eraser(lake).run("acme", criteria)
    assert answers(warehouse) == recounted(warehouse)
    gone = {lake.root / path for path in erased.dead}
    assert {path for path in old if "acme" in str(path)} - gone <= set(rollups(lake))
    delete_files(lake, erased.dead, erased.ended_at + GRACE)
    kept = [path for path in old if path.exists()]
    assert all("organization=bee" in str(path) or path in rollups(lake) for path in kept)
    assert RollupBuilder(lake).run() > 0
    assert closed(warehouse) > 0
    assert answers(warehouse) == recounted(warehouse)
    if criteria.short_code:
        told = rows(warehouse, "SELECT count(*) FROM daily_links WHERE short_code = 'sale'", warehouse.snapshot(SHORT))
        assert told == [(0,)]


def test_expired_days_disappear_from_their_rollup(counted):
    lake, warehouse = counted
    old = rollups(lake)
    retained = apply_retention(lake, 10, datetime(2026, 2, 20, tzinfo=UTC))
    assert answers(warehouse) == recounted(warehouse)
    assert {str(path.relative_to(lake.root)) for path in old if "2026-01" in str(path)} <= set(retained.dead)


def test_an_altered_or_outdated_rollup_is_ignored_and_rebuilt(counted, few_relations):
    lake, warehouse = counted
    before = answers(warehouse, FEW)

    def redefine(_):
        with database_of(lake.manifest).transaction() as db:
            db.execute("UPDATE rollups SET version = 'older'")

    for harm, months in ((flip, 1), (Path.unlink, 1), (redefine, 3)):
        harm(rollup_of_february(lake))
        assert closed(warehouse) == 0
        assert answers(warehouse, FEW) == before
        assert RollupBuilder(lake).run() == months
        assert closed(warehouse) == 13
        assert answers(warehouse, FEW) == before
    for path in rollups(lake):
        path.touch()  # which is harmless
    assert [closed(warehouse), closed(warehouse)] == [13, 13]


def test_silent_damage_to_a_rollup_is_found_in_its_bytes(counted):
    lake, warehouse = counted
    path = rollup_of_february(lake)
    flip(path)
    with database_of(lake.manifest).transaction() as db:
        db.execute(
            "UPDATE rollups SET changed_ns = ?, inode = ? WHERE path = ?",
            [path.stat().st_ctime_ns, path.stat().st_ino, str(path.relative_to(lake.root))],
        )
    assert closed(warehouse) == 13
    assert [*damaged_rollups(lake, "bee")] == [*damaged_rollups(lake, before=datetime(2026, 1, 1, tzinfo=UTC))] == []
    assert [*damaged_rollups(lake)] == [str(path.relative_to(lake.root))]
    assert closed(warehouse) == 0


def test_replaced_rollups_are_deleted_after_a_grace_period(counted, few_relations):
    lake, warehouse = counted
    unknown = rollups(lake)[0].with_name("unknown.parquet")
    unknown.write_bytes(b"")
    old = warehouse.snapshot(SHORT)
    before = warehouse.answer(ENTRIES["bot-traffic"], old)
    land(lake, "acme", some(date(2026, 2, 5), visitor=5))
    RollupBuilder(lake).run()
    Compactor(lake).sweep()
    assert not unknown.exists()
    assert warehouse.answer(ENTRIES["bot-traffic"], old) == before
    Compactor(lake, lambda: datetime.now(UTC) + READERS_GRACE + timedelta(seconds=1)).sweep()
    assert not Path(old.rollups[1]).exists()
    assert all(path.exists() for path in rollups(lake))


def test_a_day_changed_while_it_is_counted_is_not_closed(lake, warehouse, monkeypatch, few_relations):
    """Landing does not wait for tasks: the unfinished last line of a log may be completed during the count."""
    file = next(file for file in lake.manifest.files.live("acme") if file.day == DAYS[0])

    def sha256_of(path: Path) -> str:
        with database_of(lake.manifest).transaction() as db:
            db.execute("UPDATE files SET deletable_at = '9999' WHERE path = ?", [file.path])
        return lake_module.sha256_of(path)

    monkeypatch.setattr("data.store.rollups.sha256_of", sha256_of)
    assert RollupBuilder(lake).run() == 2  # another month, and another organization
    assert closed(warehouse, SCOPES[0]) == closed(warehouse)
    assert not [path for path in rollups(lake) if "2026-01" in str(path)]
    assert not [*lake.staging.glob("*.parquet")]


def test_a_damaged_month_does_not_block_others(lake, warehouse, few_relations):
    file = next(file for file in lake.manifest.files.live("acme") if file.day == date(2026, 2, 5))
    flip(lake.root / file.path)
    builder = RollupBuilder(lake)
    assert [builder.run(limit=1) for _ in range(2)] == [1, 1]
    for _ in range(2):
        with pytest.raises(LakeDamaged, match="SHA-256 differs"):
            builder.run(limit=1)
    assert len(rollups(lake)) == 2


def test_one_query_finds_all_months_to_build(lake, monkeypatch, few_relations):
    engines, connect = [], duckdb.connect
    monkeypatch.setattr(duckdb, "connect", lambda: engines.append(connect()) or engines[-1])
    database, asked = database_of(lake.manifest), []
    ask = database.rows
    monkeypatch.setattr(database, "rows", lambda *how: asked.append(how[0]) or ask(*how))

    def looks():
        return sum("json_each(sources)" in sql for sql in asked)

    builder = RollupBuilder(lake)
    assert [builder.run(limit=1), builder.run()] == [1, 2]
    assert (looks(), len(engines)) == (1, 2)
    asked.clear()
    assert builder.run(limit=1) == 0
    assert (looks(), len(asked)) == (1, 2)


def test_only_months_with_uncounted_files_are_built(lake, few_relations):
    """The check respects each organization's zone and its setting for behaviour, after any change to a month."""
    builder = RollupBuilder(lake, lambda: datetime(2026, 2, 19, 11, tzinfo=UTC))
    manifest, found = lake.manifest, []

    def look():
        of_files = {
            (organization, month_of(file.day))
            for organization in manifest.organizations.names()
            for file in builder._files_to_count(organization, manifest.files.live(organization))
        }
        found.append(len(of_files))
        assert builder._months_to_build() == sorted(of_files)

    manifest.organizations.set_zone("early", "Pacific/Kiritimati")  # where the date is the twentieth
    for organization in ("early", "late"):
        land(lake, organization, [visit(visited_at=datetime(2026, 2, 19, 9), utc_offset=840)])
    look()
    builder.run()
    look()
    land(lake, "acme", some(date(2026, 2, 5), visitor=5))
    look()
    builder.run()
    manifest.behaviour.switch("bee", on=False)
    look()
    builder.run()
    Eraser(lake).run("acme", Criteria(since=date(2026, 2, 9), before=date(2026, 2, 10)))
    look()
    rollups(lake)[0].unlink()
    look()
    builder.run()
    look()
    assert found == [4, 0, 1, 1, 1, 2, 0]


def test_a_builder_that_does_not_wait_skips_a_locked_lake(lake, few_relations):
    with lake.rewrite_lock():
        assert RollupBuilder(lake).run(wait=False) == 0
    assert RollupBuilder(lake).run(wait=False, limit=1) == 1


def test_answers_stick_to_their_snapshot_while_visits_land(counted):
    """Readers run while visits land and are counted: every answer is from before or after a landing."""
    lake, warehouse = counted
    counts, stop, errors = set(), threading.Event(), []

    def read():
        while not stop.wait(0.05):
            try:
                counts.add(answer(warehouse, "traffic-overview", SHORT)["total_visits"])
            except Exception as error:  # noqa: BLE001  # reported below
                errors.append(error)

    readers = [threading.Thread(target=read) for _ in range(2)]
    for reader in readers:
        reader.start()
    snapshots, found = [warehouse.snapshot(SHORT)], []
    for day in (5, 6):
        land(lake, "acme", some(date(2026, 2, day), visitor=50))
        snapshots.append(warehouse.snapshot(SHORT))  # the rollup of this day is no longer valid
        assert RollupBuilder(lake).run() == 1
        snapshots.append(warehouse.snapshot(SHORT))
        found.append([warehouse.answer(DASHBOARD, snapshot) for snapshot in snapshots[:3]])
    stop.set()
    for reader in readers:
        reader.join()
    assert errors == []
    totals = [(13 + late) * len(some(DAYS[0])) for late in (0, 1, 1)]
    assert [answer["overview"]["total_visits"] for answer in found[0]] == totals
    assert counts <= {*totals, 15 * len(some(DAYS[0]))}
    assert len(counts) > 1
    assert found[0] == found[1]
    assert found[0][1] == found[0][2]


def test_the_rollup_of_another_tenant_shows_nothing(read_only):
    _, warehouse = read_only
    snapshot = warehouse.snapshot(SHORT)
    relations = "FROM rollup_rows('daily_categories') UNION ALL BY NAME FROM stored_rows('daily_links')"
    count = f"SELECT count(*) > 0 FROM ({relations})"
    assert rows(warehouse, count, snapshot) == [(True,)]
    assert rows(warehouse, count, replace(snapshot, scope=Scope("bee", *DAYS))) == [(False,)]


@pytest.mark.parametrize("number", [3, 15])
def test_a_filtered_dashboard_of_shared_visits_equals_its_parts(read_only, number):
    _, warehouse = read_only
    snapshot = warehouse.snapshot(SCOPES[number])
    assert "shared_visits" in warehouse.with_shared_visits(snapshot, [DASHBOARD]).in_memory

    with ThreadPoolExecutor(4) as pool:  # meanwhile, answers for another scope do not see these shared visits
        found = [*pool.map(partial(answer, warehouse, "dashboard"), (SCOPES[number], SCOPES[0]) * 2)]
    assert found[0] == found[2] == parts_of_dashboard(warehouse, snapshot)
    assert found[1] == found[3] != found[0]
    assert found[0]["overview"]["total_visits"] > 3


def test_few_visits_are_shared_without_counting_them_first(read_only, monkeypatch):
    monkeypatch.setattr("queries.shared_visits._BY_DAY", "SELECT error('counted first')")
    _, warehouse = read_only
    snapshot = warehouse.snapshot(SCOPES[3])
    assert "shared_visits" in warehouse.with_shared_visits(snapshot, [DASHBOARD]).in_memory

    monkeypatch.setattr("queries.shared_visits.MAX_SHARED_VISITS", snapshot.files.visits - 1)
    with pytest.raises(QueryFailed, match="counted first"):
        warehouse.with_shared_visits(snapshot, [DASHBOARD])


def test_a_dashboard_counts_too_many_visits_period_by_period(read_only, monkeypatch):
    monkeypatch.setattr("queries.shared_visits.MAX_SHARED_VISITS", 40)
    _, warehouse = read_only
    snapshot = warehouse.snapshot(SCOPES[3])
    shared = warehouse.with_shared_visits(snapshot, [DASHBOARD])
    assert "shared_visits" not in shared.in_memory
    found = warehouse.answer(DASHBOARD, shared)
    assert found == parts_of_dashboard(warehouse, snapshot)
    assert found["overview"]["total_visits"] > 40


@pytest.mark.parametrize("most", [MAX_SHARED_VISITS, 3])
def test_a_dashboard_of_uncovered_visits_equals_its_parts(counted, monkeypatch, most):
    lake, warehouse = counted
    monkeypatch.setattr("queries.shared_visits.MAX_SHARED_VISITS", most)
    assert not warehouse.with_shared_visits(warehouse.snapshot(SHORT), [DASHBOARD]).in_memory
    for number in range(2):
        land(lake, "acme", some(date(2026, 2, 6), visitor=50 + number))
    snapshot = warehouse.snapshot(SHORT)
    shared = warehouse.with_shared_visits(snapshot, [DASHBOARD])
    in_memory = {name: len(rows) for name, rows in shared.in_memory.items()}
    names = ("uncovered_visits", "aside_and_uncovered_visits")
    assert in_memory == (dict.fromkeys(names, 3 * len(some(DAYS[0]))) if most > 3 else {})
    assert warehouse.answer(DASHBOARD, shared) == parts_of_dashboard(warehouse, snapshot)


def test_only_needed_columns_of_unserved_relations_are_in_memory(read_only):
    _, warehouse = read_only
    snapshot = warehouse.snapshot(SCOPES[7])
    assert warehouse.with_shared_visits(snapshot, [ENTRIES["geographic"]]) == snapshot
    sources = warehouse.with_shared_visits(snapshot, [DASHBOARD]).sources
    assert (sources["daily_countries"], sources["daily_devices"]) == ("uncovered_visits", "shared_visits_in_memory")
    entries = [ENTRIES["weekly-trend"], ENTRIES["browsers"]]
    visits = warehouse.with_shared_visits(warehouse.snapshot(SCOPES[3]), entries).in_memory["shared_visits"]
    assert set(visits.column_names) == {
        "for_domain", "day", "bot_category", "agent_kind", "ai_source", "device_type", "browser", "visitor"
    }  # fmt: skip


def test_answers_from_shared_visits_equal_answers_from_files(read_only):
    _, warehouse = read_only
    snapshot = warehouse.snapshot(SCOPES[10])
    for entry in (entry for entry in LEAVES.values() if entry.takes_short_code):
        shared = warehouse.with_shared_visits(snapshot, [entry])
        assert warehouse.answer(entry, shared) == warehouse.answer(entry, snapshot), entry.name
