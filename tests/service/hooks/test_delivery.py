"""One delivery attempt: its signature and its response. tests/service/outgoing tests all kinds of servers."""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from service.hooks import delivery
from service.hooks.delivery import parse_retry_after, post
from service.hooks.signature import signature_headers
from tests.service.hooks.outboxes import LOOPBACK
from tests.support.tables import examples

NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)
BODY = b'{"type":"job.approved"}'


def sent(url, networks=LOOPBACK):
    return asyncio.run(post(url, {"webhook-id": "evt_1"}, BODY, NOW, networks))


@pytest.mark.parametrize("status", ["200 OK", "204 No Content", "302 Found", "429 Too Many Requests"])
def test_only_the_status_decides_whether_an_attempt_succeeds(receiver, status):
    there = receiver([f"HTTP/1.1 {status}\r\nRetry-After: 7200\r\nContent-Length: 9\r\n\r\n", "hang"])
    attempt = sent(there.url)
    assert attempt[:2] == (int(status[:3]), None)
    assert attempt.is_success == status.startswith("2")
    assert attempt.retry_after == timedelta(hours=2)
    (got,) = there.requests
    assert (got.body, got.headers["content-type"]) == (BODY, "application/json")
    assert got.headers["webhook-id"] == "evt_1"


def test_an_unanswered_attempt_records_its_error_and_duration(receiver, monkeypatch):
    there = receiver(["hang"])
    assert sent(there.url, ())[:2] == (None, "address_not_allowed")
    monkeypatch.setattr(delivery, "DEADLINE_SECONDS", 0.2)
    attempt = sent(there.url)
    assert (attempt[:2], attempt.is_success) == ((None, "timed_out"), False)
    assert 200 <= attempt.ms < 60_000


@examples("text", "seconds")
def test_a_pause_that_a_receiver_requests_is_parsed(text, seconds):
    expected = None if seconds is None else timedelta(seconds=seconds)
    assert parse_retry_after(text, NOW) == expected


def test_the_standard_webhooks_example_is_signed_correctly():
    """The test vector of the specification's reference libraries."""
    secret, body = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", b'{"test": 2432232314}'
    assert signature_headers([secret], "msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, body) == {
        "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
        "webhook-timestamp": "1614265330",
        "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    }
