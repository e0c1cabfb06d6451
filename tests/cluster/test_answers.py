"""Every compiled query returns the same rows on Spark and on Sail as its original on DuckDB: values, order and types.

The tests cover four scopes of a sample lake, and a day with too many words, in sessions in a time zone other than UTC.
Spark takes a second to plan a query, so each of the two scopes with filters runs half of the queries (lists run where
they are searched and sorted), and the scope without visits runs only queries that return rows anyway.
`TRAFFIC_FAULTS=all uv run --group cluster pytest tests/cluster/test_answers.py` runs everything in all scopes, also on
files that lack a column, and for all rollups.
"""

from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import asdict, astuple, replace
from datetime import date, datetime, timedelta
from functools import cache, partial
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from data import Lake
from data.disk.files import sha256_of, write_parquet
from data.signals import OWN
from data.visits import CATEGORY_OF_KIND, SCHEMA_VERSION
from queries import DETECTORS, Scope, Warehouse, days_before, template
from queries.cluster_sources import SharedFolder
from queries.compiler import Compiler
from queries.prelude import relation_names
from queries.snapshot import MAX_VALUES_PER_DAY, for_cluster, one_source
from tests.cluster.processes import Spark
from tests.faults.trials import IS_LONG
from tests.queries.test_detectors import AS_OF, planted
from tests.queries.test_own_links import VISITS as OWN_LINKS
from tests.support.manifests import database_of
from tests.support.sql import TEXTS
from tests.support.visits import land, links, visit

pytestmark = pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning")
DAYS = days_before(AS_OF)
WHOLE = Scope("acme", *DAYS)
SCOPES = [
    WHOLE,
    Scope(
        "acme", date(2026, 3, 3), date(2026, 3, 20), domain="go.example", search="A", sorted_by="last_visit", skipped=1
    ),
    Scope("acme", *DAYS, referrer="(direct)", traffic_group="people", tag="/sale ?a.example/sale launch sale"),
    Scope("stranger", *DAYS),
    Scope("acme", *DAYS, short_code="sale"),
    Scope("acme", *DAYS, no_domain=True),
    Scope("acme", *DAYS, traffic_type="ai"),
    Scope("acme", *DAYS, traffic_type="other"),
    Scope("acme", *DAYS, traffic_group="ai"),
    Scope("acme", *DAYS, tag="sale", country="DE"),
    Scope("acme", *DAYS, tag="go.example/sale sale"),
    Scope("acme", *DAYS, traffic_group="bots", short_code="sale"),
    Scope("acme", *DAYS, "sale", "go.example", "ai_referral"),
    Scope("acme", *DAYS, status="404", agent="GPTBot", ai_source="ChatGPT"),
    Scope("acme", *DAYS, utm_source="mail", utm_campaign="unknown", path="/sale"),
    Scope("acme", *DAYS, device_type="desktop", browser="Firefox", operating_system="Windows"),
    Scope("acme", date(2027, 3, 1), date(2027, 3, 1)),
][: None if IS_LONG else 4]
FILTERED = SCOPES[1:3]
SUBJECT = {"number": 0, "domain": "go.example", "path": "/gone", "short_code": "launch", "agent": "GPTBot",
           "operator": "OpenAI", "ai_source": "ChatGPT"}  # fmt: skip
BOUNDED = ("referrers", "utm-campaigns", "domain-breakdown", "bot-traffic")


def some_visit(random):
    """Return a visit with random values, among them null and strings equal to the name of the row `(other)`."""
    kind = random.choice([*CATEGORY_OF_KIND, *[None] * 6])
    category = CATEGORY_OF_KIND.get(kind, "human")
    is_ai, is_bot = category.startswith("ai"), category not in {"human", "ai_referral"}
    words = {
        "domain": ("go.example", "go.example", "a.example", None, "ünï.example", "(other)"),
        "short_code": ("launch", "sale", "a", "B_c", None),
        "path": ("/launch", "/sale", "/", "", "/.well-known/x", "/a", "/robots.txt", "/gone", "/A\\b'c\n%"),
        "status": (200, 302, 404, 410, 403, 500, 503, None, 301),
        "ai_source": ("ChatGPT", "Claude", None) if is_ai else (None,),
        "agent": ("GPTBot", "ClaudeBot", "curl", None, "(other)") if is_bot else (None,),
        "operator": ("OpenAI", "Anthropic", None) if is_ai else (None,),
        "confidence": ("verified", "high", "medium", "low", "contradicted", None),
        "detection_method": ("ip", "ua", None),
        "device_type": ("desktop", "mobile", "tablet", "bot", None),
        "operating_system": ("Windows", "iOS", None),
        "browser": ("Firefox", None, "Chrome"),
        "country": ("DE", "US", "XK", "ZZ", None),
        "referrer": (None, "www.google.co.uk", "news.example.org", "t.co", "x", "(other)", "android-app://com.twitter"),
        "referrer_type": ("direct", "search", "social", "ai", None),
        "utm_source": (None, None, "x", "(other)"),
        "utm_medium": (None, "m", "(other)"),
        "utm_campaign": (None, "c", "(other)"),
        "utm_term": (None, None, "t"),
        "visitor": (None, 2**63 - 1, -(2**63), 1, 2, 3, 4, 5),
        "is_malicious": (True, *[False] * 9),
        "protocol": ("HTTP/2", "HTTP/1.1", None),
        "utc_offset": (None, 0, -210, 345, 840, -720),
    }
    moment = datetime(2026, 3, 1, 12) + timedelta(random.randrange(27), 0, random.randrange(24 * 3_600 * 10**6))
    values = {name: random.choice(choices) for name, choices in words.items()}
    return visit(**values, visited_at=moment, bot_category=category, agent_kind=kind)


def crowd():
    """Yield the visits of one day, with more words than are kept for a day."""
    moment = datetime(2026, 3, 3)
    for number in range(MAX_VALUES_PER_DAY + 60):
        word = f"{number % (MAX_VALUES_PER_DAY + 30):05}"
        person = {"referrer": word, "referrer_type": "other", "utm_source": word, "utm_campaign": word, "domain": word}
        yield visit(**person, visited_at=moment, visitor=number % 7)
        if number % 100 == 0:
            yield visit(visited_at=moment, domain=None, bot_category="other_bot", agent=None)
        yield visit(visited_at=moment, domain=word, bot_category="other_bot", agent=word, agent_kind="other")


def take_a_column_away(lake):
    """Rewrite acme's files as a version without the column `protocol` would have written them."""
    for file in lake.manifest.files.live("acme"):
        path = lake.root / file.path
        visits = pq.read_table(path, partitioning=None).drop_columns("protocol")
        write_parquet([visits], visits.schema, path)
        with database_of(lake.manifest).transaction() as db:
            row = [sha256_of(path), path.stat().st_size, SCHEMA_VERSION - 1, file.path]
            db.execute("UPDATE files SET sha256 = ?, bytes = ?, schema_version = ? WHERE path = ?", row)


@pytest.fixture(scope="module")
def lakes(tmp_path_factory):
    folder = tmp_path_factory.mktemp("lakes")
    random = Random(3)
    sample = Lake(folder / "sample", create=True)
    land(sample, "acme", [some_visit(random) for _ in range(1_500)] + planted() + OWN_LINKS)
    land(sample, "bee", [some_visit(random) for _ in range(50)])
    links(sample, "acme", [
        {"short_code": "sale", "target_url": "https://x.example/1", "tags": ["<b>", "mail"]},
        {"short_code": "sale", "domain": "a.example", "target_url": "https://x.example/2", "tags": ["mail"]},
        {"short_code": "launch", "domain": "go.example", "target_url": "https://x.example/3"},
        {"short_code": "never", "target_url": "https://x.example/4", "tags": ["x"]},
    ])  # fmt: skip
    links(sample, "bee", [{"short_code": "a", "target_url": "https://b.example/1"}])
    crowded = Lake(folder / "crowded", create=True)
    land(crowded, "acme", crowd())
    older = Lake(folder / "older", create=True)
    land(older, "acme", [some_visit(random) for _ in range(300)])
    take_a_column_away(older)
    land(older, "acme", [some_visit(random) for _ in range(300)])
    lakes = {"sample": sample, "crowded": crowded, "older": older}
    yield lakes
    for lake in lakes.values():
        lake.manifest.close()


@pytest.fixture(scope="module")
def session(cluster):
    """A separate session on a cluster."""
    from queries.connect import ClusterSession  # noqa: PLC0415  # it need not be installed

    session = ClusterSession(cluster.address)
    session.spark.conf.set("spark.sql.session.timeZone", "America/New_York")  # must not change any answer
    yield session
    session.close()


def snapshot_without_rollups(lake, scope):
    """Return a cluster's snapshot of a lake in which every relation counts visits."""
    with closing(Warehouse(lake)) as warehouse:
        snapshot = warehouse.snapshot(replace(scope, short_code="-"))  # no rollup serves it
        counted = replace(snapshot, uncovered_files=snapshot.files, rollups=snapshot.rollups[:1], closed_days=())
        sources = one_source("all_visits")
        return replace(counted, scope=scope, sources=sources, days_without_domains=(), subjects=[SUBJECT])


@pytest.fixture(scope="module")
def text_of(lakes):
    """Return the compiled query for a report, detector, measure or rollup relation, by its name."""
    with closing(Warehouse(lakes["sample"])) as warehouse:
        yield cache(Compiler(warehouse.describe).compiled)


def make_cluster_views(session, lake, snapshot):
    """Define, in a session, the relations that compiled queries read."""
    from queries.cluster_views import make_views  # noqa: PLC0415  # it needs pyspark

    scope = snapshot.scope
    elsewhere = for_cluster(lake, snapshot, lake.live_files(scope.organization, scope.start_date, scope.end_date))
    make_views(session, elsewhere, SharedFolder(str(lake.root)).sources(elsewhere))


def on_cluster(session, text, scope):
    arguments = {name: str(value) if isinstance(value, date) else value for name, value in asdict(scope).items()}
    return comparable(session.table(text, {**arguments, "behaviour": True, "aside": OWN}))


def on_duckdb(lake, snapshot, *statements):
    """Return the rows of each SQL statement in DuckDB; the time limit applies to all of them together."""
    with closing(Warehouse(lake, seconds=600)) as warehouse, warehouse._engine.cursor(snapshot) as cursor:
        return [comparable(cursor.sql(sql).to_arrow_table()) for sql in statements]


def comparable(table):
    """Return a table's names, types and rows, with one type for all lists: engines name list elements differently."""
    types = ["list<string>" if pa.types.is_list(field.type) else str(field.type) for field in table.schema]
    return [*zip(table.column_names, types, strict=True)], [tuple(row.values()) for row in table.to_pylist()]


@cache
def answers_here(lake, scope, *names):
    """Return the snapshot of a lake for a scope and DuckDB's answers by name; computed once for both clusters."""
    snapshot = snapshot_without_rollups(lake, scope)
    return snapshot, dict(zip(names, on_duckdb(lake, snapshot, *map(template, names)), strict=True))


def assert_alike(session, text_of, lake, scope, names, only_with_rows=False):
    snapshot, answers = answers_here(lake, scope, *names)
    make_cluster_views(session, lake, snapshot)
    expected = {name: answer for name, answer in answers.items() if answer[1] or not only_with_rows}
    with ThreadPoolExecutor(3) as threads:  # planning a query takes a cluster longer than counting these few visits
        found = threads.map(lambda name: on_cluster(session, text_of(name), scope), expected)
    for (name, expected_answer), answer in zip(expected.items(), found, strict=True):
        assert (name, *answer) == (name, *expected_answer)


@pytest.mark.parametrize("scope", SCOPES, ids=lambda scope: "-".join(str(part) for part in astuple(scope) if part))
def test_every_compiled_query_answers_like_its_original(session, cluster, text_of, lakes, scope):
    names, is_short = list(TEXTS), isinstance(cluster, Spark) and not IS_LONG
    if is_short and scope in FILTERED:
        turn = FILTERED.index(scope)
        names = [
            name for number, name in enumerate(names) if (0 if ":sorted_by" in text_of(name) else number % 2) == turn
        ]
    is_empty = scope.organization == "stranger"
    assert_alike(session, text_of, lakes["sample"], scope, names, only_with_rows=is_short and is_empty)


def test_detectors_find_planted_problems(lakes):
    """The detectors run on this machine; the test above checks that clusters give the same answers in this scope."""
    _, found = answers_here(lakes["sample"], WHOLE, *TEXTS)
    assert [name for name in (detector.entry.name for detector in DETECTORS.values()) if not found[name][1]] == []


def test_a_day_with_too_many_words_keeps_the_same_words(session, text_of, lakes):
    scope = Scope("acme", date(2026, 3, 3), date(2026, 3, 3))
    assert snapshot_without_rollups(lakes["crowded"], scope).high_cardinality_days == (date(2026, 3, 3),)
    assert_alike(session, text_of, lakes["crowded"], scope, list(BOUNDED))


def test_files_that_lack_columns_are_read_the_same_way(session, text_of, lakes):
    names = list(TEXTS) if IS_LONG else ["traffic-overview", "protocols", "bot-traffic"]
    assert_alike(session, text_of, lakes["older"], WHOLE, names)


@pytest.mark.parametrize("lake_name", ["sample", "crowded"] if IS_LONG else ["sample"])
def test_rows_of_a_monthly_rollup_are_counted_the_same_way(session, text_of, lakes, lake_name):
    lake, scope = lakes[lake_name], Scope("acme", date(2026, 3, 1), date(2026, 3, 31))
    snapshot = snapshot_without_rollups(lake, scope)
    by_domain = one_source("visits_by_domain")
    snapshot = replace(snapshot, sources=by_domain, days_without_domains=(date(2026, 3, 4),))
    make_cluster_views(session, lake, snapshot)
    relations = relation_names() if IS_LONG else ("daily_links", "daily_referrers", "monthly_agent_pages")
    texts = [f"FROM counted_{name.partition('_')[0]}('{name}')" for name in relations]
    for name, (columns, rows) in zip(relations, on_duckdb(lake, snapshot, *texts), strict=True):
        found_columns, found = on_cluster(session, text_of(f"rollups/{name}"), scope)
        assert set(found_columns) <= set(columns)
        places = [columns.index(column) for column in found_columns]
        expected = [tuple(row[place] for place in places) for row in rows]
        assert sorted(map(repr, found)) == sorted(map(repr, expected))
        others = set(range(len(columns))) - set(places)  # columns of other relations
        assert {row[place] for row in rows for place in others} <= {None}


def test_a_query_is_sent_to_the_cluster_once(session, monkeypatch):
    stub, calls = session.spark.client._stub, []

    def noted(name, call, *args, **kwargs):
        calls.append(name)
        return call(*args, **kwargs)

    for name in ("AnalyzePlan", "ExecutePlan"):
        monkeypatch.setattr(stub, name, partial(noted, name, getattr(stub, name)))
    assert session.table("SELECT :n AS n", {"n": 7}).to_pylist() == [{"n": 7}]
    assert calls == ["ExecutePlan"]
