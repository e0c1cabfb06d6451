"""Cubes: closed days are counted ahead, and no answer is another for it; what changed since is counted again."""

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest

import queries.warehouse
from data import Lake, LakeDamaged
from data.maintenance.compaction import Compactor
from data.maintenance.erasure import GRACE, Criteria, Eraser, delete_files
from data.maintenance.retention import apply_retention
from data.store import lake as lake_module
from data.store.manifest import READERS_GRACE
from data.store.rollups import unsound
from queries import ANSWERS, Cubes, Scope, Warehouse
from queries.variables import GATHERED
from tests.visits import land, visit

DAYS = (date(2026, 1, 31), date(2026, 2, 14))
SCOPES = [
    Scope("acme", *DAYS),
    Scope("acme", date(2026, 2, 2), date(2026, 2, 12)),
    Scope("acme", *DAYS, domain="go.example"),
    Scope("acme", *DAYS, short_code="sale"),
    Scope("acme", *DAYS, traffic_type="ai"),
    Scope("acme", *DAYS, traffic_type="ai_referral", domain="link.example"),
    Scope("bee", *DAYS),
]
ALL = tuple(name for name, entry in ANSWERS.items() if entry.shape != "parts")
MANY = ("traffic-overview", "devices", "top-links", "bot-traffic", "ai-platform-market-share", "ai-to-human-conversion",
        "filter-values")  # fmt: skip
SHORT = Scope("acme", date(2026, 2, 1), date(2026, 2, 28))


def some(day: date, visitor: int = 1) -> list[dict]:
    """Visits of one day: the same people meet two domains, and agents ask for the same paths day after day."""
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
        for path in ("/sale", f"/{day.day % 3}")
        for category, kind, agent, source in (
            ("ai_assistant", "assistant_fetch", "ChatGPT-User", "ChatGPT"),
            ("ai_coding_agent", "coding_agent", "Claude-User", "Claude Code"),
            ("ai_referral", "referral", None, "ChatGPT"),
            ("other_bot", "library", "curl", None),
        )
    ]  # fmt: skip
    return people + agents


@pytest.fixture
def lake(tmp_path):
    """Two weeks of one organization in two months, and three days of another, all of them long past."""
    lake = Lake(tmp_path / "lake", create=True)
    days = [DAYS[0] + timedelta(number) for number in range((DAYS[1] - DAYS[0]).days + 1)]
    land(lake, "acme", [row for day in days if day.day != 13 for row in some(day)])
    land(lake, "bee", [row for day in days[3:6] for row in some(day, 7)])
    yield lake
    lake.manifest.close()


@pytest.fixture
def warehouse(lake):
    warehouse = Warehouse(lake)
    yield warehouse
    warehouse.close()


def answers(warehouse: Warehouse, scope: Scope, names: tuple[str, ...] = MANY) -> dict:
    variables = warehouse.variables(scope)
    return {name: warehouse.answer(ANSWERS[name], variables) for name in names}


def recounted(warehouse: Warehouse, scope: Scope) -> dict:
    """The answers as the visits alone give them."""
    variables = warehouse.variables(scope)
    variables |= {"open_files": variables["files"], "cubes": variables["cubes"][:1], "closed_days": []}
    return {name: warehouse.answer(ANSWERS[name], variables) for name in MANY}


def closed(warehouse: Warehouse, scope: Scope = SHORT) -> int:
    return len(warehouse.variables(scope)["closed_days"])


def cubes(lake: Lake) -> list[Path]:
    rows = lake.manifest.rows("SELECT path FROM cubes WHERE deletable_at IS NULL ORDER BY path")
    return [lake.root / path for (path,) in rows]


def damage(path: Path) -> None:
    body = bytearray(path.read_bytes())
    body[len(body) // 2] ^= 1
    path.write_bytes(body)


def test_every_answer_is_the_same_from_cubes_as_from_visits(lake, warehouse):
    asked = [(SCOPES[0], ALL), *((scope, MANY) for scope in SCOPES[1:])]
    before = [answers(warehouse, *one) for one in asked]
    assert not any(closed(warehouse, scope) for scope in SCOPES)
    Cubes(lake).run()
    assert all(closed(warehouse, scope) for scope in SCOPES)
    assert [answers(warehouse, *one) for one in asked] == before


def test_closed_days_are_answered_without_a_look_at_their_visits(lake, warehouse):
    before = answers(warehouse, SHORT)
    Cubes(lake).run()
    variables = warehouse.variables(SHORT)
    assert variables["open_files"] == [lake.seed_visits]
    variables["files"] = variables["files"][:1]
    assert {name: warehouse.answer(ANSWERS[name], variables) for name in before} == before


def test_a_second_run_finds_nothing_to_count(lake):
    assert (Cubes(lake).run(), Cubes(lake).run()) == (3, 0)


def test_days_that_are_not_over_are_not_counted_ahead(lake, warehouse):
    assert Cubes(lake, lambda: datetime(2026, 2, 10, 23, 59, tzinfo=UTC)).run() == 3
    assert max(warehouse.variables(SHORT)["closed_days"]) == date(2026, 2, 9)
    assert Cubes(lake, patience=timedelta(hours=1)).run() == 0  # all has landed just now


def test_late_visits_open_their_day_alone_and_a_later_run_closes_it(lake, warehouse):
    Cubes(lake).run()
    days, old = closed(warehouse), cubes(lake)
    land(lake, "acme", some(date(2026, 2, 5), visitor=5) + some(date(2026, 2, 13)))
    assert closed(warehouse) == days - 1
    assert answers(warehouse, SHORT) == recounted(warehouse, SHORT)
    assert Cubes(lake).run() == 1
    assert closed(warehouse) == days + 1
    assert len(set(cubes(lake)) - set(old)) == 1
    assert answers(warehouse, SHORT) == recounted(warehouse, SHORT)


def test_a_compacted_day_is_counted_from_its_new_file(lake, warehouse):
    land(lake, "acme", some(date(2026, 2, 5), visitor=5))
    Cubes(lake).run()
    before, days = answers(warehouse, SHORT), closed(warehouse)
    Compactor(lake).run()
    assert closed(warehouse) == days - 1
    assert Cubes(lake).run() == 1
    assert closed(warehouse) == days
    assert answers(warehouse, SHORT) == before == recounted(warehouse, SHORT)


@pytest.mark.parametrize(
    "criteria", [Criteria(short_code="sale"), Criteria(visitor=9), Criteria(before=date(2026, 2, 9))], ids=str
)
def test_what_is_erased_is_in_no_answer_and_soon_in_no_cube(lake, warehouse, criteria):
    Cubes(lake).run()
    old = {path: path.read_bytes() for path in cubes(lake)}
    erased = Eraser(lake).run("acme", criteria)
    assert answers(warehouse, SHORT) == recounted(warehouse, SHORT)
    gone = {lake.root / path for path in erased.dead}
    assert {path for path in old if "acme" in str(path)} - gone <= set(cubes(lake))
    delete_files(lake, erased.dead, erased.ended_at + GRACE)
    kept = [path for path in old if path.exists()]
    assert all("organization=bee" in str(path) or path in cubes(lake) for path in kept)
    assert Cubes(lake).run() > 0
    assert closed(warehouse) > 0
    assert answers(warehouse, SHORT) == recounted(warehouse, SHORT)
    if criteria.short_code:
        told = warehouse.rows("SELECT count(*) FROM daily_links WHERE short_code = 'sale'", warehouse.variables(SHORT))
        assert told[1] == [(0,)]


def test_what_is_too_old_to_be_kept_leaves_its_cube(lake, warehouse):
    Cubes(lake).run()
    old = cubes(lake)
    now = datetime(2026, 2, 20, tzinfo=UTC)
    retained = apply_retention(lake, 10, now)
    assert answers(warehouse, SHORT) == recounted(warehouse, SHORT)
    assert {str(path.relative_to(lake.root)) for path in old if "2026-01" in str(path)} <= set(retained.dead)


@pytest.mark.parametrize("harm", [damage, Path.unlink], ids=["damaged", "lost"])
def test_a_cube_that_is_not_what_was_written_is_not_read_and_made_anew(lake, warehouse, harm):
    Cubes(lake).run()
    before = answers(warehouse, SHORT)
    for path in cubes(lake):
        harm(path)
    assert closed(warehouse) == 0
    assert answers(warehouse, SHORT) == before
    assert Cubes(lake).run() == 3
    assert closed(warehouse) == 13
    assert answers(warehouse, SHORT) == before


def test_damage_that_the_disk_does_not_tell_of_is_found_by_a_look_at_the_bytes(lake, warehouse):
    Cubes(lake).run()
    path = next(path for path in cubes(lake) if "acme" in str(path) and "2026-02" in str(path))
    damage(path)
    with lake.manifest.transaction() as db:
        db.execute(
            "UPDATE cubes SET changed_ns = ? WHERE path = ?",
            [path.stat().st_ctime_ns, str(path.relative_to(lake.root))],
        )
    assert closed(warehouse) == 13
    assert [*unsound(lake, "bee")] == [*unsound(lake, before=datetime(2026, 1, 1, tzinfo=UTC))] == []
    assert [*unsound(lake)] == [str(path.relative_to(lake.root))]
    assert closed(warehouse) == 0


def test_a_cube_that_was_only_touched_is_still_read(lake, warehouse):
    Cubes(lake).run()
    for path in cubes(lake):
        path.touch()
    assert closed(warehouse) == 13
    assert closed(warehouse) == 13


def test_cubes_of_other_definitions_are_not_read_and_are_replaced(lake, warehouse):
    Cubes(lake).run()
    with lake.manifest.transaction() as db:
        db.execute("UPDATE cubes SET version = 'older'")
    assert closed(warehouse) == 0
    assert Cubes(lake).run() == 3
    assert closed(warehouse) == 13


def test_replaced_cubes_stay_for_their_readers_and_go_after_a_day(lake, warehouse):
    Cubes(lake).run()
    old = warehouse.variables(SHORT)
    before = warehouse.answer(ANSWERS["bot-traffic"], old)
    land(lake, "acme", some(date(2026, 2, 5), visitor=5))
    Cubes(lake).run()
    Compactor(lake).sweep()
    assert warehouse.answer(ANSWERS["bot-traffic"], old) == before
    Compactor(lake, lambda: datetime.now(UTC) + READERS_GRACE + timedelta(seconds=1)).sweep()
    assert not Path(old["cubes"][1]).exists()
    assert all(path.exists() for path in cubes(lake))


def test_a_cube_that_nobody_was_told_of_is_swept(lake):
    Cubes(lake).run()
    orphan = cubes(lake)[0].with_name("orphan.parquet")
    orphan.write_bytes(b"")
    Compactor(lake).sweep()
    assert not orphan.exists()
    assert all(path.exists() for path in cubes(lake))


def test_a_day_that_was_changed_while_it_was_counted_is_not_closed(lake, warehouse, monkeypatch):
    """Landing waits for nobody: the unfinished last line of a log may end under the count."""
    file = next(file for file in lake.manifest.live_files("acme") if file.day == DAYS[0])

    def sha256_of(path: Path) -> str:
        with lake.manifest.transaction() as db:
            db.execute("UPDATE files SET deletable_at = '9999' WHERE path = ?", [file.path])
        return lake_module.sha256_of(path)

    monkeypatch.setattr("data.store.rollups.sha256_of", sha256_of)
    assert Cubes(lake).run() == 2  # another month, and another organization
    assert closed(warehouse, SCOPES[0]) == closed(warehouse)
    assert not [path for path in cubes(lake) if "2026-01" in str(path)]
    assert not [*lake.staging.glob("*.parquet")]


def test_a_damaged_month_stops_no_other(lake, warehouse):
    file = next(file for file in lake.manifest.live_files("acme") if file.day == date(2026, 2, 5))
    damage(lake.root / file.path)
    assert [Cubes(lake).run(most=1) for _ in range(2)] == [1, 1]
    with pytest.raises(LakeDamaged, match="SHA-256 differs"):
        Cubes(lake).run(most=1)
    assert len(cubes(lake)) == 2


def test_without_patience_for_others_nothing_happens_while_they_rewrite(lake):
    with lake.rewriting():
        assert Cubes(lake).run(wait=False) == 0
    assert Cubes(lake).run(wait=False, most=1) == 1


def test_answers_stay_the_same_while_days_are_counted_and_landed(lake, warehouse):
    """Readers, a counter and an importer at once: every answer is one of those before or after a landing."""
    counts, stop, errors = set(), threading.Event(), []

    def read():
        while not stop.is_set():
            try:
                counts.add(warehouse.answer(ANSWERS["traffic-overview"], warehouse.variables(SHORT))["total_visits"])
            except Exception as error:  # noqa: BLE001  # told below
                errors.append(error)

    readers = [threading.Thread(target=read) for _ in range(3)]
    for reader in readers:
        reader.start()
    sizes = [13 * len(some(DAYS[0]))]
    for number in range(2):
        Cubes(lake).run()
        late = some(date(2026, 2, 5 + number), visitor=50 + number)
        sizes.append(sizes[-1] + len(late))
        land(lake, "acme", late)
    stop.set()
    for reader in readers:
        reader.join()
    assert errors == []
    assert counts <= set(sizes)
    assert len(counts) > 1


def test_another_tenants_cube_shows_nothing(lake, warehouse):
    Cubes(lake).run()
    variables = warehouse.variables(SHORT)
    count = "SELECT count(*) > 0 FROM (FROM closed('categories') UNION ALL BY NAME FROM cubed('links'))"
    assert warehouse.rows(count, variables)[1] == [(True,)]
    variables["scope"] = warehouse.variables(SCOPES[-1])["scope"]
    assert warehouse.rows(count, variables)[1] == [(False,)]


@pytest.mark.parametrize("most", [queries.warehouse.MOST_GATHERED, 3])
def test_a_dashboard_of_a_link_that_reads_its_visits_once_equals_its_parts(lake, warehouse, monkeypatch, most):
    monkeypatch.setattr("queries.warehouse.MOST_GATHERED", most)
    Cubes(lake).run()
    link, everybody = SCOPES[3], SCOPES[0]
    variables = warehouse.variables(link)
    assert (GATHERED in warehouse.gathered(variables)) == (most > 3)
    dashboard = ANSWERS["dashboard"]
    with ThreadPoolExecutor(4) as pool:  # others, meanwhile, are shown nothing of what one has gathered
        asked = [
            pool.submit(warehouse.answer, dashboard, warehouse.variables(scope)) for scope in (link, everybody) * 2
        ]
        found = [answer.result() for answer in asked]
    assert found[0] == found[2] == {name: warehouse.answer(part, variables) for name, part in dashboard.members}
    assert found[1] == found[3] != found[0]
    assert found[0]["overview"]["total_visits"] > 3
