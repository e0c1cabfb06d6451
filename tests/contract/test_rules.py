"""The rules of the contract, and our decisions where it is silent, over HTTP."""

import threading
from datetime import date, datetime, timedelta
from functools import partial

import pytest

from data import BOT_CATEGORIES
from queries import CATALOG, ENDPOINTS, PARAMETERS, catalog, warehouse
from tests.support.tables import examples, examples_at_once, tables
from tests.support.visits import land, links, visit

TODAY = date(2026, 3, 15)
HEADERS = ("x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset", "retry-after")
AGENTS = {
    category: visit(bot_category=category, agent=category, device_type="bot", ai_source="ChatGPT", short_code="bot")
    for category in BOT_CATEGORIES
}
LINKS = [
    {"short_code": "Sale", "target_url": "https://Shop.Example:443/Path/"},
    {"short_code": "old", "target_url": "https://shop.example/two", "created_at": datetime(2026, 1, 1)},
    {"short_code": "new", "target_url": "https://shop.example/two/", "created_at": datetime(2026, 1, 3)},
    {"short_code": "mid", "target_url": "HTTPS://SHOP.example/two", "created_at": datetime(2026, 1, 2)},
    {"short_code": "root", "target_url": "http://shop.example:80?a=1"},
    {"short_code": "port", "target_url": "https://shop.example:8443/Path"},
]


@pytest.fixture(scope="module")
def asked(shared_lake, opened):
    """A client for a lake with visits and links of acme and of a neighbour."""
    codes = [*["Sale"] * 2, *["sale"] * 4, *["new"] * 8, *["old"] * 16, *["root"] * 32, *[None] * 64]
    visits = [visit(short_code=code) for code in codes]
    visits += [visit(short_code="Sale", domain="b.example"), *AGENTS.values()]
    land(shared_lake, "acme", visits)
    links(shared_lake, "acme", LINKS)
    land(shared_lake, "neighbour", [visit(short_code=code) for code in ("Sale", "theirs")])
    links(shared_lake, "neighbour", [{"short_code": "theirs", "target_url": "https://neighbour.example/"}])
    with opened(shared_lake) as client:
        yield client


@pytest.fixture
def answer(asked):
    """Return the answer of an endpoint to a query."""

    def answer(endpoint, query):
        response = asked.get(f"/analytics/{endpoint}", params=query)
        assert response.status_code == 200, response.text
        return response.json()

    return answer


@pytest.fixture
def total(answer):
    """Return the number of visits in the scope of a query."""
    return lambda **query: answer("traffic-overview", query)["total_visits"]


@pytest.fixture
def days(answer):
    """Return the first and the last day of a query's scope."""

    def days(**query):
        found = [date.fromisoformat(row["date"]) for row in answer("time-series", query)]
        assert found == [found[0] + timedelta(number) for number in range(len(found))]
        return str(found[0]), str(found[-1])

    return days


@pytest.fixture
def refusal(asked):
    """Return the error of a rejected query."""

    def refusal(endpoint="traffic-overview", **query):
        response = asked.get(f"/analytics/{endpoint}", params=query)
        assert response.status_code == 400, response.text
        return problem(response)

    return refusal


def problem(response):
    """Return the body of an error, which always has the same form."""
    body = response.json()
    assert response.headers["content-type"] == "application/json"
    assert list(body) == ["error", "message"]
    assert all(isinstance(body[name], str) and body[name] for name in ("error", "message"))
    assert all(response.headers[name].isdigit() for name in HEADERS)
    return body


# Days


@examples("query", "first", "last")
def test_dates_and_range_determine_the_days_of_a_query(days, query, first, last):
    """Custom dates override `range`, but a single date has no effect; a future end is capped at today."""
    assert days(**query) == (first, last)


@pytest.mark.parametrize(
    ("start", "end"),
    [("2026-03-16", "2026-03-17"), ("2026-03-02", "2026-03-01"), (TODAY - timedelta(3_700), "2999-01-01")],
)
def test_a_future_reversed_or_overlong_period_is_rejected(refusal, start, end):
    assert "start_date" in refusal(start_date=start, end_date=end)["error"]


@examples_at_once("written", "day")
def test_a_date_time_selects_its_utc_day(days, written, day):
    assert days(start_date=written, end_date=written) == (f"2026-03-0{day}",) * 2


@pytest.mark.parametrize("name", ["start_date", "end_date"])
def test_the_error_for_a_malformed_date_names_its_parameter(refusal, name):
    for value in tables(__file__)["MALFORMED_DATES"]:
        body = refusal(**{"start_date": "2026-03-01", "end_date": "2026-03-05"} | {name: value})
        assert name in body["error"], value
        assert "2026-11-20" in body["message"]


def test_the_error_for_an_unknown_range_lists_the_allowed_ranges(refusal):
    for word in ("1d", "7D", "30", "365d", "7d,30d", "week"):
        body = refusal(range=word)
        assert "range" in body["error"], word
        assert all(allowed in body["message"] for allowed in ("7d", "30d", "90d"))


# Parameters


@pytest.mark.parametrize(
    "query",
    [
        {"unknown": "x" * 9_999},
        [("unknown", "1"), ("unknown", "2")],
        [("traffic_type", "ai"), ("traffic_type", "human")],
        {"RANGE": "nonsense"},
        {"range": "", "start_date": "", "end_date": "", "short_code": "", "target_url": "", "domain": ""},
        {"start_date": "2026-02-14", "end_date": "2026-03-15", "range": "nonsense"},
    ],
)
def test_parameters_without_effect_are_ignored(asked, query):
    plain = asked.get("/analytics/dashboard").content
    response = asked.get("/analytics/dashboard", params=query)
    assert (response.status_code, response.content) == (200, plain)


@pytest.mark.parametrize("name", PARAMETERS)
def test_a_repeated_or_overlong_parameter_is_rejected(asked, refusal, name):
    days = {"start_date": "2026-03-01", "end_date": "2026-03-02"}
    value = {"range": "7d", "traffic_type": "ai", "traffic_group": "ai", "status": "404", **days}.get(name, "a")
    response = asked.get("/analytics/bot-traffic", params=[*(days | {name: value}).items(), (name, value)])
    assert response.status_code == 400
    assert name in problem(response)["error"]
    assert name in refusal("bot-traffic", **days | {name: "x" * 2_049})["error"]


def test_the_case_of_a_domain_is_ignored(total):
    assert total(domain="B.Example") == total(domain="b.example") == 1


def test_the_case_of_a_short_code_matters(total):
    assert [total(short_code=code) for code in ("Sale", "sale", "SALE")] == [3, 4, 0]


def test_filters_by_short_code_and_domain_are_combined(total):
    assert total(short_code="Sale", domain="b.EXAMPLE") == 1


@pytest.mark.parametrize("name", ["short_code", "target_url", "domain"])
def test_a_filter_by_arbitrary_text_gives_an_empty_answer(asked, total, name):
    for value in ("\0", "'", '"', "' OR 1=1 --", "%", "\\", "💥", "\ufeff", "NULL", "{}", "a\r\nb", "ü" * 2_048,
                  "🤖" * 2_048):  # fmt: skip
        assert total(**{name: value}) == 0
    response = asked.get(f"/analytics/traffic-overview?{name}=%ff%fe%ed%a0%80")  # not UTF-8
    assert (response.status_code, response.json()["total_visits"]) == (200, 0)


# Targets


@examples_at_once("written")
def test_target_urls_are_normalized_before_they_are_compared(total, written):
    assert total(target_url=written) == total(short_code="Sale") == 3  # for every domain
    assert total(target_url=written, domain="b.example") == 1


def test_a_target_selects_the_visits_of_its_newest_link(total):
    for written in ("http://shop.example/?a=1", "http://shop.example?a=1", "HTTP://shop.example:80/?a=1"):
        assert total(target_url=written) == 32
    assert total(target_url="https://shop.example:8443/Path") == 0
    assert total(target_url="https://shop.example/two") == total(short_code="new") == 8
    assert total(target_url="https://shop.example/two", short_code="sale") == 8


@examples_at_once("written")
def test_an_unknown_target_selects_no_visits(answer, total, written):
    assert total(target_url=written) == total(target_url=written, short_code="Sale") == 0
    for endpoint in ("top-links", "domain-breakdown"):
        assert answer(endpoint, {"target_url": written}) == []


def test_domain_breakdown_ignores_short_code_but_not_target_url(answer):
    def domains(query):
        return {row["domain"]: row["visits"] for row in answer("domain-breakdown", query)}

    everything = domains("")
    assert everything["b.example"] == 1
    for ignored in ("short_code=Sale", "short_code=x", "short_code=a&short_code=b", f"short_code={'x' * 2_049}"):
        assert domains(ignored) == everything
    for more in ("", "&short_code=x"):
        assert domains(f"target_url=https://shop.example/Path{more}") == {"go.example": 2, "b.example": 1}
    assert domains("domain=b.example") == {"b.example": 1}


# traffic_type


AI = {f"ai_{kind}" for kind in ("assistant", "training", "coding_agent", "referral")}
OTHER = {"search_crawler", "other_bot"}


@pytest.mark.parametrize(
    ("word", "found"),
    [*((word, {word} - {"human"}) for word in BOT_CATEGORIES), ("", {*AI, *OTHER} - {"ai_referral"}), ("ai", AI),
     ("assistant", {"ai_assistant"}), ("training-crawler", {"ai_training"}), ("coding-agent", {"ai_coding_agent"}),
     ("AI-referral", {"ai_referral"}), ("other", OTHER)],
)  # fmt: skip
def test_bot_traffic_accepts_a_traffic_type_in_any_letter_case(answer, word, found):
    for spelling in (word, word.upper(), word.lower(), word.title()):
        rows = answer("bot-traffic", {"traffic_type": spelling})
        assert {row["bot_category"] for row in rows} == found, spelling


def test_filter_values_list_every_traffic_type_in_answers(answer):
    filters = {row["filter"]: row["values"] for row in answer("filter-values", {})}
    values = [row["traffic_type"] for row in answer("traffic-value-breakdown", {})]
    assert set(filters["traffic_type"]) == set(values) == set(BOT_CATEGORIES)
    assert answer("bot-traffic", {}) == answer("bot-traffic", {"traffic_type": ""})


def test_an_unknown_traffic_type_gets_the_list_of_allowed_types(refusal):
    body = refusal("bot-traffic", traffic_type="robots")
    assert "traffic_type" in body["error"]
    words = {*BOT_CATEGORIES, "assistant", "training-crawler", "coding-agent", "ai-referral", "other", "ai"}
    told = body["message"].lower().removeprefix("use one of ").removesuffix(".")
    assert set(told.split(", ")) == words


def test_a_traffic_group_in_any_letter_case_selects_its_visits(total):
    """People sent by AI are in two groups, so the groups add up to more than all visits."""
    found = {group: total(traffic_group=group) for group in ("people", "AI", "Bots", "")}
    assert found == {"people": 129, "AI": 4, "Bots": 2, "": 134}


def test_bot_traffic_in_a_group_omits_ai_referrals_by_default(answer):
    for group, found in {"people": set(), "ai": AI - {"ai_referral"}, "bots": OTHER}.items():
        assert {row["bot_category"] for row in answer("bot-traffic", {"traffic_group": group})} == found
    sent = {"traffic_group": "people", "traffic_type": "ai"}
    assert {row["bot_category"] for row in answer("bot-traffic", sent)} == {"ai_referral"}


def test_all_endpoints_but_bot_traffic_ignore_a_traffic_type(asked):
    for name in ENDPOINTS.keys() - {"bot-traffic"}:
        plain = asked.get(f"/analytics/{name}")
        assert asked.get(f"/analytics/{name}?traffic_type=ai").content == plain.content


# Routes and errors


def test_every_endpoint_names_an_invalid_parameter(refusal):
    for entry in CATALOG:
        assert "range" in refusal(entry.name, range="nonsense")["error"]


@examples_at_once("path")
def test_an_unknown_path_is_404_and_never_a_redirect(asked, path):
    response = asked.get(f"http://testserver{path}?range=nonsense")
    assert response.status_code == 404
    problem(response)
    assert asked.post(f"http://testserver{path}").status_code == 404
    assert asked.get(f"http://testserver{path}", headers={"Authorization": "Bearer x"}).status_code == 401


@examples("path", "allowed")
def test_a_disallowed_method_gets_405_with_the_allowed_methods(asked, path, allowed):
    for method in {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "QUERY"} - {*allowed.split()}:
        response = asked.request(method, f"{path}?range=nonsense")
        assert (response.status_code, {*response.headers["allow"].split(", ")}) == (405, {*allowed.split()}), method
        if method == "HEAD":
            assert response.content == b""
        else:
            problem(response)


def test_head_is_get_without_a_body(asked):
    for path in ("/analytics/devices", "/jobs", "/agent-hooks"):
        head, get = asked.head(path), asked.get(path)
        assert (head.status_code, head.content) == (200, b"")
        assert head.headers["content-length"] == str(len(get.content))
        assert (set(head.headers), head.headers["content-type"]) == (set(get.headers), get.headers["content-type"])


def test_no_response_header_reveals_a_version(asked):
    for path in ("/analytics/devices", "/nothing", "/healthz"):
        headers = asked.get(path).headers
        assert not [name for name in headers if "version" in name or name in ("server", "x-powered-by")]


def test_a_base_path_prefixes_all_routes(lake, opened):
    land(lake, "acme", [visit()])
    with opened(lake, base_path="/v1/") as client:
        for path in ("/analytics/traffic-overview", "/jobs", "/healthz", "/openapi.json"):
            assert client.get(f"/v1{path}").status_code == 200
            assert client.get(path).status_code == 404
            assert client.get(path, headers={"Authorization": ""}).status_code == 401
        assert client.get("/v1").status_code == client.get("/v1/").status_code == 404
        assert client.get("/v1/healthz", headers={"Authorization": ""}).json() == {"status": "ok"}
        assert client.get("/v1/openapi.json", headers={"Authorization": ""}).json()["servers"] == [{"url": "/v1"}]
        assert client.get("/v1/nothing").json()["message"] == "The routes are listed at /v1/openapi.json."


# Failures


@pytest.mark.parametrize("name", ["traffic-overview", "weekly-trend-weeks"])
def test_a_dashboard_with_a_failing_member_hides_the_cause(client, monkeypatch, name):
    def template(asked):
        return "SELECT error('out of order')" if asked == name else catalog.template(asked)

    with monkeypatch.context() as patch:
        patch.setattr(warehouse, "template", template)
        response = client.get("/analytics/dashboard")
        assert client.get("/analytics/browsers").status_code == 200
    assert response.status_code == 500
    problem(response)
    assert "out of order" not in response.text
    assert client.get("/analytics/dashboard").status_code == 200  # a failure is not cached


def test_tampered_visits_give_500_and_are_not_served(lake, client):
    land(lake, "acme", [visit()])
    (file,) = (lake.root / "visits" / "organization=acme").rglob("*.parquet")
    whole = file.read_bytes()
    file.write_bytes(whole[:-9] + b"x" + whole[-8:])
    for name in ("dashboard", "devices"):
        response = client.get(f"/analytics/{name}")
        assert response.status_code == 500
        problem(response)
    file.unlink()
    assert client.get("/analytics/devices").status_code == 500
    assert client.get("/healthz").status_code == 200
    file.write_bytes(whole)
    assert client.get("/analytics/devices").json()[0]["visits"] == 1


def test_a_query_past_its_time_limit_gets_500_with_advice(lake, opened, monkeypatch):
    endless = "SELECT count(*) FROM range(1000000000000) AS a, range(1000000) AS b WHERE a.range * b.range = 7"
    monkeypatch.setattr("service.app.application.Warehouse", partial(warehouse.Warehouse, seconds=0.2))
    with opened(lake) as client:
        monkeypatch.setattr(warehouse, "template", lambda _: endless)
        response = client.get("/analytics/devices")
    assert response.status_code == 500
    assert problem(response)["message"].startswith("Request fewer days or a single link")


# The dashboard


def test_dashboard_members_see_the_same_visits_while_others_land(lake, client, monkeypatch):
    land(lake, "acme", [visit()])
    turn = threading.Lock()
    left = iter(range(3))

    def template(name):
        with turn:
            if next(left, None) is not None:
                land(lake, "acme", [visit()])
        return catalog.template(name)

    monkeypatch.setattr(warehouse, "template", template)
    answer = client.get("/analytics/dashboard").json()
    assert next(left, None) is None
    assert answer["overview"]["total_visits"] == 1
    for member in ("devices", "geographic", "browsers", "referrers", "hourlyActivity"):
        assert sum(row["visits"] for row in answer[member]) == 1, member
    for member in (answer["timeSeries"], answer["weeklyTrend"]["weekly"]):
        assert sum(row["total_visits"] for row in member) == 1
