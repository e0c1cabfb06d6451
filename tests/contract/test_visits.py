"""POST /visits returns exact JSON and keeps acknowledged visits; tests in tests/faults kill its server."""

import asyncio
import gzip
import itertools
import json
import shutil
import socket
import sqlite3
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from datetime import UTC, datetime, timedelta

import httpx2
import pyarrow.parquet as pq
import pytest

from data.ingest.live import LiveIngest
from data.store import pending
from data.store.lake import Lake
from data.store.packing import table_of, unpack
from service.core.http.caller import Caller
from service.intake import live_visits as receiving
from tests.support import identity
from tests.support.identity import bearer
from tests.support.lakes import fail_at, rows_of
from tests.support.manifests import database_of
from tests.support.sockets import Client, answer_on
from tests.support.user_agents import CHROME, GPTBOT

UNAIMED = "url or path is required: an address with http:// or https://, or a path that begins with /"
NO_OBJECT = "the visit is not a valid JSON object"
PATIENCE = 60  # seconds; anything automatic happens within twelve
FOUR = {"x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset", "retry-after"}
NAMES = itertools.count(1)


@pytest.fixture(scope="module")
def asked(shared_lake, opened):
    """The application, called by acme, with an identity provider's keys."""
    with opened(shared_lake, **identity.settings_of(shared_lake.root.parent)) as client:
        yield client


def name():
    """Return a path that is unique to the test."""
    return f"/{next(NAMES)}-path"


def row(path, **fields):
    return json.dumps({"path": path} | fields)


def send(client, *rows, **how):
    """Send rows as text, one on each line."""
    return client.post("/visits", content="\n".join(rows), **how)


def body(accepted, *errors):
    """Return the exact bytes of a response."""
    told = [f'{{"index":{index},"error":"{error}"}}' for index, error in errors]
    return f'{{"accepted":{accepted},"refused":{len(errors)},"errors":[{",".join(told)}]}}'


def kept(lake, organization="acme"):
    """Return the number of an organization's stored visits, in files or pending, by path."""
    with closing(Lake(lake.root).manifest) as manifest:
        bodies = database_of(manifest).rows("SELECT body FROM pending WHERE organization = ?", [organization])
        parts = [unpack(body) for (body,) in bodies]
        files = [lake.root / file.path for file in manifest.files.live(organization)]
    told = Counter(table_of(parts)["path"].to_pylist() if parts else [])
    return told + Counter(path for file in files for path in pq.ParquetFile(file).read(["path"])["path"].to_pylist())


# Responses


@pytest.mark.parametrize("kind", [None, "text/plain", "application/json", "nonsense"])
@pytest.mark.parametrize("is_array", [False, True])
def test_visits_may_be_lines_or_an_array_with_any_content_type(asked, shared_lake, kind, is_array):
    one, two = name(), name()
    rows = [row(one), json.dumps({"url": f"https://go.example{two}"}), row(one)]
    whole = (f"[{','.join(rows)}]" if is_array else "\n".join(rows)).encode()
    chunks = (whole[place : place + 7] for place in range(0, len(whole), 7))
    headers = {"Content-Type": kind} if kind else {}
    response = asked.post("/visits?organization=other&range=x&range=y", content=chunks, headers=headers)
    assert (response.status_code, response.text) == (202, body(3))
    assert response.headers["content-type"] == "application/json"
    assert set(response.headers) >= FOUR
    found = kept(shared_lake)
    assert (found[one], found[two]) == (2, 1)


def test_invalid_rows_are_listed_by_index_and_others_stored(asked, shared_lake):
    one, two = name(), name()
    rows = [row("x"), row(one), "nonsense", "{}", row(two), row("/", ip="203.0.113"), row("/", status="200"), "[]",
            row("/", organization="other")]  # fmt: skip
    errors = [
        (0, UNAIMED),
        (2, NO_OBJECT),
        (3, UNAIMED),
        (5, "ip is not a valid address"),
        (6, "Expected `int | null`, got `str`: status"),
        (7, "Expected `object`, got `array`"),
        (8, "Object contains unknown field `organization`"),
    ]
    response = send(asked, *rows)
    assert (response.status_code, response.text) == (202, body(2, *errors))
    response = asked.post("/visits", content=f"[{','.join(rows).replace('nonsense', '7')}]")
    errors[1] = (2, "Expected `object`, got `int`")
    assert (response.status_code, response.text) == (202, body(2, *errors))
    assert {path: kept(shared_lake)[path] for path in (one, two, "/", "x")} == {one: 2, two: 2, "/": 0, "x": 0}


def test_a_request_without_valid_visits_is_rejected_with_reasons(asked):
    response = send(asked, row("x"), "nonsense")
    assert response.status_code == 400
    assert response.json() == {
        "error": "Every visit was rejected.",
        "message": "Correct the problems in `errors`, then send the visits again.",
        "accepted": 0,
        "refused": 2,
        "errors": [{"index": 0, "error": UNAIMED}, {"index": 1, "error": NO_OBJECT}],
    }


GOOD = row("/good")
LONG = "the visit is longer than 16,384 bytes"


@pytest.mark.parametrize(
    ("content", "answer"),
    [
        *((nothing, body(0)) for nothing in ("", "\n", "[]", " [ ] ", "\r\n\r\n")),
        (f"\n\n{GOOD}\r\n\r\nx\n\n{GOOD}\n{{}}\n", body(2, (1, NO_OBJECT), (3, UNAIMED))),
        *((f"{GOOD}\n{deep * 100_000}\n{GOOD}", body(2, (1, LONG))) for deep in ("{", '{"path":', "{[")),
    ],
    ids=itertools.count(1),
)
def test_an_index_counts_only_rows_that_are_not_empty(asked, content, answer):
    response = asked.post("/visits", content=content)
    assert (response.status_code, response.text) == (202, answer)


def test_responses_do_not_repeat_submitted_values(asked):
    canary = "canary-198-51-100-23"
    fields = ("time", "ip", "method", "url", "domain", "path", "status", "user_agent", "referrer", "country")
    rows = [json.dumps({field: value}) for field in fields for value in (canary, [canary], {canary: canary})]
    response = send(asked, *rows, canary, f'{{"path": "{canary}', f'"{canary}"')
    assert response.status_code == 400
    assert response.json()["refused"] == len(rows) + 3
    assert "canary" not in response.text
    assert "198" not in response.text


def test_the_openapi_document_lists_every_status_of_post_visits(asked):
    route = asked.get("/openapi.json").json()["paths"]["/visits"]["post"]
    assert set(route["responses"]) == {
        "202", "400", "401", "403", "408", "413", "414", "429", "431", "500", "503",
    }  # fmt: skip


def test_the_openapi_document_lists_exactly_the_visit_fields(asked):
    item = asked.get("/openapi.json").json()["components"]["schemas"]["Reported"]
    assert set(item["properties"]) == {
        "time", "ip", "method", "url", "domain", "path", "status", "user_agent", "referrer", "country", "bytes_sent",
        "scheme", "sec_fetch_mode", "sec_fetch_dest", "sec_fetch_site", "sec_purpose", "accept", "accept_language",
        "signature_agent",
    }  # fmt: skip
    assert item["additionalProperties"] is False


def test_a_signature_names_the_agent_of_a_reported_visit(asked, shared_lake):
    path = name()
    assert send(asked, row(path, user_agent=CHROME, signature_agent='sig1="https://chatgpt.com"')).status_code == 202
    pending.flush_all(Lake(shared_lake.root))
    (visit,) = (visit for visit in rows_of(shared_lake) if visit["path"] == path)
    assert (visit["agent"], visit["detection_method"]) == ("ChatGPT Agent", "signature")


# Rejections

NOT_JSON = {
    "error": "The body is not a valid JSON array.",
    "message": "Send an array of objects, or one object on each line.",
}
ENCODED = {"error": "Content-Encoding is not supported.", "message": "Send it without Content-Encoding."}
VIEWER = {"error": "Viewers cannot write.", "message": "Use an API key, or an identity token with another role."}
VIEWERS = ("", "viewer", "Viewer")
"""Roles that may only read."""
TOO_MANY = {"error": "The body contains more than 10,000 visits.", "message": "Send it in several requests."}
TOO_LARGE = {"error": "The body is larger than 4 MiB.", "message": "Send it in several requests."}


@pytest.mark.parametrize(
    "content",
    ["[", "[{]", f"[{GOOD}", f"[{GOOD},]", f"[{GOOD}]\n{GOOD}", "[" * 100_000,
     f"[{GOOD},{'[' * 100_000}{']' * 100_000}]"],
    ids=itertools.count(1),
)  # fmt: skip
def test_a_malformed_array_is_rejected(asked, content):
    response = asked.post("/visits", content=content)
    assert (response.status_code, response.json()) == (400, NOT_JSON)
    assert set(response.headers) >= FOUR


def test_a_body_with_any_encoding_but_identity_is_rejected(asked):
    for encodings in (["gzip"], ["br"], ["gzip, identity"], ["GZIP"], ["x"], ["identity", "gzip"]):
        headers = [("Content-Encoding", encoding) for encoding in encodings]
        response = asked.post("/visits", content=gzip.compress(GOOD.encode()), headers=headers)
        assert (response.status_code, response.json()) == (400, ENCODED)
    for encoding in ("identity", "IDENTITY"):
        assert asked.post("/visits", content=GOOD, headers={"Content-Encoding": encoding}).text == body(1)


def test_a_body_may_have_at_most_10_000_visits_and_4_mebibytes(asked, shared_lake):
    path, most = name(), 4 << 20
    for rows, status in (([row(path)] * 10_000, 202), (["x"] * 10_000, 400)):
        response = send(asked, *rows)
        assert response.status_code == status
        assert response.json()["accepted"] + response.json()["refused"] == 10_000
    for content in ("\n".join([row(path)] * 10_001), f"[{','.join(['1'] * 10_001)}]"):
        response = asked.post("/visits", content=content)
        assert (response.status_code, response.json()) == (413, TOO_MANY)
    assert kept(shared_lake)[path] == 10_000
    whole = GOOD.encode().ljust(most, b"\n")
    assert asked.post("/visits", content=whole).text == body(1)
    for content in (whole + b"\n", (b"\n" * 65_536 for _ in range(65)), b"[" * (most + 1)):
        response = asked.post("/visits", content=content)
        assert (response.status_code, response.json()) == (413, TOO_LARGE)


@pytest.mark.parametrize("role", VIEWERS)
def test_a_viewer_may_not_write(asked, shared_lake, role):
    path = name()
    for content in (row(path), "[", "x" * 100_000):
        response = asked.post("/visits", content=content, headers=bearer(identity.token(role=role)))
        assert (response.status_code, response.json()) == (403, VIEWER)
        assert set(response.headers) >= FOUR
    assert kept(shared_lake)[path] == 0


@pytest.mark.parametrize("role", VIEWERS)
def test_a_viewer_may_read(asked, role):
    assert asked.get("/jobs", headers=bearer(identity.token(role=role))).status_code == 200


def test_a_role_other_than_viewer_may_write(asked):
    assert send(asked, row(name()), headers=bearer(identity.token(role="owner"))).text == body(1)


def test_the_first_of_several_errors_is_reported(asked, shared_lake):
    source = {"X-Forwarded-For": "203.0.113.99"}
    stranger, viewer = source | bearer("x"), source | bearer(identity.token(role="viewer"))
    path = name()

    def told(method, place, headers, content="["):
        return asked.request(method, place, headers=headers, content=content).status_code

    assert [told("PUT", "/visits/", stranger), told("PUT", "/visits", stranger)] == [401, 401]
    assert [told("PUT", "/visits/", viewer), told("POST", "/visits/x", viewer)] == [404, 404]
    assert [told("PUT", "/visits", viewer), told("GET", "/visits", viewer)] == [405, 405]
    assert asked.put("/visits").headers["allow"] == "POST"
    assert [told("POST", "/visits", viewer), told("POST", "/visits", source)] == [403, 400]
    assert [told("POST", "/visits", source, row(path)) for _ in range(52)] == [202] * 52
    assert [told("POST", "/visits", one, row(path)) for one in (source, viewer, stranger)] == [429] * 3
    assert told("GET", "/jobs", source) == 429
    assert kept(shared_lake)[path] == 52
    refused = asked.post("/visits", headers=source, content=row(path)).json()
    assert (refused["error"], refused["limit"], refused["remaining"]) == ("Rate limit exceeded.", 60, 0)


# Organizations of visits


def test_visits_are_stored_for_the_tokens_organization(asked, shared_lake, key_of):
    mine, yours, thirds = name(), name(), name()
    assert send(asked, row(mine)).text == body(1)
    assert send(asked, row(yours), headers=bearer(key_of(shared_lake, "other"))).text == body(1)
    assert send(asked, row(thirds), headers=bearer(identity.token("third"))).text == body(1)
    for organization, path in (("acme", mine), ("other", yours), ("third", thirds)):
        found = kept(shared_lake, organization)
        assert [found[one] for one in (mine, yours, thirds)] == [int(one == path) for one in (mine, yours, thirds)]


def test_reported_visits_are_visible_only_to_their_organization(lake, opened, key_of):
    person = {"user_agent": CHROME, "ip": "203.0.113.7"}
    rows = [
        row("/sale", time="2026-03-15T11:59:59Z", **person),
        row("/sale", time="2026-03-15T11:00:00Z", **person, referrer="https://chatgpt.com/"),
        row("/sale", time="2026-03-14T23:30:00-01:00", user_agent=GPTBOT, country="us"),
        row("/sale", time=1_773_446_400, user_agent="curl/8.9.1", method="HEAD"),
        row("/sale", user_agent="ChatGPT-User/1.0", status=404),
        row("/sale", user_agent="claude-code/2.1"),
    ]
    other = bearer(key_of(lake, "other"))
    with opened(lake) as client:
        assert send(client, *rows).text == body(6)
        assert send(client, row("/sale", **person), headers=other).text == body(1)
        assert client.get("/analytics/traffic-overview").json()["total_visits"] == 0
    with opened(lake) as client:
        assert client.get("/analytics/traffic-overview", params={"range": "7d"}).json() == {
            "total_visits": 6,
            "human_clicks": 1,
            "ai_visits": 4,
            "ai_assistant_requests": 1,
            "ai_training_requests": 1,
            "ai_coding_agent_requests": 1,
            "ai_referral_requests": 1,
            "other_visits": 1,
            "ai_percentage": 66.67,
        }
        assert client.get("/analytics/time-series", params={"range": "7d"}).json()[-3:] == [
            {"date": f"2026-03-{day}", "total_visits": total, "human_clicks": human, "ai_visits": ai,
             "mobile_visits": 0, "desktop_visits": desktop}
            for day, total, human, ai, desktop in ((13, 0, 0, 0, 0), (14, 1, 0, 0, 0), (15, 5, 1, 4, 2))
        ]  # fmt: skip
        assert client.get("/analytics/traffic-overview", headers=other).json()["total_visits"] == 1


# Common commits


@pytest.fixture
def gate(monkeypatch):
    """A gate that lets no group of visits land until it opens, and records each group's number of senders; its `begin`
    starts a sender.
    """
    land, gate = receiving.VisitReceiver._store, threading.Event()
    gate.groups = []

    def held(receiver, group):
        gate.receiver = receiver
        gate.groups.append(len(group))
        assert gate.wait(60)
        return land(receiver, group)

    monkeypatch.setattr(receiving.VisitReceiver, "_store", held)
    with ThreadPoolExecutor(32) as pool:
        gate.begin = lambda *sent: pool.submit(send, *sent)
        yield gate
        gate.set()


def until(condition, pause=0.005):
    """Wait until a condition is true."""
    given_up = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < given_up
        time.sleep(pause)


def wait_at(gate, senders):
    """Wait until this number of senders queue behind the gate."""
    until(lambda: gate.groups == [1] and gate.receiver._commits.count_pending("") == senders)


def test_waiting_visits_are_committed_in_one_transaction(client, lake, gate, monkeypatch):
    transactions = []
    monkeypatch.setattr(pending, "enqueue", lambda *args, keep=pending.enqueue: transactions.append(1) or keep(*args))
    first = gate.begin(client, row("/first"))
    wait_at(gate, 0)
    others = [gate.begin(client, row(f"/{number}"), row("x")) for number in range(6)]
    wait_at(gate, 6)
    assert client.get("/healthz").status_code == 200  # reads continue
    assert not any(sender.done() for sender in (first, *others))
    assert kept(lake) == {}
    gate.set()
    assert first.result().text == body(1)
    assert [sender.result().text for sender in others] == [body(1, (1, UNAIMED))] * 6
    assert gate.groups == [1, 6]
    assert len(transactions) == 2
    assert kept(lake) == {"/first": 1} | {f"/{number}": 1 for number in range(6)}


async def test_small_posts_past_a_limit_take_turns(lake, monkeypatch):
    steps, caller = [], Caller("acme", "editor", "key", is_key=True)

    def counted(intake, batch, store=LiveIngest.store):
        steps.append(sum(len(one.submission.rows) for one in batch if not one.is_complete))
        return store(intake, batch)

    monkeypatch.setattr(LiveIngest, "store", counted)
    receiver = receiving.VisitReceiver(lambda: LiveIngest(lake), lambda _: False)
    body = "\n".join([row("/small")] * 10).encode()
    landed = await asyncio.gather(*(receiver._land(body, caller) for _ in range(100)))
    await receiver.close()
    assert sum(one.accepted for one in landed) == 1_000
    assert max(steps) <= receiving.MAX_WITHOUT_TURN
    assert kept(lake) == {"/small": 1_000}


async def test_an_organizations_large_bodies_are_parsed_one_by_one(lake, monkeypatch):
    steps, prepare, caller = [], LiveIngest.prepare, Caller("acme", "editor", "key", is_key=True)
    monkeypatch.setattr(LiveIngest, "prepare", lambda *both: steps.append(both[1]) or prepare(*both))
    receiver = receiving.VisitReceiver(lambda: LiveIngest(lake), lambda _: False)
    body = "\n".join(row(f"/{number}", user_agent=f"agent {number}") for number in range(9_000)).encode()
    landed = await asyncio.gather(*(receiver._land(body, caller) for _ in range(3)))
    await receiver.close()
    assert sum(one.accepted for one in landed) == 27_000
    assert [prepared for prepared, _ in itertools.groupby(steps)] == [*dict.fromkeys(steps)]
    assert len(steps) > 3  # each took several steps


FULL = {"error": "Nothing was stored: the disk is full or failing.", "message": "Retry later."}


def test_on_a_failing_disk_writes_fail_and_reads_work(client, lake, monkeypatch):
    assert send(client, row("/before")).status_code == 202
    full = sqlite3.OperationalError("database or disk is full")

    def failing(error):
        def failing(*_):
            raise error

        return failing

    for place, error in (
        ("data.ingest.live.daily_salts", OSError(28, "No space left")),
        ("data.store.pending.enqueue", full),
        ("data.manifest.generation.SharedDatabase.transaction", full),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(place, failing(error))
            for _ in range(2):
                response = send(client, row("/lost", time="2026-03-01T00:00:00Z"))
                assert (response.status_code, response.json()) == (503, FULL)
                assert response.headers["retry-after"] == "5"
                assert set(response.headers) >= FOUR
                assert client.get("/analytics/traffic-overview").status_code == 200
                assert client.get("/healthz").status_code == 200
    assert send(client, row("/after", time="2026-03-01T00:00:00Z")).text == body(1)
    assert kept(lake) == {"/before": 1, "/after": 1}


def test_no_visit_is_acknowledged_while_the_lake_is_moved_away(client, lake):
    assert send(client, row("/before")).status_code == 202
    away = lake.root.with_name("away")
    lake.root.rename(away)
    shutil.copytree(away, lake.root)
    assert (response := send(client, row("/lost"))).status_code == 503, response.text
    shutil.rmtree(lake.root)
    assert send(client, row("/lost")).status_code == 503
    away.rename(lake.root)
    assert send(client, row("/after")).status_code == 202
    assert kept(lake) == {"/before": 1, "/after": 1}


def test_a_group_that_cannot_be_stored_is_not_acknowledged(client, lake, gate, monkeypatch):
    first = gate.begin(client, row("/first"))
    wait_at(gate, 0)
    others = [gate.begin(client, row(f"/{number}")) for number in range(4)]
    wait_at(gate, 4)
    full = sqlite3.OperationalError("database or disk is full")
    fail_at(monkeypatch, pending, "enqueue", 2, error=full)
    gate.set()
    assert [sender.result().status_code for sender in (first, *others)] == [202] + [503] * 4
    assert send(client, row("/after")).status_code == 202
    assert kept(lake) == {"/first": 1, "/after": 1}


@pytest.mark.parametrize("place", ["data.ingest.live.pending.enqueue", "data.ingest.live.shared_classifier"])
def test_visits_are_accepted_again_after_an_unexpected_failure(client, lake, monkeypatch, place):
    with monkeypatch.context() as patch:
        patch.setattr(place, lambda *_: 1 / 0)
        response = send(client, row("/lost"))
    assert (response.status_code, list(response.json())) == (500, ["error", "message"])
    assert send(client, row("/kept")).status_code == 202
    assert kept(lake) == {"/kept": 1}


# A real server

FLUSH_EACH_SECOND = """
import datetime, service.ops.maintenance
service.ops.maintenance.FLUSH_AFTER = datetime.timedelta(seconds=1)
"""


@pytest.fixture(scope="module")
def served(tmp_path_factory, serving, key_of):
    """acme's client for a running server that flushes every second, and the server's lake."""
    lake = Lake(tmp_path_factory.mktemp("served") / "lake", create=True)
    with closing(lake.manifest), serving(lake, before=FLUSH_EACH_SECOND, trusted_proxies="127.0.0.1") as server:
        yield Client(server.port, key_of(lake)), lake
        server.process.terminate()
        assert server.process.wait(60) == 0
        told = server.process.stderr.read().splitlines()
        assert {line for line in told if "traffic sign-in" not in line} <= {"WARNING:  Invalid HTTP request received."}


def calling(caller):
    headers = {"Authorization": caller.authorization, "X-Forwarded-For": f"2001:db8:0:{next(Client.sources):x}::1"}
    address = f"http://127.0.0.1:{caller.port}"
    return httpx2.Client(base_url=address, headers=headers, trust_env=False, verify=False, timeout=60)


def head(caller, *lines):
    """Return the beginning of a request that reports visits, up to its body."""
    return caller.request(b"/visits", *lines, method=b"POST")


def told_on(connection):
    """Return the status and body of the next response."""
    status, _, told = answer_on(connection)
    return status, told.decode()


def chunk(text):
    return b"%x\r\n%s\r\n" % (len(text), text.encode())


def test_slow_chunks_delay_no_other_request(served):
    caller, lake = served
    one, two = name(), name()
    with caller.connected() as slow, calling(caller) as client:
        slow.sendall(head(caller, b"Transfer-Encoding: chunked"))
        slow.sendall(chunk(row(one)[:7]))
        assert send(client, row(two)).text == body(1)
        slow.sendall(chunk(row(one)[7:]))
        assert send(client, row(two)).text == body(1)
        slow.sendall(chunk("\nx") + b"0\r\n\r\n")
        assert told_on(slow) == (202, body(1, (1, "the visit is not a valid JSON object")))
    assert {path: kept(lake)[path] for path in (one, two)} == {one: 1, two: 2}


@pytest.mark.parametrize("how", [b"Content-Length: 1000", b"Transfer-Encoding: chunked"])
def test_no_visit_of_a_truncated_body_is_stored(served, how):
    caller, lake = served
    path = name()
    with calling(caller) as client:
        for _ in range(3):
            with caller.connected() as connection:
                whole = row(path) + "\n"
                connection.sendall(head(caller, how) + (chunk(whole) if b"chunked" in how else whole.encode()))
            assert send(client, row("/early")).text == body(1)
    assert kept(lake)[path] == 0


@pytest.mark.parametrize("size", [100, 200_000])
def test_a_rejected_body_is_not_read_as_the_next_request(served, size):
    caller, lake = served
    path, smuggled = name(), name()
    inner = head(caller, b"Content-Length: %d" % len(row(smuggled))) + row(smuggled).encode()
    sent = inner + b" " * size
    refused = head(caller, b"Authorization: Bearer tak_x", b"Content-Length: %d" % len(sent)) + sent
    with caller.connected() as connection:
        connection.sendall(refused)
        assert told_on(connection)[0] == 401
        with suppress(ConnectionError):  # closed if the response came before the end of the body
            connection.sendall(head(caller, b"Content-Length: %d" % len(row(path))) + row(path).encode())
            assert told_on(connection) == (202, body(1))
    assert kept(lake)[smuggled] == 0


def test_each_visit_from_many_concurrent_senders_is_counted_once(served, tell):
    """At the same time, other connections send a visit and disconnect immediately, half of them with a reset."""
    caller, lake = served
    paths = {f"/many-{sender}-{turn}-{number}" for sender in range(12) for turn in range(4) for number in range(5)}
    statuses, barrier = [], threading.Barrier(12)

    def sender(number):
        with calling(caller) as client:
            barrier.wait()
            for turn in range(4):
                with caller.connected() as leaving:
                    whole = row(f"/left-{number}-{turn}").encode()
                    leaving.sendall(head(caller, b"Content-Length: %d" % len(whole)) + whole)
                    if turn % 2:
                        leaving.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
                rows = [
                    row(f"/many-{number}-{turn}-{place}", user_agent=CHROME, domain="many.example")
                    for place in range(5)
                ]
                statuses.append(send(client, *rows).text)

    with ThreadPoolExecutor(12) as pool:
        [*pool.map(sender, range(12))]
    acknowledged = time.monotonic()
    assert statuses == [body(5)] * 48
    assert {path: count for path, count in kept(lake).items() if path in paths} == dict.fromkeys(paths, 1)

    today = datetime.now(UTC).date()  # computed once: after midnight the same query would be sent twice

    def visible(days):
        """Return the answer to a new query, which is not cached."""
        scope = {"start_date": today - timedelta(days=days), "end_date": "2999-01-01", "domain": "many.example"}
        with calling(caller) as client:
            return client.get("/analytics/traffic-overview", params=scope).json()["total_visits"]

    days = itertools.count()
    until(lambda: visible(next(days)) >= len(paths), pause=0.1)
    tell(seconds_until_visible=round(time.monotonic() - acknowledged, 1))
    assert visible(next(days)) == len(paths)
    found = kept(lake)
    assert {path: count for path, count in found.items() if path in paths} == dict.fromkeys(paths, 1)
    assert max((count for path, count in found.items() if "left" in path), default=1) == 1
