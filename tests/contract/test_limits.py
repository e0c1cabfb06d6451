"""Tests the limit of 60 requests in any 60 seconds for each source: counting, responses and sources."""

import ipaddress
import math
import os
import random
import tracemalloc
from collections import Counter
from datetime import datetime

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from service.core.http import rate_limit as limits
from service.core.http.rate_limit import LIMIT, WINDOW_SECONDS, RateLimiter, SourceResolver
from tests.support.clock import Clock
from tests.support.tables import examples_at_once, tables
from tests.support.visits import land, visit

SHARE = os.environ.get("TRAFFIC_FAULTS", "1")
HEADERS = ("x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset", "retry-after")


AHEAD = 1_800_000_000.25
"""Number of seconds by which the wall clock is ahead of the clock that a test moves."""


@pytest.fixture(scope="module")
def client(shared_lake, opened):
    with opened(shared_lake) as client:
        yield client


@pytest.fixture
def clock(client):
    """The clock of a new limiter in the application."""
    clock = Clock()
    client.app.limiter = RateLimiter(TRUSTED[:1], clock, lambda: clock.now + AHEAD)
    return clock


@pytest.fixture
def asked(client, clock):
    """Send a request to the application with a new limiter, always from the same source."""

    def asked(path="/healthz", method="GET", **headers):
        return client.request(method, path, headers={"X-Forwarded-For": "198.51.100.1", **headers})

    return asked


def four(response):
    return tuple(int(response.headers[name]) for name in HEADERS)


def test_sixty_requests_are_answered_and_the_next_gets_429(asked, clock):
    for number in range(LIMIT):
        clock.now = 1_000 + number / 4
        response = asked()
        assert response.status_code == 200
        reset = math.ceil(1_000 + AHEAD + WINDOW_SECONDS)
        wait = 0 if number < 59 else math.ceil(1_060 - clock.now)
        assert four(response) == (60, 59 - number, reset, wait)
    clock.now = 1_015.25
    response = asked()
    assert response.status_code == 429
    assert response.headers["content-type"] == "application/json"
    assert four(response) == (60, 0, math.ceil(1_060 + AHEAD), 45)
    body = response.json()
    assert list(body) == ["error", "message", "retryAfter", "limit", "remaining"]
    assert (body["retryAfter"], body["limit"], body["remaining"]) == (44_750, 60, 0)
    assert isinstance(body["error"], str)
    assert body["message"] == "Wait 45 s: at most 60 requests per minute are allowed from each source address."


def test_every_response_has_each_rate_limit_header_once(asked, clock, shared_lake):
    land(shared_lake, "acme", [visit(visited_at=datetime(2026, 3, 14))])
    (file,) = shared_lake.manifest.files.live("acme")
    (shared_lake.root / file.path).unlink()  # so that reports cannot be stored
    asks = [("/jobs", "HEAD", 200), ("/nothing", "GET", 404), ("/analytics/devices?range=x", "GET", 400),
            ("/analytics/devices", "POST", 405), ("/openapi.json", "GET", 200), ("/jobs/job_x", "GET", 404),
            ("/analytics/devices", "GET", 500), ("/analytics/dashboard", "GET", 500)]  # fmt: skip
    answers = [asked(path, method) for path, method, _ in asks]
    assert [answer.status_code for answer in answers] == [status for *_, status in asks]
    assert [four(answer)[1] for answer in answers] == [59 - number for number in range(len(asks))]
    answers.append(asked("/jobs", Authorization=""))
    assert answers[-1].status_code == 401
    while (answer := asked()).status_code == 200:
        answers.append(answer)
    for path, method, _ in asks:
        for headers in ({}, {"Authorization": ""}, {"Authorization": "x"}):
            answers.append(answer := asked(path, method, **headers))
            assert answer.status_code == 429
            assert "www-authenticate" not in answer.headers
    for answer in answers:
        names = Counter(name.lower() for name, _ in answer.headers.multi_items())
        assert all(names[name] == 1 for name in HEADERS), answer
        limit, remaining, reset, wait = four(answer)
        assert limit == 60
        assert reset == math.ceil(clock.now + AHEAD + WINDOW_SECONDS)
        assert (wait == 0) == (remaining > 0)


# The log against a naive model


class Model:
    """A naive model of the limiter; times are whole ticks."""

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


@settings(max_examples=60, derandomize=True)
@given(st.lists(bursts, min_size=1, max_size=12))
def test_the_rate_limiter_agrees_with_a_naive_model(script):
    clock, model, tick = Clock(), Model(), 0
    limiter = RateLimiter((), clock, lambda: clock.now + 1_000_000)
    for source, count, pause in script:
        for _ in range(count):
            clock.now = tick / 8
            decision = limiter.hit(source)
            expected = model.hit(source, tick)
            assert (decision.accepted, decision.remaining, decision.wait_seconds * 8) == expected
            told = {name.decode(): int(value) for name, value in limiter.headers(decision)}
            assert told == {
                "x-ratelimit-limit": LIMIT,
                "x-ratelimit-remaining": expected[1],
                "x-ratelimit-reset": math.ceil((tick + expected[2]) / 8) + 1_000_000,
                "retry-after": 0 if expected[1] else math.ceil(expected[2] / 8),
            }
            assert all(len(times) <= LIMIT for times in limiter._times.values())
            tick += pause
    for source in "ab":
        times = model.times(source)
        assert all(times[i + LIMIT] - times[i] >= Model.window for i in range(len(times) - LIMIT))


@settings(max_examples=200, derandomize=True)
@given(st.floats(0, 1e6), st.floats(0, 61), st.floats(0, 61))
@example(4095.538142885824, 60.0, 0.0)  # rounded one way, 60 seconds later; rounded another way, slightly less
def test_a_429_rounds_the_wait_up_at_any_time(start, pause, later):
    clock = Clock(start)
    limiter = RateLimiter((), clock)
    for _ in range(LIMIT):
        limiter.hit("a")
    clock.now = start + max(pause, later)
    decision = limiter.hit("a")
    wait = int(dict(limiter.headers(decision))[b"retry-after"])
    if decision.accepted:
        assert wait == 0 or decision.remaining == 0
    else:
        milliseconds = limiter.refusal(decision).body["retryAfter"]
        assert milliseconds >= max(1, 1_000 * decision.wait_seconds) > milliseconds - 1
        assert wait == math.ceil(milliseconds / 1_000)


def test_millions_of_forged_sources_need_little_memory(tell, monkeypatch):
    """By default, the limiter may remember a sixteenth of MAX_SOURCES, in a sixteenth of the memory. With
    TRAFFIC_FAULTS=all, ten million sources are forged, and all limits are the real ones.
    """
    part = 1 if SHARE == "all" else 16
    monkeypatch.setattr(limits, "MAX_SOURCES", limits.MAX_SOURCES // part)
    sources, chance = 10_000_000 if SHARE == "all" else 6_000, random.Random(1)
    limiter = RateLimiter(TRUSTED[:1], Clock())

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
        if number == limits.MAX_SOURCES + 1_000:  # the maximum
            held, _ = tracemalloc.get_traced_memory()
            tracemalloc.stop()
    assert len(limiter) <= limits.MAX_SOURCES
    assert len(limiter) > 0.9 * limits.MAX_SOURCES
    assert held < (50 << 20) // part
    tell(made_up_sources=sources, remembered=len(limiter), kilobytes=held >> 10)


def test_an_expired_source_is_forgotten_when_another_comes():
    clock = Clock(0)
    limiter = RateLimiter((), clock)
    for source in ("a", "b"):
        limiter.hit(source)
        clock.now += 30
    assert limiter.hit("b").remaining == 58
    assert [*limiter._times] == ["a", "b"]
    limiter.hit("c")
    assert [*limiter._times] == ["b", "c"]
    clock.now += WINDOW_SECONDS
    limiter.hit("d")
    assert [*limiter._times] == ["d"]


# Sources

V4, V6 = "198.51.100.7", "2001:db8:1:2:3:4:5:6"
PEER = "10.0.0.1"
TRUSTED = tuple(map(ipaddress.ip_network, ("10.0.0.0/8", "192.0.2.1/32", "fd00::/8")))


def source(peer, *lines, trusted=TRUSTED):
    headers = [(b"x-forwarded-for", line.encode("latin-1")) for line in lines]
    return SourceResolver(trusted).of({"client": (peer, 1) if peer is not None else None, "headers": headers})


@examples_at_once("peer", "expected")
def test_a_source_is_an_ipv4_address_or_an_ipv6_slash_64(peer, expected):
    assert source(peer) == source(peer, trusted=()) == expected


@pytest.mark.parametrize("peer", [V4, "::ffff:198.51.100.7", "192.0.2.2", "11.0.0.1", V6, "testclient", "", None])
@pytest.mark.parametrize("line", ["203.0.113.1", "10.0.0.1", "203.0.113.1, 10.0.0.2", "", "nonsense", V6])
def test_forwarded_addresses_of_untrusted_peers_are_ignored(peer, line):
    assert source(peer, line) == source(peer)
    assert source("127.0.0.1", line, trusted=()) == "127.0.0.1"


@pytest.mark.parametrize("peer", [PEER, "10.255.255.255", "192.0.2.1", "fd00::1", "::ffff:10.0.0.1", "fd00::1%eth0"])
def test_a_trusted_peer_can_forward_addresses(peer):
    assert source(peer, V4) == V4


@pytest.mark.parametrize("peer", [PEER, "fd00::1"])
def test_a_chain_is_read_from_the_right_while_hops_are_trusted(peer):
    """P27: a client that can write a header, but has no other address, cannot get a second limit by spelling its
    address differently.

    Reading ends at an entry that is not an address: then the source is the trusted hop that was read last, or the peer
    if there is none (null in the examples). Only IPv6 addresses have zones.
    """
    hops = [([line], expected) for expected, lines in tables(__file__)["ONE_HOP"] for line in lines]
    long = [(["x" * 10_000], None), (["1.1.1.1, " * 2_000 + V4], V4)]
    for lines, expected in (*hops, *long, *tables(__file__)["CHAINS"]):
        assert source(peer, *lines) == (expected or source(peer, trusted=())), lines


hops = st.sampled_from(["203.0.113.1", "10.9.9.9", "nonsense", "", V6, "[::1]:8"]) | st.text(
    st.characters(max_codepoint=255), max_size=20
)


@settings(max_examples=200, derandomize=True)
@given(st.lists(hops, max_size=6), st.lists(st.sampled_from(["10.0.0.2", "192.0.2.1", "[fd00::1]:9"]), max_size=3))
def test_no_client_header_changes_the_source(forged, proxies):
    assert source(PEER, ", ".join([*forged, V4, *proxies])) == V4
