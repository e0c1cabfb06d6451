"""Every endpoint over HTTP returns the exact answer for a few visits, with its fields in order.

test_answers.json has the examples: visits (a kind, and changed columns), a query, and the answer.
tests/queries/test_recount.py recounts everything else.
"""

import itertools
import json
import sqlite3
from datetime import UTC, datetime
from pathlib import Path

import pytest

from queries import ENDPOINTS
from tests.recount import DASHBOARD
from tests.support.identity import bearer
from tests.support.visits import land, links, visit

WEEK = {"start_date": "2026-03-02", "end_date": "2026-03-08"}  # Monday to Sunday
CONTENT = json.loads(Path(__file__).with_suffix(".json").read_text("utf-8"))
EXAMPLES, KINDS = CONTENT["examples"], CONTENT["kinds"]
OF_NOTHING = CONTENT["of_nothing"]
OF_NOTHING["dashboard"] = {member: OF_NOTHING.get(name, []) for member, name in DASHBOARD.items()}
VALUES = """
currency = "EUR"
[value_per_visit]
human = 0.25
ai_training = 0
ai_referral = 1000000
other_bot = 0.0001
"""


def written(answer):
    """Return an answer as text, so that the order of fields counts, and 0 is not 0.0."""
    return json.dumps(answer, indent=1, ensure_ascii=False)


def came(who, times=1, visited_at="2026-03-04T12:30", **columns):
    """Return this many equal visits of a kind."""
    return [visit(**KINDS[who] | columns, visited_at=datetime.fromisoformat(visited_at))] * times


def expected(example):
    """Return an example's answer; if the answer is a list, the example names its fields once."""
    fields = example.get("fields", "").split()
    return [dict(zip(fields, row, strict=True)) for row in example["rows"]] if fields else example["answer"]


class Asked:
    """The application; each call queries a new organization."""

    _numbers = itertools.count()

    def __init__(self, lake, client, key_of):
        self.lake = lake
        self.client = client
        self._key_of = key_of

    def organization(self):
        name = f"tenant-{next(Asked._numbers)}"
        return name, bearer(self._key_of(self.lake, name))

    def get(self, path, headers, **query):
        response = self.client.get(path, params=query, headers=headers)
        assert (response.status_code, response.headers["content-type"]) == (200, "application/json"), response.text
        return response.json()

    def __call__(self, name, visits=(), rows=(), **query):
        organization, headers = self.organization()
        if visits:
            land(self.lake, organization, visits)
        if rows:
            links(self.lake, organization, rows)
        return self.get(f"/analytics/{name}", headers, **WEEK | query)


@pytest.fixture(scope="module")
def ask(shared_lake, opened, key_of):
    """Query a new organization, next to another organization with visits and links for the same short codes."""
    codes = ("a", "b", "sale", "000", "0000", None)
    land(shared_lake, "stranger", [row | {"short_code": code} for code in codes for who in KINDS for row in came(who)])
    links(shared_lake, "stranger", [{"short_code": code, "target_url": "https://secret"} for code in codes if code])
    with opened(shared_lake, clock=lambda: datetime(2026, 3, 31, 12, tzinfo=UTC)) as client:
        yield Asked(shared_lake, client, key_of)


@pytest.fixture(scope="module")
def ask_of_value(shared_lake, opened, key_of, tmp_path_factory):
    """Query with configured values for visits."""
    values = tmp_path_factory.mktemp("values") / "values.toml"
    values.write_text(VALUES)
    with opened(shared_lake, values=values) as client:
        yield Asked(shared_lake, client, key_of)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: f"{example['ask']}: {example['name']}")
def test_an_answer_matches_its_example(ask, example, request):
    asked = request.getfixturevalue("ask_of_value") if example.get("is_valued") else ask
    visits = [row for group in example["visits"] for row in came(**group)]
    answer = asked(example["ask"], visits, example.get("links", ()), **example.get("query", {}))
    assert written(answer) == written(expected(example))


def test_every_endpoint_has_an_example():
    assert {example["ask"] for example in EXAMPLES} == ENDPOINTS.keys() - {"dashboard"}


def test_without_visits_answers_are_zero_or_empty(ask):
    _, headers = ask.organization()
    for name in ENDPOINTS:
        assert written(ask.get(f"/analytics/{name}", headers, **WEEK)) == written(OF_NOTHING.get(name, [])), name


def test_only_the_hundred_top_links_are_listed(ask):
    codes = [f"{number:03}" for number in range(101)]
    visits = [visit(short_code=code) for code in (*codes, "100", *[None] * 98)]
    rows = ask("top-links", visits)
    assert [row["short_code"] for row in rows] == ["100", *codes[:99]]
    assert [row["percentage"] for row in rows] == [1.0, *([0.5] * 99)]


@pytest.mark.parametrize(("many", "truncated"), [(1000, False), (1001, True)])
def test_at_most_a_thousand_filter_values_are_listed(ask, many, truncated):
    codes = [f"{number:04}" for number in range(many)]
    known = [{"short_code": code, "target_url": f"https://t/{code}"} for code in codes]
    rows = ask("filter-values", [visit(short_code=code) for code in codes], known)
    found = {row["filter"]: (row["values"], row["truncated"]) for row in rows}
    assert found["short_code"] == (codes[:1000], truncated)
    assert found["target_url"] == ([f"https://t/{code}" for code in codes[:1000]], truncated)
    assert found["domain"] == (["go.example"], False)


def test_the_filter_values_with_the_most_visits_are_listed(ask):
    codes = [f"{number:04}" for number in range(1001)]
    rows = ask("filter-values", [visit(short_code=code) for code in (*codes, "1000")])
    assert rows[1] == {"filter": "short_code", "values": [*codes[:999], "1000"], "truncated": True}


def test_dashboard_members_equal_the_answers_of_their_endpoints(ask):
    name, headers = ask.organization()
    land(ask.lake, name, [row for who in KINDS for row in came(who, short_code="a", country="DE")])
    dashboard = ask.get("/analytics/dashboard", headers, **WEEK)
    assert list(dashboard) == [
        "overview", "timeSeries", "aiSources", "devices", "topLinks", "weeklyTrend", "aiPlatformMarketShare",
        "referrers", "geographic", "browsers", "operatingSystems", "hourlyActivity", "botTraffic",
    ]  # fmt: skip
    for member, endpoint in DASHBOARD.items():
        assert written(dashboard[member]) == written(ask.get(f"/analytics/{endpoint}", headers, **WEEK)), member
    assert all(dashboard.values())


UNUSED = {
    "entries": 0, "hits": 0, "misses": 0, "hit_rate": None, "evictions": 0, "bytes": 0, "ttl_seconds": 300,
    "oldest_age_seconds": None,
}  # fmt: skip
"""The statistics of an answer that was never requested."""


@pytest.fixture
def mine(ask):
    """Return the headers of an organization without visits."""
    return ask.organization()[1]


@pytest.fixture
def statistics(ask, mine):
    """Return the cache statistics of an organization, by endpoint."""

    def statistics(**query):
        return {row["scope"]: row for row in ask.get("/analytics/cache-stats", mine, **query)}

    return statistics


def test_cache_stats_have_a_row_for_each_endpoint(statistics):
    found = statistics()
    assert list(found) == ["total", *ENDPOINTS]
    for scope, row in found.items():
        assert written(row) == written({"scope": scope} | UNUSED)


def test_cache_stats_count_only_the_organizations_requests(ask, mine, statistics):
    _, others = ask.organization()
    before, sizes = statistics(), {}
    for headers, query in [
        (mine, {}),  # a miss
        (mine, {"range": "30d", "unknown": "x", "traffic_type": "x"}),  # the same query
        (mine, {"start_date": "2026-03-02", "end_date": "2099-01-01"}),  # the same days
        (mine, {"domain": "GO.example"}),  # a miss
        (mine, {"domain": "go.example"}),
        (others, {}),  # another organization's miss
        (others, {"domain": "unseen.example"}),
    ]:
        response = ask.client.get("/analytics/devices", params=query, headers=headers)
        sizes[response.content] = len(response.content)
    after = statistics()
    age = after["total"]["oldest_age_seconds"]
    used = {"entries": 2, "hits": 3, "misses": 2, "hit_rate": 60, "bytes": 2 * sum(sizes.values())}
    used = UNUSED | used | {"oldest_age_seconds": age}
    assert isinstance(age, int)
    assert after == before | {scope: {"scope": scope} | used for scope in ("total", "devices")}


def test_cache_stats_count_a_dashboard_and_its_members(ask, mine, statistics):
    for hits in (0, 1):
        ask.client.get("/analytics/dashboard", headers=mine)
        held = statistics()
        assert (held["dashboard"]["hits"], held["dashboard"]["misses"], held["browsers"]["misses"]) == (hits, 1, 1)


def test_cache_stats_depend_on_no_parameter(ask, mine, statistics):
    ask.client.get("/analytics/dashboard", headers=mine)
    held = statistics(range="7d", domain="any.example")
    assert (held["dashboard"]["hits"], held["dashboard"]["misses"], held["browsers"]["misses"]) == (0, 1, 1)


def test_cache_stats_reject_an_invalid_parameter(ask, mine):
    assert ask.client.get("/analytics/cache-stats", params={"range": "1d"}, headers=mine).status_code == 400


def test_jobs_are_sorted_newest_first_then_by_id(ask):
    name, headers = ask.organization()
    assert ask.get("/jobs", headers) == []
    fields = ("id", "organization", "type", "status", "title", "created_at", "updated_at")
    unset = {"priority": "low", "domain": None, "short_code": None, "path": None, "summary": "", "action_id": None}
    unset |= {"evidence_rows": 0, "implementation_type": None, "implementation_status": None}
    unset |= {"outcome_status": "none", "last_detected_at": None, "version": 1}
    jobs = [
        ("a", name, "patch", "open", "Ünï'x\"", "2026-03-01T08:00:00Z", "2026-03-01T08:00:00Z"),
        ("c", name, "edge_page", "done", "Tie", "2026-03-02T08:00:00Z", "2026-03-02T09:30:00Z"),
        ("b", name, "patch", "open", "Tie", "2026-03-02T08:00:00Z", "2026-03-02T08:00:00Z"),
        ("z", "stranger", "patch", "open", "Not mine", "2026-03-03T08:00:00Z", "2026-03-03T08:00:00Z"),
    ]
    with sqlite3.connect(ask.lake.root / "control.sqlite") as database:
        database.executemany(f"INSERT INTO jobs ({', '.join(fields)}) VALUES (?, ?, ?, ?, ?, ?, ?)", jobs)
    database.close()
    rows = [dict(zip(fields, job, strict=True)) | unset for job in (jobs[1], jobs[2], jobs[0])]
    assert written(ask.get("/jobs", headers, range="nonsense")) == written(rows)
