"""The warehouse isolates tenants, detects damage and returns only declared columns."""

import re
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import astuple, fields, replace
from datetime import date
from importlib import resources
from itertools import cycle, islice, product
from pathlib import Path
from random import Random

import duckdb
import pytest

from data import BadInput, Lake, LakeDamaged
from data.visits import AI_CATEGORIES, BOT_CATEGORIES, CONFIDENCE_SCORES, OTHER_CATEGORIES
from queries import (
    CACHE_STATS,
    CATALOG,
    ENDPOINTS,
    ENTRIES,
    Entry,
    Scope,
    TrafficValue,
    Warehouse,
    load_traffic_values,
    template,
)
from queries.fields import COUNT, NUMBER, TEXT
from queries.prelude import prelude, relation_names, served_filters, sql_text
from queries.scope import FILTERS, LISTING
from tests.faults.trials import scaled
from tests.support.lakes import flip, opened
from tests.support.sql import LEAVES, answer, rows
from tests.support.tables import examples_at_once
from tests.support.visits import Visit, land, links, visit

DAYS = (date(2026, 3, 2), date(2026, 3, 8))
QUESTIONS = scaled(64, 4_000)
TEMPLATES = sorted(
    file.name.removesuffix(".sql") for file in resources.files("queries").joinpath("templates").iterdir()
)
CONTRACT = [
    "dashboard", "traffic-overview", "weekly-trend", "time-series", "ai-sources", "ai-platform-market-share",
    "developer-tools", "dev-tools-adoption", "ai-confidence", "top-links", "ai-to-human-conversion",
    "traffic-value-breakdown", "devices", "operating-systems", "browsers", "device-by-ai-source", "geographic",
    "hourly-activity", "daily-activity", "peak-times", "weekend-vs-weekday", "utm-campaigns", "referrers",
    "domain-breakdown", "bot-traffic", "filter-values", "cache-stats",
]  # fmt: skip


def canaries(name: str, many: int) -> list[Visit]:
    """Return visits in every category with `name` in every string."""
    texts = ("domain", "short_code", "agent", "operator", "browser", "operating_system", "ai_source", "referrer",
             "utm_source", "country", "device_type", "confidence", "detection_method")  # fmt: skip
    marked = dict.fromkeys(texts, f"canary-{name}")
    return [visit(bot_category=category, visitor=1, **marked) for category in BOT_CATEGORIES for _ in range(many)]


@pytest.fixture(scope="module")
def lake(shared_lake: Lake) -> Lake:
    for many, name in enumerate(("ant", "bee", "cat"), start=1):
        land(shared_lake, name, canaries(name, many))
        links(shared_lake, name, [{"short_code": f"canary-{name}", "target_url": f"https://canary-{name}.example"}])
    return shared_lake


@pytest.fixture(scope="module")
def warehouse(lake: Lake) -> Iterator[Warehouse]:
    with closing(Warehouse(lake)) as warehouse:
        yield warehouse


# Tenants


def numbers_of(entry: Entry, found: list[dict] | dict) -> list:
    """Return the numbers in an answer, except those on its axes."""
    counting = [field.name for field in entry.fields if field.kind in (COUNT, NUMBER)]
    rows = [found] if isinstance(found, dict) else found
    return [row[name] for row in rows for name in counting if name not in ("hour", "day_of_week")]


def test_no_visits_are_visible_without_a_scope(warehouse):
    snapshot = warehouse.snapshot(Scope("ant", *DAYS))
    for name, entry in LEAVES.items():
        with warehouse._engine.cursor(snapshot) as cursor:
            cursor.execute("RESET VARIABLE scope")
            found = cursor.sql(template(name)).to_arrow_table().to_pylist()
        assert all(number in (0, None) for number in numbers_of(entry, found)), name
        assert "canary" not in repr(found)
    with warehouse._engine.cursor(snapshot) as cursor:
        cursor.execute("RESET VARIABLE files")
        with pytest.raises(duckdb.Error):
            cursor.execute("SELECT count(*) FROM visits_in_scope")


def test_the_files_of_another_tenant_show_nothing(warehouse):
    for relation in ("visits_in_days", "visits_in_scope", "links_in_scope"):
        count = f"SELECT count(*) > 0 FROM {relation}"
        snapshot = warehouse.snapshot(Scope("ant", *DAYS))
        assert rows(warehouse, count, snapshot) == [(True,)]
        assert rows(warehouse, count, replace(snapshot, scope=Scope("bee", *DAYS))) == [(False,)]


def test_concurrent_scopes_never_mix(warehouse):
    scopes = {name: Scope(name, *DAYS) for name in ("ant", "bee", "cat", "nobody")}
    names = ("traffic-overview", "top-links", "filter-values", "bot-traffic", "time-series")
    expected = {(tenant, name): answer(warehouse, name, scope) for tenant, scope in scopes.items() for name in names}
    asked = list(islice(cycle(expected), QUESTIONS))
    Random(7).shuffle(asked)
    together = threading.Barrier(8)

    def ask(part: int) -> list[bool]:
        together.wait()
        return [answer(warehouse, name, scopes[tenant]) == expected[tenant, name] for tenant, name in asked[part::8]]

    with ThreadPoolExecutor(8) as pool:
        found = [same for answers in pool.map(ask, range(8)) for same in answers]
    assert found == [True] * QUESTIONS
    assert [expected[name, "traffic-overview"]["total_visits"] for name in scopes] == [7, 14, 21, 0]


def test_a_snapshot_does_not_see_visits_landed_later(lake, warehouse):
    land(lake, "late", [visit()])
    scope = Scope("late", *DAYS)
    before = warehouse.snapshot(scope)
    land(lake, "late", [visit()])
    assert warehouse.answer(ENTRIES["traffic-overview"], before)["total_visits"] == 1
    assert answer(warehouse, "traffic-overview", scope)["total_visits"] == 2


# Links of AI sources


def test_only_the_top_twenty_links_of_an_ai_source_are_listed(lake, warehouse):
    codes = [f"{number:02}" for number in range(21)]
    for source in ("Claude", "ChatGPT"):
        visits = [visit(short_code=code, ai_source=source, bot_category="ai_training") for code in (*codes, "20", None)]
        land(lake, "linked", visits)
    found = answer(warehouse, "source-links", Scope("linked", *DAYS))
    assert [(row["ai_source"], row["short_code"]) for row in found] == [
        (source, code) for source in ("ChatGPT", "Claude") for code in ("20", *codes[:19])
    ]
    assert {row["percentage"] for row in found} == {9.09, 4.55}  # of 22 visits to links


# Start


def test_a_template_that_differs_from_its_entry_fails(warehouse):
    snapshot = warehouse.snapshot(Scope("ant", *DAYS))
    first, *middle, last = ENTRIES["devices"].fields
    unlike = (
        (first, *middle),
        (last, *middle, first),
        (first, *middle, last, replace(first, name="more")),
        (replace(first, name="device"), *middle, last),
        (first, *middle, replace(last, kind=TEXT)),
    )
    for asked, wrong in product((warehouse.answer, warehouse.tables), unlike):
        with pytest.raises(AssertionError, match="template devices returns"):
            asked(replace(ENTRIES["devices"], fields=wrong), snapshot)


def test_the_warehouse_starts_on_an_empty_lake(tmp_path):
    with opened(tmp_path, create=True) as lake, closing(Warehouse(lake)) as warehouse:
        assert set(answer(warehouse, "traffic-overview", Scope("nobody", *DAYS)).values()) == {0}


def test_a_lake_path_may_have_any_plain_name(tmp_path):
    assert [visits_of_a_lake_at(tmp_path / folder) for folder in ("it's", "a b", "größe", "o%20p", "a,b")] == [1] * 5


@pytest.mark.parametrize("folder", ["organization=other/lake", "day=2020-01-01/lake", "a*b", "a?b", "[a] b"])
def test_a_lake_path_with_wildcards_is_rejected_or_read(tmp_path, folder):
    visits_of_a_lake_at(tmp_path / "a b")  # a path that a pattern would match
    with suppress(BadInput):
        assert visits_of_a_lake_at(tmp_path / folder) == 1


def visits_of_a_lake_at(folder: Path) -> int:
    folder.parent.mkdir(exist_ok=True)
    with opened(folder, create=True) as lake, closing(Warehouse(lake)) as warehouse:
        land(lake, "ant", [visit()])
        return answer(warehouse, "traffic-overview", Scope("ant", *DAYS))["total_visits"]


@pytest.mark.parametrize("place", [0, 100, -1, None])
def test_an_altered_or_missing_file_is_reported_by_name(lake, warehouse, place):
    organization = f"damaged-{place}"
    land(lake, organization, [visit()])
    (file,) = lake.root.glob(f"visits/organization={organization}/*/*.parquet")
    if place is None:
        file.unlink()
    else:
        flip(file, place)
    for _ in range(2):  # found again
        with pytest.raises(LakeDamaged, match=file.name):
            warehouse.snapshot(Scope(organization, *DAYS))
    later = warehouse.snapshot(Scope(organization, date(2026, 3, 5), date(2026, 3, 8)))
    assert len(later.files.paths) == 1  # the seed


# Definitions in both Python and SQL


def test_the_scope_has_the_same_fields_in_sql(warehouse):
    listing = {"search": "it's", "unvisited": True, "sorted_by": "'", "ascending": False, "skipped": 7, "shown": 8}
    texts = {name: f"it's {name}" for name in FILTERS if name != "no_domain"}
    scope = Scope("ant", *DAYS, no_domain=True, **texts, **listing)
    snapshot = warehouse.snapshot(scope)
    columns = rows(warehouse, "SELECT column_name FROM (DESCRIBE scope)", snapshot)
    names = [*(name for (name,) in columns), *FILTERS, *LISTING, "only_judged"]  # it decides about files
    assert names == [field.name for field in fields(Scope)]
    filters = ", ".join(f"getvariable('{name}')" for name in (*FILTERS, *LISTING))
    assert rows(warehouse, f"SELECT *, {filters} FROM scope", snapshot) == [astuple(scope)[:-1]]


def test_confidence_scores_are_the_same_in_sql(warehouse):
    for confidence, score in CONFIDENCE_SCORES.items():
        assert rows(warehouse, f"SELECT score_of('{confidence}')") == [(score,)]
    assert rows(warehouse, "SELECT score_of('guessed'), score_of(NULL)") == [(None, None)]


def test_the_split_of_categories_is_the_same_in_sql(warehouse):
    names = ("is_human", "is_ai", "is_other", "is_referral", "is_person")
    for category in BOT_CATEGORIES:
        is_ai, is_other = category in AI_CATEGORIES, category in OTHER_CATEGORIES
        is_human, is_referral = category == "human", category == "ai_referral"
        called = ", ".join(f"{name}({category!r})" for name in names)
        expected = (is_human, is_ai, is_other, is_referral, is_human or is_referral)
        assert rows(warehouse, f"SELECT {called}") == [expected]


# The catalog


def test_the_catalog_has_exactly_the_routes_in_the_contract():
    assert [entry.name for entry in CATALOG] == CONTRACT
    assert list(ENDPOINTS) == CONTRACT[:-1]
    assert CACHE_STATS.name == "cache-stats"
    assert sorted(LEAVES) == TEMPLATES
    assert all(entry.description.endswith((".", "?")) for entry in (*CATALOG, *LEAVES.values()))


@pytest.mark.parametrize("name", TEMPLATES)
def test_a_template_has_at_most_30_lines(name):
    assert len(template(name).splitlines()) <= 30


@pytest.mark.parametrize("name", TEMPLATES)
def test_a_template_does_not_read_files_itself(name):
    assert not re.search(r"getvariable|\b(FROM|JOIN)\s+visits\b|visits_in|read_parquet", template(name), re.IGNORECASE)


@pytest.mark.parametrize("name", TEMPLATES)
def test_a_template_leaves_the_split_of_visits_to_the_prelude(name):
    assert not re.search(r"'human'|'search_crawler'|'other_bot'", template(name))


@pytest.mark.parametrize("name", TEMPLATES)
def test_a_template_ends_with_a_semicolon(name):
    assert template(name).rstrip().endswith(";")


def test_every_relation_is_used_by_a_template():
    used = {word for name in TEMPLATES for word in re.findall(r"\b(?:daily|monthly)_\w+", template(name))}
    assert {*relation_names()} == used


@pytest.mark.parametrize("name", relation_names())
def test_a_relation_reads_only_rows_stored_under_its_name(name):
    sql = sql_text(f"relations/{name}")
    assert re.findall(r"CREATE \w+ (\w+)", sql) == [f"{name}_counted", f"{name}_stored", name]
    of_itself = re.findall(r"(?:visits_to_count\w*|rollup_rows|rows_of_group|parts_of)\('(\w+)'[,)]", sql)
    assert of_itself == [name] * 3
    filter_of_stored_rows = r"matches\((?:coalesce\()?(\w+)(?:, '\(direct\)'\))?, getvariable\('(\w+)'\)\)"
    filters = re.findall(filter_of_stored_rows, sql.partition(f"{name}_stored")[2])
    assert [column for column, _ in filters] == [name for _, name in filters]
    assert {name for _, name in filters} == served_filters(name) - {"traffic_type"}
    assert not re.search(r"getvariable|read_parquet|stored_rows", re.sub(filter_of_stored_rows, "", sql))


def test_the_prelude_defines_each_name_only_once():
    defined = [found for sql in prelude() for found in re.findall(r"^CREATE (\w+) (\w+)", sql, re.MULTILINE)]
    assert len(defined) == len({*defined}) > 40  # the type and the view of a scope have the same name
    assert not [sql for sql in prelude() if "OR REPLACE" in sql]


# Traffic values


def test_visits_have_no_value_by_default():
    assert load_traffic_values() == [TrafficValue(category, 0, "USD") for category in BOT_CATEGORIES]


def test_values_are_read_exactly_and_missing_values_are_zero(tmp_path):
    path = tmp_path / "values.toml"
    path.write_text('currency = "EUR"\n[value_per_visit]\nhuman = 0.0001\nai_referral = 1000000\nother_bot = 1.10')
    set_values = {"human": 1, "ai_referral": 10**10, "other_bot": 11_000}
    expected = [TrafficValue(category, set_values.get(category, 0), "EUR") for category in BOT_CATEGORIES]
    assert load_traffic_values(path) == expected


@pytest.mark.parametrize("name", ["absent", "binary"])
def test_an_unreadable_values_file_is_reported(tmp_path, name):
    (tmp_path / "binary").write_bytes(b'currency = "\xff"')
    with pytest.raises(BadInput, match=name):
        load_traffic_values(tmp_path / name)


@examples_at_once("text", "culprit")
def test_an_invalid_values_file_is_rejected_with_the_reason(tmp_path, text, culprit):
    (tmp_path / "values.toml").write_text(text)
    with pytest.raises(BadInput, match=re.escape(culprit)):
        load_traffic_values(tmp_path / "values.toml")
