"""The machine-readable contract: it is valid OpenAPI 3.1, complete, and matches real responses."""

import re
import sqlite3
import tomllib
from datetime import UTC, datetime
from itertools import product

import msgspec
import pytest
from jsonschema import Draft202012Validator, FormatChecker

from data import BOT_CATEGORIES
from data.rules.exclusions import Exclusion
from data.visits import CATEGORY_OF_KIND
from queries import CATALOG
from service.app import openapi
from service.app.operations import OPERATIONS
from service.exclusions.choices import rule_id
from service.jobs.store import Jobs
from tests.recount import WORDS
from tests.service.jobs.findings import broken
from tests.support.control import open_store
from tests.support.forks import ROOT
from tests.support.tables import tables
from tests.support.visits import land, links, visit

COMMON = ["range", "start_date", "end_date", "domain", "short_code", "target_url", "tag", "traffic_group", *WORDS]
PARAMETERS = {
    "/analytics/bot-traffic": [*COMMON[:8], "traffic_type", *WORDS],
    "/analytics/domain-breakdown": [name for name in COMMON if name != "short_code"],
    "/implementations/active": ["domain"],
}
"""The parameters of exceptional routes: all other routes under /analytics/ have COMMON, and the rest have none."""
ROUTES = {f"/analytics/{entry.name}": "get" for entry in CATALOG} | tables(__file__)["routes"]
"""All routes in order, with their methods."""
FORMATS = FormatChecker(formats=["date", "date-time"])


@pytest.fixture(scope="module")
def asked(shared_lake, opened):
    """The application over visits of every category, some of them with more columns set."""
    kinds = {category: kind for kind, category in CATEGORY_OF_KIND.items()}
    known = {"short_code": "a", "country": "DE", "visitor": -(2**63), "utm_source": "mail", "status": 404}
    visits = []
    for category, day, extra in product(BOT_CATEGORIES, (2, 4, 14), ({}, known)):
        sure = {} if category == "human" else {"confidence": "high", "detection_method": "user_agent"}
        source = {"ai_source": "ChatGPT"} if category.startswith("ai_") else {}
        moment = datetime(2026, 3, day, day, 1, 2, 345_678)
        columns = {"bot_category": category, "agent_kind": kinds.get(category), **sure, **source, **extra}
        visits.append(visit(visited_at=moment, **columns))
    land(shared_lake, "acme", visits)
    links(shared_lake, "acme", [{"short_code": "a", "target_url": "https://shop.example/"}])
    with opened(shared_lake) as client, sqlite3.connect(shared_lake.root / "control.sqlite") as database:
        database.execute(
            "INSERT INTO jobs (id, organization, type, status, title, created_at, updated_at) "
            "VALUES ('1', 'acme', 'patch', 'open', 't', '2026-03-01T00:00:00Z', '2026-03-01T00:00:00Z')"
        )
        database.commit()
        yield client
    database.close()


@pytest.fixture(scope="module")
def document(asked):
    return asked.get("/openapi.json", headers={"Authorization": ""}).json()


def schema(document, path, status="200", method=None):
    item = document["paths"][path]
    response = (item[method] if method else operation(item))["responses"][status]
    while "$ref" in response:
        response = document["components"]["responses"][response["$ref"].rpartition("/")[2]]
    return response["content"]["application/json"]["schema"]


def operation(item):
    """Return a path's operation for its first method."""
    return next(iter(item.values()))


def readable(document):
    """Return the paths that answer a GET request without ids, except settings, agent hooks and exclusions."""
    others = ("/settings/", "/jobs/", "/links/", "/agent-hooks", "/exclusions")
    return [path for path, item in document["paths"].items() if "get" in item and not path.startswith(others)]


def complaints(document, found, answer):
    """Return the violations of a schema by the body of a response or request."""
    known = found | {"components": document["components"]}
    return [error.message for error in Draft202012Validator(known, format_checker=FORMATS).iter_errors(answer)]


def test_the_document_is_valid_openapi_3_1(document):
    """The validator is slow to import, so it is imported here: only the process that runs this test pays for it."""
    from openapi_spec_validator import OpenAPIV31SpecValidator  # noqa: PLC0415

    assert document["openapi"].startswith("3.1.")
    OpenAPIV31SpecValidator(document).validate()


def test_the_document_has_the_version_of_the_program(document):
    assert document["info"]["version"] == tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]


def test_the_document_lists_exactly_the_routes(document):
    assert [(path, " ".join(item)) for path, item in document["paths"].items()] == [*ROUTES.items()]
    for path, item in document["paths"].items():
        if "{" in path:
            continue
        parameters = operation(item).get("parameters", [])
        given = [one["$ref"].rpartition("/")[2] for one in parameters if "$ref" in one]
        usual = COMMON if path.startswith("/analytics/") else []
        assert given == PARAMETERS.get(path, usual), path
    ranges = document["components"]["parameters"]["range"]["schema"]
    assert (ranges["enum"], ranges["default"]) == (["7d", "30d", "90d"], "30d")


def routes_of(document):
    return [found for item in document["paths"].values() for found in item.values()]


def test_every_route_has_a_unique_operation_id(document):
    ids = [route["operationId"] for route in routes_of(document)]
    assert len(set(ids)) == len(ids)


def test_every_route_is_described(document):
    assert all(len(route["summary"]) > 10 for route in routes_of(document))


def test_the_document_requires_a_token_for_all_but_two_routes(document):
    public = [path for path, item in document["paths"].items() if operation(item).get("security") == []]
    assert public == ["/healthz", "/openapi.json"]
    assert document["security"] == [{"bearer": []}]


def test_the_document_lists_the_headers_of_every_response(document):
    four = {"X-Request-Id", "X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset", "Retry-After"}
    answers = [answer for route in routes_of(document) for answer in route["responses"].values()]
    responses = [answer for answer in answers if "$ref" not in answer]
    responses += document["components"]["responses"].values()
    assert all(set(answer["headers"]) == four for answer in responses)


@pytest.mark.parametrize("query", ["", "short_code=nobody"])
def test_every_answer_matches_the_document(asked, document, query):
    for path in readable(document):
        answer = asked.get(f"{path}?{query}")
        assert answer.status_code == 200
        assert complaints(document, schema(document, path), answer.json()) == [], path
    assert all(asked.get(path).json() for path in readable(document) if path != "/implementations/active")


def test_every_error_matches_the_document(asked, document):
    while (limited := asked.get("/analytics/devices", headers={"X-Forwarded-For": "203.0.113.1"})).status_code == 200:
        pass
    unknown = asked.get("/analytics/devices", headers={"Authorization": ""})
    paths = [path for path in document["paths"] if path.startswith("/analytics/")]
    for answer, status in ((asked.get("/analytics/devices?range=x"), 400), (unknown, 401), (limited, 429)):
        assert answer.status_code == status
        for path in paths:
            assert complaints(document, schema(document, path, str(status)), answer.json()) == []


def test_responses_to_visits_match_the_openapi_document(asked, document):
    sent = [{"url": "https://go.example/a", "time": 1_772_600_000}, {"nonsense": 1}]
    for rows, status in ((sent, 202), (sent[1:], 400)):
        answer = asked.post("/visits", json=rows)
        assert answer.status_code == status
        assert complaints(document, schema(document, "/visits", str(status)), answer.json()) == []
    rows = operation(document["paths"]["/visits"])["requestBody"]["content"]["application/json"]["schema"]
    assert complaints(document, rows, sent[:1]) == []
    assert complaints(document, rows, sent)


def test_every_route_except_public_routes_requires_a_token(asked, document):
    four = {"x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset", "retry-after"}
    for path, item in document["paths"].items():
        for method, found in item.items():
            answer = asked.request(method, re.sub(r"{\w+}", "1", path), headers={"Authorization": ""})
            assert answer.status_code == (200 if found.get("security") == [] else 401), (method, path)
            assert answer.headers["content-type"] == "application/json"
            assert four <= set(answer.headers)
            assert isinstance(answer.json(), dict)


def test_every_example_is_accepted_by_its_operation():
    examples = [(one.body, body) for one in OPERATIONS for body in one.examples.values()]
    assert len(examples) == 7
    for kind, body in examples:
        assert msgspec.convert(body, kind)


def test_responses_to_writes_match_the_openapi_document(asked, document, shared_lake):
    with open_store(Jobs, shared_lake) as jobs:
        jobs.upsert(broken(), datetime(2026, 3, 15, tzinfo=UTC))
    job = next(row["id"] for row in asked.get("/jobs").json() if row["type"] == "broken_link")
    hook = asked.post("/agent-hooks", json={"name": "n", "url": "https://hooks.example/"}).json()["id"]
    (delivery,) = asked.post(f"/agent-hooks/{hook}/test").json().values()
    of_room = {"agent-hooks": hook, "exclusions": rule_id(Exclusion("path", "/admin"))}
    ids = {"{number}": "1", "{domain}": "go.example", "{short_code}": "new", "{delivery}": delivery}
    for method, path, body, status in tables(__file__)["test_responses_to_writes_match_the_openapi_document"]:
        address = path.replace("{id}", of_room.get(path.split("/")[1], job))
        for name, value in ids.items():
            address = address.replace(name, value)
        answer = asked.request(method, address, json=body)
        assert answer.status_code == status, answer.text
        assert complaints(document, schema(document, path, str(status), method), answer.json()) == [], path


def test_an_extra_or_missing_field_violates_the_document(asked, document):
    for path in readable(document):
        answer = asked.get(path).json()
        if path.startswith("/analytics/") and isinstance(answer, list):
            found, first = schema(document, path), answer[0]
            assert found["type"] == "array"
            assert complaints(document, found, [first | {"more": 1}])
            for name in first:
                assert complaints(document, found, [{key: first[key] for key in first if key != name}]), name


def test_only_five_answers_are_typed_as_objects(document):
    objects = [path for path in readable(document) if schema(document, path)["type"] == "object"]
    names = ["dashboard", "traffic-overview", "weekly-trend"]
    assert objects == [*(f"/analytics/{name}" for name in names), "/healthz", "/openapi.json"]


def test_the_base_path_is_the_server_in_the_document():
    urls = [openapi.document(base_path)["servers"] for base_path in ("", "/v1", "/a/b")]
    assert urls == [[{"url": "/"}], [{"url": "/v1"}], [{"url": "/a/b"}]]
