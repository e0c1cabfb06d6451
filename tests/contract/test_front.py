"""Headers of every response, and log lines and metrics of every request."""

import asyncio
import itertools
import json
import logging
import random
import re
import socket
import sys
from collections import Counter
from io import BytesIO
from urllib.parse import quote

import pytest

from service.core.logs import Log, LogHandler
from tests.support.sockets import read_until

STANDING = {
    "x-content-type-options": "nosniff",
    "cache-control": "private, no-store",
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
    "referrer-policy": "no-referrer",
}
OVERVIEW = "/analytics/traffic-overview"


@pytest.fixture
def logged(lake, opened):
    """An application with a log that can be read: (client, lines)."""
    stream = BytesIO()
    log = Log(stream)

    def lines():
        log.close()
        return [json.loads(line) for line in stream.getvalue().splitlines()]

    with opened(lake, log=log) as client:
        yield client, lines


# Headers


def test_responses_have_the_standard_headers_and_a_unique_id(client):
    asked = [("GET", OVERVIEW, 200), ("GET", OVERVIEW, 200), ("GET", "/nothing", 404), ("POST", OVERVIEW, 405),
             ("GET", f"{OVERVIEW}?range=x", 400), ("GET", "/healthz", 200), ("POST", "/visits", 202)]  # fmt: skip
    answers = [client.request(method, path) for method, path, _ in asked]
    answers.append(client.get(OVERVIEW, headers={"Authorization": "x"}))
    answers += [client.get("/healthz", headers={"X-Forwarded-For": "203.0.113.1"}) for _ in range(61)]
    assert [answer.status_code for answer in answers] == [*(status for *_, status in asked), 401, *[200] * 60, 429]
    for answer in answers:
        assert {name: answer.headers.get_list(name) for name in STANDING} == {k: [v] for k, v in STANDING.items()}
        assert "server" not in answer.headers
    numbers = {answer.headers["x-request-id"] for answer in answers}
    assert len(numbers) == len(answers)
    assert all(re.fullmatch("[0-9a-f]{16}", number) for number in numbers)


def test_a_query_with_a_body_is_rejected_whether_cached_or_not(client):
    for body in (b"abc", iter([b"abc"])):  # with a length, and in chunks
        client.get(OVERVIEW)
        response = client.request("GET", OVERVIEW, content=body)
        assert (response.status_code, response.json()["error"]) == (400, "This endpoint takes no body.")


# Pages of other sites

APP, EVIL = "https://app.example", "https://evil.example"
ASKS = {"Access-Control-Request-Method": "GET"}


def test_other_origins_may_not_read_answers_by_default(client):
    assert client.options(OVERVIEW, headers={"Origin": APP, **ASKS}).status_code == 405
    assert "access-control-allow-origin" not in client.get(OVERVIEW, headers={"Origin": APP}).headers


def test_only_configured_origins_may_read_answers(lake, opened):
    with opened(lake, cors_origins=f"{APP},http://localhost:3000") as client:
        for origin in (APP, EVIL):
            answers = [client.get(OVERVIEW, headers={"Origin": origin}) for _ in range(2)]  # computed, then cached
            one = {"X-Forwarded-For": "203.0.113.1", "Origin": origin}
            while (limited := client.get("/healthz", headers=one)).status_code == 200:
                pass
            answers += [limited, client.get(OVERVIEW, headers=one)]
            assert [answer.status_code for answer in answers] == [200, 200, 429, 429]
            allowed = {answer.headers.get("access-control-allow-origin") for answer in answers[::3]}
            assert allowed == {APP if origin == APP else None}
            assert limited.json()["limit"] == 60
            assert client.options(OVERVIEW, headers={**one, **ASKS}).status_code == 429
            wishes = {"Origin": origin, **ASKS, "Access-Control-Request-Headers": "authorization", "Authorization": ""}
            preflight = client.options(OVERVIEW, headers=wishes)
            assert preflight.status_code == (200 if origin == APP else 400)
            assert "access-control-allow-credentials" not in preflight.headers
    assert preflight.json()["error"] == "Cross-origin request refused."
    assert "GET, POST, PUT, PATCH, DELETE" in preflight.json()["message"]
    assert "app.example" not in preflight.text + str(preflight.headers)
    assert {"Origin", "Access-Control-Request-Method"} <= {*preflight.headers["vary"].split(", ")}


@pytest.mark.parametrize("origins", ["", APP], ids=["no sites", "one site"])
def test_every_answer_to_another_origin_is_json(lake, opened, origins):
    limits = ("x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset", "retry-after")
    statuses = Counter()
    with opened(lake, cors_origins=origins) as client:
        paths = [*client.get("/openapi.json").json()["paths"], "/nothing"]
        wishes = [{}, *({"Access-Control-Request-Method": method} for method in ("GET", "DELETE"))]
        wishes += [ASKS | {"Access-Control-Request-Headers": "x-secret"}]
        wishes += [ASKS | {"Access-Control-Request-Private-Network": "true"}]
        for number, path in enumerate(paths):
            for origin, wish in itertools.product((APP, EVIL), wishes[:: 1 if number % 9 == 0 else 2]):
                answer = client.options(path, headers={"Origin": origin, "Authorization": "", **wish})
                assert answer.headers.get_list("content-type") == ["application/json"], (path, origin, wish)
                assert all(len(answer.headers.get_list(name)) == 1 for name in limits)
                assert list(answer.json()) == (["status"] if answer.status_code == 200 else ["error", "message"])
                allowed = origins == origin and answer.status_code == 200
                assert not allowed or answer.headers["access-control-allow-origin"] == origin
                statuses[answer.status_code] += 1
    assert statuses.keys() == ({200, 400, 401, 405} if origins else {401, 405})


# The log


def test_each_request_logs_one_line_without_client_text(logged, tell):
    client, lines = logged
    evil = ["\r\nx", "\0", "\x1b[2J", "\u2028", "\u202e", "é", "canary", "%0d%0aSet-Cookie:%20a", "x" * 8_000]
    chance, sent = random.Random(1), 80
    for _ in range(sent):
        word = chance.choice(evil)
        told = "".join(letter for letter in word if letter.isprintable() and letter.isascii()) + "canary"
        headers = {"User-Agent": told, "Referer": told, "X-Forwarded-For": "203.0.113.99"}
        headers |= chance.choice([{}, {"Authorization": f"Bearer {told}"}])
        text = quote(word)
        path = chance.choice([OVERVIEW, f"/{text}", f"/settings/api-keys/{text}", f"/links/{text}/{text}", "/visits"])
        method = chance.choice(["GET", "POST", "PUT", "DELETE", "BREW"])
        client.request(method, path, params={"domain": word, word[:20]: "canary"}, headers=headers)
    told = lines()
    assert [line["event"] for line in told] == ["request"] * sent
    assert len({line["id"] for line in told}) == sent
    keys = {"/settings/api-keys/{id}", "/settings/api-keys"}
    assert {line["route"] for line in told} <= {OVERVIEW, "", *keys, "/links/{domain}/{short_code}", "/visits"}
    assert {line["method"] for line in told} == {"GET", "POST", "PUT", "DELETE", ""}
    assert not re.search("canary|203.0.113|198.51.100|tak_", json.dumps(told))
    tell(requests=sent, lines=len(told), words_of_clients=0)


def test_a_log_line_has_the_request_and_its_outcome(logged):
    client, lines = logged
    answers = [client.get(path) for path in (OVERVIEW, OVERVIEW, "/x")]
    answers.append(client.get("/healthz", headers={"Authorization": ""}))
    told = lines()
    names = ["at", "level", "event", "id", "method", "route", "status", "ms", "organization"]
    assert [list(line) for line in told] == [names] * 4
    assert [line["id"] for line in told] == [answer.headers["x-request-id"] for answer in answers]
    assert [(line["route"], line["status"], line["organization"]) for line in told] == [
        (OVERVIEW, 200, "acme"), (OVERVIEW, 200, "acme"), ("", 404, "acme"), ("/healthz", 200, None),
    ]  # fmt: skip
    assert all(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", line["at"]) for line in told)


def test_an_unexpected_error_logs_its_location_not_its_message(logged, monkeypatch):
    client, lines = logged

    def failing(*_):
        raise ValueError("canary")

    monkeypatch.setattr("queries.warehouse.Warehouse.answer", failing)
    response = client.get(OVERVIEW)
    assert (response.status_code, list(response.json())) == (500, ["error", "message"])
    failure, request = lines()
    assert (failure["event"], failure["id"], failure["error"]) == ("failure", request["id"], "ValueError")
    assert failure["places"][-1].endswith(" failing")
    assert "canary" not in json.dumps(failure)


def test_warnings_from_lower_floors_are_logged():
    stream = BytesIO()
    log = Log(stream)
    handler = LogHandler(log)
    logger = logging.getLogger("tests.of.the.log")
    logger.addHandler(handler)
    logger.warning("a %s", "warning")
    try:
        raise KeyError("canary")
    except KeyError:
        logger.exception("it failed")
    log.close()
    first, second = map(json.loads, stream.getvalue().splitlines())
    assert (first["level"], first["event"], first["message"]) == ("warning", "tests.of.the.log", "a warning")
    assert (second["message"], second["error"]) == ("it failed", "KeyError")
    assert "canary" not in json.dumps(second)


def test_a_broken_log_pipe_does_not_stop_the_server():
    class Gone(BytesIO):
        def write(self, _):
            raise BrokenPipeError

    log = Log(Gone())
    for number in range(100):
        log.line("info", "x", number=number)
    log.close()
    assert not log._thread.is_alive()


def test_log_lines_dropped_for_a_slow_reader_are_counted(monkeypatch):
    monkeypatch.setattr("service.core.logs.MAX_WAITING_LINES", 10)
    reader, writer = socket.socketpair()
    writer.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4_096)
    log = Log(writer.makefile("wb", buffering=0))
    for number in range(500):
        log.line("info", "x", number=number, padding="x" * 1_000)
    reader.settimeout(10)
    log._is_closing.set()
    told = read_until(reader, lambda told: b"dropped" in told)
    counts = Counter(json.loads(line)["event"] for line in told.splitlines() if line.endswith(b"}"))
    assert counts["x"] < 500
    reader.close()
    writer.close()


# The metrics


@pytest.fixture
def metrics(client):
    """Return the metrics after four requests."""
    for path in (OVERVIEW, OVERVIEW, "/nothing/canary", "/settings/api-keys/x"):
        client.get(path)
    return asyncio.run(client.app.metrics.text()).decode()


def test_requests_are_counted_by_route_method_and_status(metrics):
    assert f'traffic_requests_total{{method="GET",route="{OVERVIEW}",status="200"}} 2.0' in metrics
    assert 'traffic_requests_total{method="GET",route="",status="404"} 1.0' in metrics
    assert 'traffic_requests_total{method="GET",route="/settings/api-keys/{id}",status="405"} 1.0' in metrics


def test_response_times_are_counted_by_route(metrics):
    assert f'traffic_request_seconds_count{{route="{OVERVIEW}"}} 2.0' in metrics
    assert f'traffic_request_seconds_bucket{{le="+Inf",route="{OVERVIEW}"}} 2.0' in metrics


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells what a process takes")
def test_metrics_contain_the_process_memory(metrics):
    assert "process_resident_memory_bytes" in metrics


@pytest.mark.parametrize("word", ["canary", "acme"])
def test_metrics_contain_no_path_and_no_organization(metrics, word):
    assert word not in metrics
