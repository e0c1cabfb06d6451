"""The limit of 60 requests in any 60 seconds for each source: what is counted, what is told, and who a source is."""

import asyncio
import ipaddress
import itertools
import math
import os
import random
import tracemalloc
from collections import Counter
from datetime import UTC, datetime

import httpx2
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from starlette.testclient import TestClient

from queries import warehouse
from service.app import create_app
from service.http import rate_limit as limits
from service.http.rate_limit import LIMIT, WINDOW_SECONDS, RateLimiter, SlidingLog, SourceResolver
from tests.support.clock import Clock
from tests.support.identity import bearer
from tests.support.tables import examples_at_once

SHARE = os.environ.get("TRAFFIC_FAULTS", "1")
HEADERS = ("x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset", "retry-after")


class Asked:
    """The application behind a limiter whose clocks a test moves; the wall clock is ahead by `ahead`."""

    ahead = 1_800_000_000.25

    def __init__(self, client, key):
        self.client, self.clock, self.key = client, Clock(), bearer(key)
        self.limiter = client.app.limiter = RateLimiter(
            TRUSTED[:1], SlidingLog(self.clock), lambda: self.clock.now + self.ahead
        )

    def __call__(self, path="/healthz", method="GET", source="198.51.100.1", **headers):
        return self.client.request(method, path, headers={"X-Forwarded-For": source, **headers})

    def four(self, response):
        return tuple(int(response.headers[name]) for name in HEADERS)


@pytest.fixture(scope="module")
def served(shared_lake, settings, key_of):
    """The application in process, and a key."""
    app = create_app(settings(shared_lake, trusted_proxies="10.0.0.0/8"), lambda: datetime(2026, 3, 15, tzinfo=UTC))
    with TestClient(app, raise_server_exceptions=False, client=("10.0.0.1", 1)) as client:
        yield client, key_of(shared_lake)


@pytest.fixture
def asked(served):
    return Asked(*served)


def test_sixty_requests_are_answered_and_the_next_is_429(asked):
    for number in range(LIMIT):
        asked.clock.now = 1_000 + number / 4
        response = asked()
        assert response.status_code == 200
        reset = math.ceil(1_000 + Asked.ahead + WINDOW_SECONDS)
        wait = 0 if number < 59 else math.ceil(1_060 - asked.clock.now)
        assert asked.four(response) == (60, 59 - number, reset, wait)
    asked.clock.now = 1_015.25
    response = asked()
    assert response.status_code == 429
    assert response.headers["content-type"] == "application/json"
    assert asked.four(response) == (60, 0, math.ceil(1_060 + Asked.ahead), 45)
    body = response.json()
    assert list(body) == ["error", "message", "retryAfter", "limit", "remaining"]
    assert (body["retryAfter"], body["limit"], body["remaining"]) == (44_750, 60, 0)
    assert isinstance(body["error"], str)
    assert body["message"] == "Wait 45 s: 60 requests per minute are answered for each source address."


@pytest.mark.parametrize("before", [0.001, 0.0004, 0.5, 1.0, 1.0001, 30, 59.9995])
def test_retry_after_is_the_whole_seconds_of_the_milliseconds(asked, before):
    for _ in range(LIMIT):
        asked()
    asked.clock.now = 1_060 - before
    response = asked()
    wait = response.json()["retryAfter"]
    assert response.status_code == 429
    assert wait == max(1, math.ceil(before * 1_000 - 1e-6))
    assert int(response.headers["retry-after"]) == math.ceil(wait / 1_000) >= 1
    asked.clock.now += wait / 1_000
    assert asked().status_code == 200


def test_the_limit_stands_before_token_path_method_and_parameters(asked):
    asks = [("/jobs", "HEAD", 200), ("/nothing", "GET", 404), ("/analytics/devices?range=x", "GET", 400),
            ("/analytics/devices", "POST", 405), ("/openapi.json", "GET", 200)]  # fmt: skip
    for number, (path, method, status) in enumerate(asks):
        answer = asked(path, method, **asked.key)
        assert (answer.status_code, asked.four(answer)[1]) == (status, 59 - number)
    assert asked("/jobs").status_code == 401
    while asked().status_code == 200:
        pass
    for path, method, _ in asks:
        for headers in (asked.key, {}, {"Authorization": "x"}):
            answer = asked(path, method, **headers)
            assert answer.status_code == 429
            assert "www-authenticate" not in answer.headers


def test_the_four_headers_are_on_every_kind_of_response_once(asked, monkeypatch):
    monkeypatch.setattr(warehouse, "template", lambda _: "SELECT error('out of order')")
    found = {}
    paths = ("/healthz", "/jobs", "/jobs/job_x", "/analytics/devices", "/analytics/dashboard", "/nothing",
             "/analytics/devices?range=x")  # fmt: skip
    for path, method in [("/jobs", "HEAD"), ("/jobs", "PUT"), *((path, "GET") for path in paths)]:
        response = asked(path, method, **asked.key)
        found[response.status_code] = response
    found[401] = asked("/jobs")
    while (response := asked()).status_code == 200:
        pass
    found[429] = response
    assert set(found) == {200, 400, 401, 404, 405, 429, 500}
    for status, response in found.items():
        names = Counter(name.lower() for name, _ in response.headers.multi_items())
        assert all(names[name] == 1 for name in HEADERS), status
        limit, remaining, reset, wait = asked.four(response)
        assert limit == 60
        assert reset == math.ceil(asked.clock.now + Asked.ahead + WINDOW_SECONDS)
        assert (wait == 0) == (remaining > 0)


# The log against a naive model


class Model:
    """What a limiter must do, in the plainest words; times are whole ticks."""

    window, limit = 60 * 8, LIMIT

    def __init__(self):
        self.accepted = []

    def hit(self, source, now):
        mine = [tick for tick in self.times(source) if now - tick < self.window]
        accepted = len(mine) < self.limit
        if accepted:
            self.accepted.append((source, now))
            mine.append(now)
        return accepted, self.limit - len(mine), mine[0] + self.window - now

    def times(self, source):
        return [tick for who, tick in self.accepted if who == source]


bursts = st.tuples(
    st.sampled_from(["a", "b"]), st.integers(1, 70), st.sampled_from([0, 0, 1, 2, 8, 9, 100, 479, 480, 481])
)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.lists(bursts, min_size=1, max_size=12))
def test_the_log_does_what_a_naive_model_does_and_no_window_holds_more_than_sixty(script):
    clock, model, tick = Clock(), Model(), 0
    log = SlidingLog(clock)
    limiter = RateLimiter((), log, lambda: clock.now + 1_000_000)
    for source, count, pause in script:
        for _ in range(count):
            clock.now = tick / 8
            decision = log.hit(source)
            expected = model.hit(source, tick)
            assert (decision.accepted, decision.remaining, decision.wait_seconds * 8) == expected
            told = {name.decode(): int(value) for name, value in limiter.headers(decision)}
            assert told == {
                "x-ratelimit-limit": LIMIT,
                "x-ratelimit-remaining": expected[1],
                "x-ratelimit-reset": math.ceil((tick + expected[2]) / 8) + 1_000_000,
                "retry-after": 0 if expected[1] else math.ceil(expected[2] / 8),
            }
            assert all(len(times) <= LIMIT for times in log._times.values())
            tick += pause
    for source in "ab":
        times = model.times(source)
        assert all(times[i + LIMIT] - times[i] >= Model.window for i in range(len(times) - LIMIT))


@settings(max_examples=200, deadline=None, derandomize=True)
@given(st.floats(0, 1e6), st.floats(0, 61), st.floats(0, 61))
@example(4095.538142885824, 60.0, 0.0)  # by one rounding 60 seconds later, by another not quite
def test_whatever_a_clock_says_a_429_tells_to_wait(start, pause, later):
    clock = Clock(start)
    log = SlidingLog(clock)
    for _ in range(LIMIT):
        log.hit("a")
    clock.now = start + max(pause, later)
    limiter = RateLimiter((), log)
    decision = log.hit("a")
    wait = int(dict(limiter.headers(decision))[b"retry-after"])
    if decision.accepted:
        assert wait == 0 or decision.remaining == 0
    else:
        body = limiter.refusal(decision).body
        assert body["retryAfter"] >= 1
        assert wait == math.ceil(body["retryAfter"] / 1_000)


def test_millions_of_forged_sources_cost_little_memory_and_no_other_caller(tell, monkeypatch):
    """A sixteenth of the sources and of the memory, or with TRAFFIC_FAULTS=all ten millions of sources in all of it."""
    part = 1 if SHARE == "all" else 16
    monkeypatch.setattr(limits, "MAX_SOURCES", limits.MAX_SOURCES // part)
    sources, chance = 10_000_000 if SHARE == "all" else 6_000, random.Random(1)
    limiter = RateLimiter(TRUSTED[:1], SlidingLog(Clock()))

    def remaining(written):
        scope = {"client": ("10.0.0.1", 1), "headers": [(b"x-forwarded-for", written.encode())]}
        return limiter.check(scope).remaining

    tracemalloc.start()
    for number in range(sources):
        bits = chance.getrandbits(64)
        remaining(f"2001:{bits >> 48:x}:{bits >> 32 & 65535:x}:{bits >> 16 & 65535:x}::1" if number % 2
                  else f"{11 + bits % 200}.{bits >> 8 & 255}.{bits >> 16 & 255}.{bits >> 24 & 255}")  # fmt: skip
        if number % 150 == 0 and number < 50 * 150:
            assert remaining("198.51.100.1") == 59 - number // 150
        if number == limits.MAX_SOURCES + 1_000:  # more it will never be
            held, _ = tracemalloc.get_traced_memory()
            tracemalloc.stop()
    assert len(limiter) <= limits.MAX_SOURCES
    assert len(limiter) > 0.9 * limits.MAX_SOURCES
    assert held < (50 << 20) // part
    tell(made_up_sources=sources, remembered=len(limiter), kilobytes=held >> 10)


def test_a_source_is_forgotten_when_another_comes_once_nothing_of_it_is_counted():
    clock = Clock(0)
    log = SlidingLog(clock)
    for source in ("a", "b"):
        log.hit(source)
        clock.now += 30
    assert log.hit("b").remaining == 58
    assert [*log._times] == ["a", "b"]
    log.hit("c")
    assert [*log._times] == ["b", "c"]
    clock.now += WINDOW_SECONDS
    log.hit("d")
    assert [*log._times] == ["d"]


# Who a source is

V4, V6 = "198.51.100.7", "2001:db8:1:2:3:4:5:6"
V6_NETWORK = "2001:db8:1:2::/64"
PEER = "10.0.0.1"
TRUSTED = tuple(map(ipaddress.ip_network, ("10.0.0.0/8", "192.0.2.1/32", "fd00::/8")))


def source(peer, *lines, trusted=TRUSTED):
    headers = [(b"x-forwarded-for", line.encode("latin-1")) for line in lines]
    return SourceResolver(trusted).of({"client": (peer, 1) if peer is not None else None, "headers": headers})


@examples_at_once("peer", "expected")
def test_a_source_is_an_ipv4_address_or_the_64_of_an_ipv6_address(peer, expected):
    assert source(peer) == source(peer, trusted=()) == expected


@pytest.mark.parametrize("peer", [V4, "::ffff:198.51.100.7", "192.0.2.2", "11.0.0.1", V6, "testclient", "", None])
@pytest.mark.parametrize("line", ["203.0.113.1", "10.0.0.1", "203.0.113.1, 10.0.0.2", "", "nonsense", V6])
def test_a_peer_that_is_not_trusted_is_not_believed_and_by_default_no_peer_is(peer, line):
    assert source(peer, line) == source(peer)
    assert source("127.0.0.1", line, trusted=()) == "127.0.0.1"


@pytest.mark.parametrize("peer", [PEER, "10.255.255.255", "192.0.2.1", "fd00::1", "::ffff:10.0.0.1", "fd00::1%eth0"])
def test_a_trusted_peer_is_believed(peer):
    assert source(peer, V4) == V4


ONE_HOP = {
    V4: [
        "198.51.100.7", "  198.51.100.7\t", "198.51.100.7:443", "198.51.100.7:0", "::ffff:198.51.100.7",
        "[::ffff:198.51.100.7]:80", "::ffff:c633:6407", "0:0:0:0:0:FFFF:C633:6407", "::ffff:198.51.100.7%eth0",
    ],
    V6_NETWORK: [
        V6, V6.upper(), f"[{V6}]", f"[{V6}]:443", f"{V6}%eth0", f"[{V6}%25eth0]:443", f"{V6}%1%2",
        "2001:0db8:01:002:3::4", "2001:db8:1:2::",
    ],
    None: [
        "", " ", ",", "198.51.100.7,", "198.51.100.7, nonsense", "198.51.100.7, _hidden", "nonsense", "198.51.100",
        "198.51.100.7.8", "198.51.100.256", "198.51.100.07", "0xc6336407", "3325256711", "198.51.100.7/32",
        "198.51.100.7;203.0.113.1", "198.51.100.7 203.0.113.1", '"198.51.100.7"', "for=198.51.100.7",
        "http://198.51.100.7", "-198.51.100.7", "198.51.100.\u00b2", "\u00e9\u00ff", "198.51.100.7\x00",
        "198.51.100.7\u00a07", "2001:db8:::1", "2001:db8:1:2:3:4:5:6:7", "[2001:db8::g]:80", "[]", "[]:80", "[", ":80",
        ":", "%eth0", "198.51.100.7%eth0", "198.51.100.7%", "198.51.100.7%25eth0:443", "[198.51.100.7%1]:443",
        "198.51.100.7, 10.0.0.2%1", "::ffff:198.51.100.07", "x" * 10_000,
    ],
}  # fmt: skip
"""How the source is written that a trusted peer names; None: it names none. Only IPv6 addresses have zones."""
CHAINS = [
    # the nearest hop that is not ours
    (["203.0.113.1, 198.51.100.7"], V4),
    (["203.0.113.1 , 198.51.100.7,10.0.0.2, 192.0.2.1"], V4),
    (["203.0.113.1, 198.51.100.7:1, [fd00::5]:80, ::ffff:10.0.0.9, 10.0.0.2:2"], V4),
    (["10.0.0.5, 198.51.100.7, 10.0.0.6"], V4),
    (["nonsense, 198.51.100.7"], V4),
    ([", , , 198.51.100.7, 10.0.0.2"], V4),
    (["1.1.1.1, " * 2_000 + "198.51.100.7"], V4),
    # several lines are one list
    (["203.0.113.1", "198.51.100.7"], V4),
    (["203.0.113.1, 198.51.100.7", "10.0.0.2, 10.0.0.3"], V4),
    (["198.51.100.7", ""], None),
    # all ours: the farthest
    (["10.0.0.3, 10.0.0.2"], "10.0.0.3"),
    (["fd00:0:0:1::1, 10.0.0.2"], "fd00:0:0:1::/64"),
    # no address: the nearest hop that can be believed
    ([], None),
    (["198.51.100.7, nonsense, 10.0.0.2"], "10.0.0.2"),
    (["198.51.100.7,, 10.0.0.2"], "10.0.0.2"),
    (["198.51.100.7", "nonsense", "10.0.0.2, 10.0.0.3"], "10.0.0.2"),
]


@pytest.mark.parametrize("peer", [PEER, "fd00::1"])
def test_a_chain_is_read_from_the_right_as_far_as_trust_reaches(peer):
    """P27: whoever may write a header, but not another's address, gets no second minute by spelling his own anew."""
    hops = [([line], expected) for expected, lines in ONE_HOP.items() for line in lines]
    for lines, expected in hops + CHAINS:
        assert source(peer, *lines) == (expected or source(peer, trusted=())), lines


hops = st.sampled_from(["203.0.113.1", "10.9.9.9", "nonsense", "", V6, "[::1]:8"]) | st.text(
    st.characters(max_codepoint=255), max_size=20
)


@settings(max_examples=200, deadline=None, derandomize=True)
@given(st.lists(hops, max_size=6), st.lists(st.sampled_from(["10.0.0.2", "192.0.2.1", "[fd00::1]:9"]), max_size=3))
def test_nothing_a_client_writes_itself_changes_its_source(forged, proxies):
    assert source(PEER, ", ".join([*forged, V4, *proxies])) == V4


def test_of_many_requests_at_once_sixty_are_answered(lake, settings):
    app = create_app(settings(lake))

    async def ask():
        transport = httpx2.ASGITransport(app, client=("198.51.100.1", 1))
        async with httpx2.AsyncClient(transport=transport, base_url="http://test") as client:
            return await asyncio.gather(*(client.get("/nothing") for _ in range(100)))

    answers = asyncio.run(ask())
    assert Counter(answer.status_code for answer in answers) == {401: 60, 429: 40}
    remaining = sorted(int(answer.headers["x-ratelimit-remaining"]) for answer in answers)
    assert remaining == [0] * 40 + list(range(60))


def test_on_a_real_socket_the_61st_request_of_a_source_is_429(caller):
    forged = ({"X-Forwarded-For": f"203.0.113.{number}"} for number in itertools.count())
    answers = [caller.get("/nothing", headers=next(forged)) for _ in range(62)]
    assert [answer.status_code for answer in answers] == [404] * 60 + [429] * 2
    assert answers[-1].json()["remaining"] == 0
    assert 0 < int(answers[-1].headers["retry-after"]) <= 60
