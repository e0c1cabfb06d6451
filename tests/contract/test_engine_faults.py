"""The service survives endless queries, disconnecting clients, overload, and a crashing engine."""

import asyncio
import itertools
import json
import os
import select
import statistics
import threading
import time
from contextlib import ExitStack, closing, contextmanager
from datetime import date
from pathlib import Path

import duckdb
import pyarrow.parquet as pq
import pytest

import queries.warehouse
from data.disk.files import sha256_of
from queries import (
    ENTRIES,
    ClusterTimeout,
    EngineLost,
    FilesGone,
    QueryFailed,
    QueryTimeout,
    Scope,
    Warehouse,
    template_entries,
)
from queries.locked_engine import QUERY_TIMEOUT_SECONDS, LockedEngine
from queries.watchdog import Watchdog
from service.access.sessions import SessionStore
from service.core.http.pools import MAX_REQUESTS, Workers
from service.core.http.problems import problem_of
from service.reports.answers import Answers
from service.reports.cache import AnswerCache
from tests.faults.trials import scaled
from tests.support.control import open_store
from tests.support.manifests import database_of
from tests.support.sockets import Client, answer_on
from tests.support.sql import rows
from tests.support.visits import land, visit

DAYS = (date(2026, 3, 2), date(2026, 3, 8))
WEEK = "start_date=2026-03-02&end_date=2026-03-08"
OVERVIEW = ENTRIES["traffic-overview"]
FOR_EVER = "SELECT count(*) FROM range(10000000) AS a(x), range(10000000) AS b(y) WHERE (x + y) % 7 = x"
SLOW_TO_FETCH = "SELECT unnest(range(1000)) FROM range(100000000)"
LIMIT = 0.4
"""Time limit of a query in these tests, in seconds."""


@pytest.fixture
def workers():
    with closing(Workers()) as workers:
        yield workers


# A query past its time limit


@pytest.mark.parametrize("by", ["engine", "watchdog", "engine and watchdog"])
def test_a_query_after_a_cancelled_query_is_answered(lake, by):
    if by == "engine" and duckdb.__version__.startswith("1."):
        pytest.skip("DuckDB 1.5 has no limit of its own")
    land(lake, "acme", [visit()])
    took = []
    with closing(Warehouse(lake, seconds=LIMIT if "engine" in by else 60)) as warehouse:
        warehouse._engine._watchdog.close()
        warehouse._engine._watchdog = Watchdog(LIMIT if "watchdog" in by else 60)
        snapshot = warehouse.snapshot(Scope("acme", *DAYS))
        for sql in (FOR_EVER, SLOW_TO_FETCH):
            begun = time.monotonic()
            with pytest.raises(QueryTimeout):
                rows(warehouse, sql, snapshot)
            took.append(time.monotonic() - begun)
            assert warehouse.answer(OVERVIEW, snapshot)["total_visits"] == 1
    assert max(took) < 5


def test_a_cancelled_query_is_interrupted_until_it_ends():
    class Deaf:
        heard = 0

        def interrupt(self):
            self.heard += 1

    watchdog, query, cancelled = Watchdog(60), Deaf(), threading.Event()
    with watchdog.watching(query, cancelled):
        cancelled.set()
        watchdog.check_now()
        until(lambda: query.heard >= 3)
    heard = query.heard
    time.sleep(0.1)
    assert query.heard == heard
    watchdog.close()


async def test_waiting_in_the_queue_does_not_count_as_query_time(lake, monkeypatch, workers):
    land(lake, "acme", [visit()])
    monkeypatch.setattr(queries.warehouse, "template", with_condition("sleep_ms(300) IS NULL"))
    scopes = [Scope("acme", *DAYS, domain=f"d{number}.example") for number in range(5 * ((os.cpu_count() or 1) + 1))]
    with closing(Warehouse(lake, seconds=1)) as warehouse:
        begun, answers = time.monotonic(), Answers(warehouse, AnswerCache(), workers)
        bodies = await asyncio.gather(*(answers.body(OVERVIEW, scope) for scope in scopes))
        assert {body.partition(b",")[0] for body in bodies} == {b'{"total_visits":0'}
        assert time.monotonic() - begun > 1


async def test_finished_parts_of_a_timed_out_dashboard_are_kept(lake, workers):
    land(lake, "acme", [visit()])
    slow, asked, dashboard = ["geographic"], [], ENTRIES["dashboard"]

    class LikeACluster(Warehouse):
        def answer(self, entry, snapshot, cancelled=None):
            asked.append(entry.name)
            if entry.name in slow:  # at once, before others have begun
                raise ClusterTimeout("the query ran longer than 120 seconds on the cluster; it was stopped.")
            return super().answer(entry, snapshot, cancelled)

    with closing(LikeACluster(lake)) as engine:
        answers = Answers(engine, AnswerCache(), workers)
        with pytest.raises(ClusterTimeout):
            await answers.body(dashboard, Scope("acme", *DAYS))
        assert {*asked} >= {leaf.name for leaf in template_entries(dashboard)}
        asked.clear()
        slow.clear()
        body = json.loads(await answers.body(dashboard, Scope("acme", *DAYS)))
        assert set(body) == {name for name, _ in dashboard.members}
        assert asked == ["geographic"]


def test_the_error_about_a_timed_out_query_names_a_remedy():
    assert problem_of(QueryTimeout("x")).body["message"].startswith("Request fewer days or a single link, or retry ")
    assert problem_of(ClusterTimeout("x")).body["message"].endswith(" are cached for five minutes.")


def test_a_query_exceeding_memory_fails_but_the_next_is_answered(lake, opened, monkeypatch):
    many = "CASE WHEN getvariable('domain') = 'large' THEN 3000000 ELSE 1 END"
    large = f"(SELECT max(a) FROM (SELECT row_number() OVER (ORDER BY hash(x)) AS a FROM range({many}) AS r(x))) > 0"
    monkeypatch.setattr(queries.warehouse, "template", with_condition(large))
    land(lake, "acme", [visit()])
    with opened(lake, memory="12MB") as client:
        for _ in range(2):
            failed = client.get(f"/analytics/devices?{WEEK}&domain=large")
            assert failed.status_code == 500
            assert failed.json()["error"] == "The query needs more memory than is free."
            assert client.get("/healthz").status_code == 200
        assert client.get(f"/analytics/devices?{WEEK}").json()[0]["visits"] == 1


def with_condition(condition, taken=queries.warehouse.template):
    """Return a replacement for template() that makes every report read nothing unless a condition is true."""
    return lambda name: f"SELECT * FROM ({taken(name).rstrip().removesuffix(';')}) WHERE {condition}"


# An engine that crashes


def zigzag(number):
    """Return a positive whole number in the encoding of Parquet's footer."""
    number *= 2
    groups = bytearray()
    while number > 127:
        groups.append(number & 127 | 128)
        number >>= 7
    return bytes([*groups, number])


def land_fatal(lake, organization):
    """Land a visit in a file that crashes the engine of DuckDB 2.0: its column bot_category has a negative size."""
    land(lake, organization, [visit()])
    (file,) = lake.manifest.files.live(organization)
    path = lake.root / file.path
    content, metadata = bytearray(path.read_bytes()), pq.read_metadata(path)
    columns = [metadata.row_group(0).column(number) for number in range(metadata.num_columns)]
    (size,) = (column.total_compressed_size for column in columns if column.path_in_schema == "bot_category")
    content[content.index(zigzag(size), len(content) - metadata.serialized_size - 8)] ^= 1
    path.write_bytes(content)
    stat = path.stat()
    with database_of(lake.manifest).transaction() as db:
        db.execute(
            "UPDATE files SET sha256 = ?, changed_ns = ?, inode = ? WHERE path = ?",
            [sha256_of(path), stat.st_ctime_ns, stat.st_ino, file.path],
        )


class Ended:
    """An engine after a fatal error."""

    def cursor(self):
        raise duckdb.FatalException("database has been invalidated because of a previous fatal error")


def test_a_crashed_engine_is_replaced(lake):
    land(lake, "acme", [visit()])
    land_fatal(lake, "bad")
    with closing(Warehouse(lake)) as warehouse:
        good, bad = (warehouse.snapshot(Scope(name, *DAYS, domain="go.example")) for name in ("acme", "bad"))
        took = []
        for _ in range(scaled(5, 100)):
            ended = warehouse._engine._duckdb
            begun = time.monotonic()
            try:
                warehouse.answer(OVERVIEW, bad)
                pytest.skip("this DuckDB survives the file")
            except QueryFailed as error:
                failed = error
            took.append(time.monotonic() - begun)
            assert isinstance(failed.__cause__, duckdb.InternalException)
            assert not isinstance(failed, FilesGone | EngineLost)  # a retry would crash the next engine
            with pytest.raises(duckdb.FatalException):
                ended.execute("SELECT 1")
            assert warehouse.answer(OVERVIEW, good)["total_visits"] == 1
        assert max(took) < 10


@pytest.fixture
def ended(lake):
    """A warehouse over one visit, with a crashed engine."""
    land(lake, "acme", [visit()])
    with closing(Warehouse(lake)) as warehouse:
        warehouse._engine._duckdb = Ended()
        yield warehouse


def test_the_query_after_a_crash_is_answered(ended):
    snapshot = ended.snapshot(Scope("acme", *DAYS))
    with pytest.raises(EngineLost):
        ended.answer(OVERVIEW, snapshot)
    assert ended.answer(OVERVIEW, snapshot)["total_visits"] == 1


async def test_a_request_is_retried_after_its_engine_crashed(ended, workers):
    answers = Answers(ended, AnswerCache(), workers)
    assert b'"total_visits":1,' in await answers.body(OVERVIEW, Scope("acme", *DAYS))


def test_an_engine_is_replaced_as_soon_as_its_lake_is_back(ended, lake):
    snapshot = ended.snapshot(Scope("acme", *DAYS))
    aside = lake.root.rename(f"{lake.root}-aside")
    for _ in range(3):
        with pytest.raises(EngineLost):
            ended.probe()
    aside.rename(lake.root)
    with pytest.raises(EngineLost):
        ended.probe()
    ended.probe()
    assert ended.answer(OVERVIEW, snapshot)["total_visits"] == 1


def test_health_checks_reuse_one_cursor(lake):
    cursors = set()
    with closing(Warehouse(lake)) as warehouse:
        for _ in range(3):
            warehouse.probe()
            cursors |= {idle.cursor for idle in warehouse._engine._idle}
    assert len(cursors) == 1


# Leaving, step by step


class Gated(Warehouse):
    """A real warehouse that does not list its files until its gate opens."""

    def __init__(self, lake):
        super().__init__(lake)
        self.gate = threading.Event()
        self.is_asked = False

    def snapshot(self, scope):
        self.is_asked = True
        assert self.gate.wait(30)
        return super().snapshot(scope)


@pytest.mark.parametrize("first", ["dashboard", "devices"])
async def test_a_client_joining_as_another_disconnects_is_answered(lake, workers, first):
    land(lake, "acme", [visit()])
    cache, scope = AnswerCache(), Scope("acme", *DAYS)
    with closing(Gated(lake)) as warehouse:
        answers = Answers(warehouse, cache, workers)
        leaving = asyncio.create_task(answers.body(ENTRIES[first], scope))
        while not warehouse.is_asked:
            await asyncio.sleep(0)
        before = asyncio.create_task(answers.body(ENTRIES["devices"], scope)) if first == "dashboard" else None
        await asyncio.sleep(0)
        leaving.cancel()
        await asyncio.sleep(0)
        after = asyncio.create_task(answers.body(ENTRIES["devices"], scope))
        for _ in range(20):
            await asyncio.sleep(0)
        assert "devices" in {
            key.name for key, _ in cache._running if not cache.needs_computation(key, False)
        }  # to be shared
        warehouse.gate.set()
        (found,) = {await staying for staying in (before, after) if staying}
        assert b'"visits":1,' in found
        while workers._requests:
            await asyncio.sleep(0)
        with pytest.raises(asyncio.CancelledError):
            await leaving


class Sharing(Warehouse):
    """Reads the shared visits once it has been told to stop, or after ten seconds."""

    def __init__(self, lake):
        super().__init__(lake)
        self.begun, self.stopped = False, []

    def with_shared_visits(self, snapshot, entries, cancelled=None):
        self.begun = True
        self.stopped.append(cancelled.wait(10))
        return super().with_shared_visits(snapshot, entries, cancelled)


async def test_shared_work_stops_once_every_answer_is_abandoned(lake, workers):
    land(lake, "acme", [visit(country="FR")])
    scope = Scope("acme", *DAYS, country="FR")
    with closing(Sharing(lake)) as warehouse:
        answers = Answers(warehouse, AnswerCache(), workers)
        leaving = asyncio.create_task(answers.body(ENTRIES["dashboard"], scope))
        while not warehouse.begun:
            await asyncio.sleep(0.01)
        leaving.cancel()
        while workers._requests or not warehouse.stopped:
            await asyncio.sleep(0.01)
        assert b'"visits":1,' in await answers.body(ENTRIES["devices"], scope)
        assert warehouse.stopped == [True]


def ask_as_a_server(warehouse, entry, scope):
    with closing(Workers()) as workers:
        asyncio.run(Answers(warehouse, AnswerCache(), workers).body(entry, scope))


@pytest.mark.parametrize(
    "ask",
    [
        ask_as_a_server,
        lambda warehouse, entry, scope: warehouse.answer(entry, warehouse.snapshot(scope)),
        lambda warehouse, entry, scope: warehouse.tables(entry, warehouse.snapshot(scope)),
    ],
    ids=["by a server", "as rows", "as tables"],
)
def test_shared_visits_stay_in_memory_until_the_last_answer(lake, monkeypatch, ask):
    land(lake, "acme", [visit(country="FR")])
    cursor, had = LockedEngine.cursor, []

    def noting(engine, snapshot, *args, **options):
        had.append(bool(snapshot.in_memory))
        return cursor(engine, snapshot, *args, **options)

    monkeypatch.setattr(LockedEngine, "cursor", noting)
    with closing(Warehouse(lake)) as warehouse:
        ask(warehouse, ENTRIES["dashboard"], Scope("acme", *DAYS, country="FR"))
        assert had.count(True) > len(ENTRIES["dashboard"].members)
        assert [idle for idle in warehouse._engine._idle if idle.snapshot.in_memory] == []


# The server


class Served(Client):
    """A client of a server in a separate process, with a journal of the server's queries."""

    def __init__(self, port, key, journal):
        super().__init__(port, key)
        self._journal, self._start = journal, 0

    def begin(self, path, *lines):
        """Return a connection with a pending query; closing it disconnects the client."""
        connection = self.connected()
        connection.sendall(self.request(path.encode(), *lines))
        return connection

    def post(self, path, body):
        """Return a connection on which JSON was sent."""
        sent = json.dumps(body).encode()
        connection = self.connected()
        connection.sendall(self.request(path.encode(), b"Content-Length: %d" % len(sent), method=b"POST") + sent)
        return connection

    def ask(self, path, *lines):
        """Return the status and the body of a response."""
        with self.begin(path, *lines) as connection:
            return answer_on(connection)[::2]

    def times(self, what, domain):
        """Return when the queries for a domain began or ended, in seconds of the machine's clock."""
        lines = (line.split() for line in self._journal.read_text()[self._start :].splitlines())
        return [float(at) for *noted, at in lines if noted == [what, domain]]

    def is_idle(self):
        """Return whether all queries have ended, and none began within a tenth of a second."""
        text = self._journal.read_text()
        time.sleep(0.1)
        return text == self._journal.read_text() and text.count("began ") == text.count("ended ")

    def forget(self):
        """Ignore the queries up to now. The journal is not emptied, since a query may begin at the same moment."""
        self._start = len(self._journal.read_text())

    def wait_until(self, what, domain, many=1):
        """Wait until this number of queries for a domain have begun or ended."""
        return until(lambda: len(times := self.times(what, domain)) >= many and times)

    def leave(self, connection, domain):
        """Close a connection; return the seconds until its query ended."""
        moment = time.monotonic()
        connection.close()
        return self.wait_until("ended", domain)[0] - moment


def serve_slowly(journal):
    """Make templates run forever for a domain like ever1 and briefly for a domain like while1; record when queries run.

    Only the queries of templates are recorded. They use kept cursors; visits that several templates share are read with
    another cursor.
    """
    numbers = (
        "range(CASE WHEN getvariable('domain') LIKE 'ever%' THEN 10000000 "
        "WHEN getvariable('domain') LIKE 'while%' THEN 8000 ELSE 1 END)"
    )
    slow = f"(SELECT count(*) FROM {numbers} AS a(x), {numbers} AS b(y) WHERE (x + y) % 7 = x) >= 0"
    queries.warehouse.template = with_condition(slow)
    cursor = LockedEngine.cursor

    @contextmanager
    def noted(self, snapshot, cancelled=None, is_kept=False):
        domain = snapshot.scope.domain
        with Path(journal if is_kept else os.devnull).open("a", buffering=1) as notes:
            notes.write(f"began {domain} {time.monotonic()}\n")
            try:
                with cursor(self, snapshot, cancelled, is_kept) as own:
                    yield own
            finally:
                notes.write(f"ended {domain} {time.monotonic()}\n")

    LockedEngine.cursor = noted


@pytest.fixture(scope="module")
def server(shared_lake, key_of, serving, tmp_path_factory):
    """A client of the real server on a real socket, which is slow on request."""
    land(shared_lake, "acme", [visit()])
    journal = tmp_path_factory.mktemp("server") / "journal"
    journal.touch()
    before = f"from tests.contract.test_engine_faults import serve_slowly; serve_slowly({str(journal)!r})"
    with serving(shared_lake, before=before, trusted_proxies="127.0.0.1") as server:
        yield Served(server.port, key_of(shared_lake), journal)
        server.process.terminate()
        _, told = server.process.communicate()
        assert server.process.returncode == 0, told


@pytest.fixture(scope="module")
def cookie(shared_lake):
    """Return the secret of a session of acme."""
    with open_store(SessionStore, shared_lake) as sessions:
        return sessions.open_by_link(sessions.create_link("acme")).secret


@pytest.fixture
def served(server):
    """The client, which knows no query from another test."""
    yield server
    until(server.is_idle)
    server.forget()


def until(condition, seconds=30):
    """Wait until a condition is true; return its value."""
    end = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < end, "the condition was not met in time"
        time.sleep(0.01)
    return found


def devices(domain):
    return f"/analytics/devices?{WEEK}&domain={domain}"


def test_a_disconnect_stops_the_query_and_frees_its_slot(served):
    stopped = []
    for number in range(scaled(MAX_REQUESTS + 8, 100)):
        connection = served.begin(devices(f"ever{number}"))
        served.wait_until("began", f"ever{number}")
        stopped.append(served.leave(connection, f"ever{number}"))
    assert max(stopped) < QUERY_TIMEOUT_SECONDS / 2
    assert statistics.median(stopped) < 2
    assert served.ask(devices("go.example"))[0] == 200


@pytest.mark.parametrize("way", ["a page", "a page that compares", "a tool"])
def test_a_disconnect_cancels_all_queries_of_the_request(served, cookie, way):
    domain = f"ever-{way.replace(' ', '-')}"
    if way == "a tool":
        arguments = {"endpoint": "dashboard", **dict(pair.split("=") for pair in WEEK.split("&")), "domain": domain}
        call = {"method": "tools/call", "params": {"name": "query", "arguments": arguments}}
        connection = served.post("/mcp", {"jsonrpc": "2.0", "id": 1, **call})
    else:
        compare = "&compare=before" if "compares" in way else ""
        connection = served.begin(f"/app/?{WEEK}&domain={domain}{compare}", b"Cookie: traffic=" + cookie.encode())
    served.wait_until("began", domain)
    assert served.leave(connection, domain) < QUERY_TIMEOUT_SECONDS / 2
    assert served.ask(devices("go.example"))[0] == 200
    begun = len(served.times("began", domain))
    assert begun <= (os.cpu_count() or 1) + 1  # the other queries never began
    served.wait_until("ended", domain, begun)


def test_a_query_runs_until_the_last_waiting_client_leaves(served):
    stopped = []
    for number in range(scaled(2, 100)):
        domain = f"ever{number}"
        first = served.begin(devices(domain))
        served.wait_until("began", domain)
        second = served.begin(f"/analytics/dashboard?{WEEK}&domain={domain}")
        served.wait_until("began", domain, 2)
        first.close()
        time.sleep(0.2)
        assert not served.times("ended", domain)
        stopped.append(served.leave(second, domain))
        time.sleep(0.1)
        begun = len(served.times("began", domain))
        assert begun <= (os.cpu_count() or 1) + 1  # the dashboard's other queries never began
        served.wait_until("ended", domain, begun)
    assert max(stopped) < QUERY_TIMEOUT_SECONDS / 2


def test_a_shared_answer_survives_the_disconnect_of_one_caller(served):
    for number in range(scaled(1, 50)):
        dashboard = served.begin(f"/analytics/dashboard?{WEEK}&domain=while{number}")
        served.wait_until("began", f"while{number}")
        same, staying = (served.begin(devices(f"while{number}")) for _ in range(2))
        time.sleep(0.05)
        dashboard.close()
        same.close()
        with staying:
            assert answer_on(staying)[::2] == (200, b"[]")
        again = f"while-again{number}"
        leaving = served.begin(devices(again))
        served.wait_until("began", again)
        leaving.close()
        assert served.ask(devices(again)) == (200, b"[]")  # while the previous query is being stopped


def test_overload_is_rejected_while_cached_answers_are_served(served):
    many = scaled(64, 200)
    assert served.ask(devices("go.example"))[0] == 200
    with ExitStack() as stack:
        begun, refused = time.monotonic(), set()
        waiting = [stack.enter_context(served.begin(devices(f"ever{number}"))) for number in range(many)]
        while len(refused) < many - MAX_REQUESTS:
            refused |= {connection for connection in waiting if has_come(connection)}
            waiting = [connection for connection in waiting if connection not in refused]
            assert time.monotonic() - begun < QUERY_TIMEOUT_SECONDS  # which would end them, too
        assert max(timed(served, path) for path in (devices("go.example"), "/healthz") for _ in range(10)) < 5
        assert served.ask("/jobs")[0] == served.ask("/analytics/cache-stats")[0] == 200
        assert not any(has_come(connection) for connection in waiting)
        for connection in refused:
            status, headers, body = answer_on(connection)
            assert (status, headers[b"retry-after"], headers[b"x-ratelimit-remaining"]) == (503, b"1", b"59")
            assert headers[b"content-type"] == b"application/json"
            assert list(json.loads(body)) == ["error", "message"]
            assert json.loads(body)["error"] == "The service is overloaded."
    until(lambda: served.ask(devices("quiet.example"))[0] == 200)


def has_come(connection):
    """Return whether a connection has received anything."""
    return bool(select.select([connection], [], [], 0)[0])


def timed(served, path):
    begun = time.monotonic()
    status, _ = served.ask(path)
    assert status == 200
    return time.monotonic() - begun


def test_a_file_that_crashes_the_engine_fails_only_its_request(served, shared_lake, key_of):
    land_fatal(shared_lake, "bad")
    bad = b"Authorization: Bearer " + key_of(shared_lake, "bad").encode()
    told, days = {"acme": [], "health": []}, itertools.count()
    stop = threading.Event()

    def ask_on(name, path):
        while not stop.is_set():
            told[name].append(served.ask(path())[0])

    asking = [
        threading.Thread(target=ask_on, args=("acme", lambda: devices(f"go{next(days)}.example"))),
        threading.Thread(target=ask_on, args=("health", lambda: "/healthz")),
    ]
    for thread in asking:
        thread.start()
    for _ in range(scaled(2, 100)):
        status, body = served.ask(f"/analytics/traffic-overview?{WEEK}&domain=go.example", bad)
        if status != 200:  # DuckDB 1.5 survives the file
            assert (status, json.loads(body)["error"]) == (500, "The request failed.")
        until(lambda: served.ask("/healthz")[0] == 200)
        time.sleep(0.1)
    stop.set()
    for thread in asking:
        thread.join()
    assert set(told["acme"]) == {200}
    assert set(told["health"]) <= {200, 500}


def test_health_reports_a_lake_that_disappears_and_returns(served, shared_lake):
    assert served.ask("/healthz")[0] == 200
    aside = shared_lake.root.rename(f"{shared_lake.root}-aside")
    until(lambda: served.ask("/healthz")[0] == 500)  # it is checked once a second
    assert served.ask(devices("gone.example"))[0] == 503
    aside.rename(shared_lake.root)
    until(lambda: served.ask("/healthz")[0] == 200)
    assert served.ask(devices("gone.example"))[0] == 200
