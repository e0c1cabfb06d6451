"""Answers are compressed with gzip only on request, without loss, and only once while they are cached."""

import asyncio
import gzip
from datetime import datetime, timedelta

import pytest

from queries import CACHE_STATS, ENDPOINTS, ENTRIES, Scope, Warehouse
from service.core.http import compression
from service.core.http.compression import MIN_BYTES, wants_gzip
from service.core.http.pools import Workers
from service.reports import answers, cache
from service.reports.answers import Answers
from service.reports.cache import AnswerCache, CacheKey
from tests.conftest import NOW
from tests.support.clock import Clock
from tests.support.tables import examples_at_once
from tests.support.visits import land, visit

DASHBOARD = ENTRIES["dashboard"]
MCP = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
MARCH = Scope("acme", datetime(2026, 3, 1).date(), datetime(2026, 3, 14).date())


@pytest.fixture(scope="module")
def client(shared_lake, opened):
    rows = [visit(visited_at=NOW.replace(tzinfo=None) - timedelta(days=day), path=f"/{day}") for day in range(1, 9)]
    land(shared_lake, "acme", rows)
    with opened(shared_lake) as client:
        yield client


@examples_at_once("accepted", "is_compressed")
def test_gzip_is_sent_if_preferred_at_least_as_much_as_identity(accepted, is_compressed):
    headers = [(b"host", b"x"), *((b"accept-encoding", value.encode()) for value in accepted)]
    assert wants_gzip(headers, b"x" * MIN_BYTES) == is_compressed
    assert not wants_gzip(headers, b"x" * (MIN_BYTES - 1))


@pytest.mark.parametrize("path", [*(f"/analytics/{name}" for name in ENDPOINTS), "/jobs", "/openapi.json", "/mcp"])
def test_an_answer_has_the_same_bytes_compressed_and_plain(client, path):
    method, body = ("POST", MCP) if path == "/mcp" else ("GET", None)
    plain, packed = (
        client.request(method, path, json=body, headers={"Accept-Encoding": accepted})
        for accepted in ("identity", "gzip, deflate")
    )
    assert plain.status_code == packed.status_code == 200
    assert packed.content == plain.content
    if path == f"/analytics/{CACHE_STATS.name}":
        return
    assert plain.headers["vary"] == packed.headers["vary"] == "Accept-Encoding"
    assert "content-encoding" not in plain.headers
    is_large = len(plain.content) >= MIN_BYTES
    assert packed.headers.get("content-encoding") == ("gzip" if is_large else None)
    assert (int(packed.headers["content-length"]) < len(plain.content)) == is_large


def test_compression_shrinks_large_answers_to_under_a_sixth(client):
    answer = client.get("/analytics/dashboard?range=90d", headers={"Accept-Encoding": "gzip"})
    assert int(answer.headers["content-length"]) * 6 < len(answer.content)


def test_a_cross_origin_answer_varies_by_encoding_and_origin(lake, opened):
    with opened(lake, cors_origins="https://app.example") as client:
        answer = client.get("/openapi.json", headers={"Origin": "https://app.example", "Accept-Encoding": "gzip"})
    assert (answer.headers["content-encoding"], answer.headers["vary"]) == ("gzip", "Accept-Encoding, Origin")


@pytest.fixture
def compressed(monkeypatch):
    """Record each body that is compressed."""
    bodies = []
    monkeypatch.setattr(answers, "compress", lambda body: bodies.append(body) or compression.compress(body))
    return bodies


@pytest.fixture
def held(lake):
    """Answers from a lake, with a clock for the cache."""
    land(lake, "acme", [visit()])
    workers, warehouse, clock = Workers(), Warehouse(lake), Clock()
    yield Answers(warehouse, AnswerCache(clock), workers), clock
    workers.close()
    warehouse.close()


async def test_a_cached_answer_is_compressed_only_once(held, compressed):
    held, clock = held

    async def ask():
        body = await held.body(DASHBOARD, MARCH)
        return body, await held.compressed(DASHBOARD, MARCH, False, body)

    (body, packed), *others = await asyncio.gather(*(ask() for _ in range(50)))
    size = next(row["bytes"] for row in held.statistics("acme") if row["scope"] == "dashboard")
    assert {(body, packed)} == set(others)
    assert (gzip.decompress(packed), compressed, size) == (body, [body], len(body) + len(packed))
    for seconds, times in ((cache.TTL_SECONDS - 1, 1), (1, 2)):
        clock.now += seconds
        assert (await ask(), len(compressed)) == ((body, packed), times)


async def test_an_unshared_answer_is_compressed_for_its_caller_only(held, compressed):
    """An answer is not shared if, for example, visits were erased while it was computed."""
    held, _ = held
    packed = await asyncio.gather(*(held.compressed(DASHBOARD, MARCH, False, body) for body in (b"[1]", b"[2]")))
    assert [gzip.decompress(one) for one in packed] == [b"[1]", b"[2]"]
    assert held._cache.get(CacheKey.of(DASHBOARD.name, MARCH)) is None
