"""The outbox and its sender: a fake clock over days, real receivers, and processes that are killed."""

import itertools
import json
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from ipaddress import ip_network

import pytest
from standardwebhooks import Webhook

from service.control_database import ControlDatabase
from service.hooks.delivery import Attempt, HookClient
from service.hooks.outbox import (
    DISABLED_FAILURES,
    JITTER,
    KEPT,
    LEASE,
    MAX_MESSAGE_BYTES,
    MAX_UNDER_WAY,
    SCHEDULE,
    claim,
    delete_old,
    enqueue,
    finish,
    message,
)
from service.hooks.records import EVENTS, HookChanges
from service.hooks.registry import HookConflict, Hooks
from service.hooks.sender import THREADS, Sender
from tests.support.control import open_store
from tests.support.lakes import opened

LOOPBACK = (ip_network("127.0.0.0/8"),)
JOB = {"id": "job_0123456789abcdef0123", "type": "broken_link", "title": "Links that lead nowhere"}
GONE = ["HTTP/1.1 410 Gone\r\n\r\n"]
FAILS = ["HTTP/1.1 500 Oops\r\n\r\n"]
FAILURE = Attempt(500, None, 1)


class FakeClock:
    """A clock that stands until it is moved."""

    def __init__(self):
        self.now = datetime.now(UTC).replace(microsecond=0)

    def __call__(self):
        return self.now


class Outbox:
    """A lake's hooks and their sender, by a fake clock."""

    def __init__(self, lake):
        self.lake = lake
        self.clock = FakeClock()
        self.hooks = Hooks(ControlDatabase(lake), LOOPBACK, clock=self.clock)
        self.sender = self.another()

    def another(self, client=None, **more):
        return Sender(self.hooks.database, client or HookClient(LOOPBACK), self.clock, **more)

    def hook(self, url="http://127.0.0.1:9/", **how):
        return self.hooks.create("acme", "automation", url, **how)

    def enqueue(self, event="job.approved", job=JOB, **how):
        with self.hooks.database.transaction() as connection:
            return enqueue(connection, "acme", event, job, self.clock(), **how)

    def claim(self):
        with self.hooks.database.transaction() as connection:
            return claim(connection, self.clock())

    def finish(self, claimed, attempt):
        with self.hooks.database.transaction() as connection:
            return finish(connection, claimed, attempt, self.clock())

    def send_all(self):
        while self.sender.send_one():
            pass

    def only(self, hook):
        (delivery,) = self.hooks.deliveries("acme", hook.id)
        return delivery

    def run_until_dead(self, hook):
        """The times of the attempts, in seconds since the message was made; an attempt is made as soon as it is due."""
        started_at, times = self.clock(), []
        while (delivery := self.only(hook)).status == "pending":
            self.clock.now = delivery.next_attempt_at - timedelta(seconds=1)
            assert self.clock() < started_at or not self.sender.send_one()
            self.clock.now = delivery.next_attempt_at
            assert self.sender.send_one()
            times.append((self.clock() - started_at).total_seconds())
        return times


@pytest.fixture
def outbox(lake):
    outbox = Outbox(lake)
    yield outbox
    outbox.hooks.database.close()


# What is in a message


def test_a_message_is_one_row_for_each_active_hook_that_subscribes(outbox):
    approved, _ = outbox.hook()
    every, _ = outbox.hook(events=EVENTS)
    outbox.hook(events=["job.created"])
    outbox.hook(active=False)
    outbox.hooks.create("other", "other", "https://other.example/")
    assert outbox.enqueue() == 2
    one, other = outbox.only(approved), outbox.only(every)
    assert one.id != other.id
    assert [outbox.enqueue(event) for event in EVENTS] == [2, 2, *[1] * 5]
    assert {claimed.body for claimed in (outbox.claim(), outbox.claim())} == {
        message("acme", "job.approved", JOB, outbox.clock(), "")
    }


def test_a_message_that_is_rolled_back_is_not_sent(outbox):
    outbox.hook()
    with suppress(ZeroDivisionError), outbox.hooks.database.transaction() as connection:
        assert enqueue(connection, "acme", "job.approved", JOB, outbox.clock()) == 1
        raise ZeroDivisionError
    assert outbox.sender.pending() == 0


def test_the_message_has_the_job_and_links(outbox):
    now = datetime(2026, 11, 22, 2, 37, 28, 9, tzinfo=UTC)
    job = JOB | {"evidence": {"rows": [{"n": n} for n in range(30)], "untrusted": []}}
    told = json.loads(message("acme", "job.created", job, now, "https://stats.example/base"))
    assert told == {
        "type": "job.created",
        "timestamp": "2026-11-22T02:37:28Z",
        "data": {
            "organization": "acme",
            "job": JOB | {"evidence": {"rows": [{"n": n} for n in range(10)], "untrusted": []}},
            "links": {
                "self": "https://stats.example/base/jobs/job_0123456789abcdef0123",
                "actions": "https://stats.example/base/jobs/job_0123456789abcdef0123/actions",
                "implementations": "https://stats.example/base/jobs/job_0123456789abcdef0123/implementations",
                "dashboard": "https://stats.example/base/app/jobs/job_0123456789abcdef0123",
            },
        },
    }
    assert json.loads(message("acme", "job.created", JOB, now, ""))["data"]["links"]["self"] == f"/jobs/{JOB['id']}"


def test_rows_are_dropped_from_the_end_until_the_message_fits():
    job = JOB | {"evidence_rows": 9, "evidence": {"rows": [{"n": n, "path": "x" * 4_000} for n in range(9)]}}
    body = message("acme", "job.created", job, datetime.now(UTC), "")
    assert len(body) <= MAX_MESSAGE_BYTES
    told = json.loads(body)["data"]["job"]
    assert ([row["n"] for row in told["evidence"]["rows"]], told["evidence_rows"]) == ([0, 1, 2, 3], 9)
    assert len(job["evidence"]["rows"]) == 9


# Attempts


def test_a_delivered_message_is_verified_by_the_standards_own_library(outbox, receiver):
    there = receiver()
    hook, secret = outbox.hook(there.url)
    outbox.enqueue()
    outbox.send_all()
    (got,) = there.requests
    assert Webhook(secret).verify(got.body, got.headers)["data"]["job"] == JOB
    delivery = outbox.only(hook)
    assert got.headers["webhook-id"] == delivery.id
    assert (delivery.status, delivery.attempts, delivery.status_code, delivery.error) == ("delivered", 1, 204, None)
    assert outbox.hooks.hook("acme", hook.id).last_success_at == outbox.clock()
    assert outbox.sender.outcomes == {"delivered": 1, "failed": 0, "dead": 0}
    assert outbox.sender.pending() == 0


def test_attempts_fall_on_the_schedule_over_76_hours_and_then_the_message_is_dead(outbox, receiver):
    there = receiver(FAILS)
    hook, _ = outbox.hook(there.url)
    outbox.enqueue()
    times = outbox.run_until_dead(hook)
    assert len(times) == len(SCHEDULE) == 10
    pauses = [after - before for before, after in itertools.pairwise([0.0, *times])]
    for pause, planned in zip(pauses, SCHEDULE, strict=True):
        seconds = planned.total_seconds()
        assert (1 - JITTER) * seconds - 1 <= pause <= (1 + JITTER) * seconds
    assert 60 * 3_600 <= times[-1] <= 92 * 3_600
    assert sum(SCHEDULE, timedelta(0)) == timedelta(hours=75, minutes=35, seconds=5)
    assert len({(got.headers["webhook-id"], got.body) for got in there.requests}) == 1
    assert len({got.headers["webhook-timestamp"] for got in there.requests}) == 10
    delivery = outbox.only(hook)
    assert (delivery.status, delivery.attempts, delivery.status_code) == ("dead", 10, 500)
    assert outbox.sender.outcomes == {"delivered": 0, "failed": 9, "dead": 1}


def test_pauses_are_not_the_same_for_everybody(outbox):
    pauses = set()
    for _ in range(8):
        hook, _ = outbox.hook()
        outbox.enqueue()
        while claimed := outbox.claim():
            outbox.finish(claimed, FAILURE)
            outbox.clock.now += timedelta(hours=30)
            if claimed.attempts == 3:
                break
        pauses.add(outbox.only(hook).next_attempt_at - outbox.only(hook).attempted_at)
        outbox.hooks.delete("acme", hook.id)
    assert len(pauses) > 1


def test_an_error_then_a_success(outbox, receiver):
    there = receiver(FAILS, ["HTTP/1.1 204 No Content\r\n\r\n"])
    hook, secret = outbox.hook(there.url)
    outbox.enqueue()
    assert len(outbox.run_until_dead(hook)) == 2
    assert outbox.only(hook).status == "delivered"
    for got in there.requests:
        Webhook(secret).verify(got.body, got.headers)
    health = outbox.hooks.hook("acme", hook.id)
    assert (health.consecutive_failures, health.last_failure_at is None) == (0, False)


@pytest.mark.parametrize(
    ("header", "seconds"), [("7200", (7_200, 7_200)), ("99999999", (86_400, 86_400)), ("-1", (4, 6)), ("1", (4, 6))]
)
def test_retry_after_is_respected_for_a_day_at_most(outbox, receiver, header, seconds):
    there = receiver([f"HTTP/1.1 429 Too Many Requests\r\nRetry-After: {header}\r\n\r\n"])
    hook, _ = outbox.hook(there.url)
    outbox.enqueue()
    outbox.send_all()
    delivery = outbox.only(hook)
    pause = (delivery.next_attempt_at - delivery.attempted_at).total_seconds()
    assert seconds[0] - 1 <= pause <= seconds[1]


def test_410_ends_the_hook(outbox, receiver, caplog):
    there = receiver(GONE)
    hook, _ = outbox.hook(f"{there.url}?token=canary")
    outbox.enqueue()
    outbox.enqueue()
    outbox.send_all()
    assert [one.status for one in outbox.hooks.deliveries("acme", hook.id)] == ["dead", "dead"]
    assert there.connections == 1
    ended = outbox.hooks.hook("acme", hook.id)
    assert (ended.active, ended.disabled_reason) == (False, "The receiver answered 410 Gone.")
    assert outbox.enqueue() == 0
    assert f"{hook.id} of acme is disabled" in caplog.text
    assert "canary" not in caplog.text


def test_a_hook_that_fails_for_five_days_is_disabled_and_can_be_activated(outbox):
    hook, _ = outbox.hook()
    began = outbox.clock()
    for number in range(DISABLED_FAILURES + 5):
        outbox.clock.now = began + timedelta(days=5 if number == DISABLED_FAILURES + 4 else 4)
        outbox.clock.now = began if number == 0 else outbox.clock.now
        assert outbox.enqueue() == 1
        outbox.finish(outbox.claim(), FAILURE)
    ended = outbox.hooks.hook("acme", hook.id)
    assert (ended.active, ended.disabled_reason) == (False, "Every attempt failed for 5 days.")
    assert ended.consecutive_failures == DISABLED_FAILURES + 5
    assert {one.status for one in outbox.hooks.deliveries("acme", hook.id)} == {"dead"}
    again = outbox.hooks.change("acme", hook.id, HookChanges(active=True))
    assert (again.active, again.disabled_reason, again.consecutive_failures) == (True, None, 0)
    assert outbox.enqueue() == 1
    outbox.finish(outbox.claim(), FAILURE)
    assert outbox.hooks.hook("acme", hook.id).active


def test_few_failures_in_a_long_time_disable_nothing(outbox):
    hook, _ = outbox.hook()
    for _ in range(DISABLED_FAILURES - 1):
        outbox.enqueue()
        outbox.clock.now += timedelta(days=1)
        outbox.finish(outbox.claim(), FAILURE)
    assert outbox.hooks.hook("acme", hook.id).active


# Order, leases and replays


def test_messages_keep_their_order_and_one_that_waits_lets_others_pass(outbox, receiver):
    there = receiver(FAILS, ["HTTP/1.1 204 No Content\r\n\r\n"])
    outbox.hook(there.url)
    for number in range(3):
        outbox.enqueue(job=JOB | {"id": f"job_{number}"})
    outbox.send_all()
    outbox.clock.now += timedelta(seconds=7)
    outbox.send_all()
    told = [json.loads(got.body)["data"]["job"]["id"] for got in there.requests]
    assert told == ["job_0", "job_1", "job_2", "job_0"]


def test_of_a_hook_one_delivery_is_under_way_at_a_time(outbox):
    first, _ = outbox.hook()
    second, _ = outbox.hook()
    outbox.enqueue()
    outbox.enqueue()
    claimed = [outbox.claim(), outbox.claim(), outbox.claim()]
    assert [one and one.hook_id for one in claimed] == [first.id, second.id, None]
    assert outbox.finish(claimed[0], Attempt(204, None, 1)) == "delivered"
    assert outbox.claim().hook_id == first.id


def test_receivers_of_one_organization_that_hang_hold_up_nobody_elses_messages(outbox):
    for _ in range(MAX_UNDER_WAY + 1):
        outbox.hook()
    outbox.enqueue()
    outbox.clock.now += timedelta(seconds=1)
    outbox.hooks.create("other", "automation", "https://other.example/")
    with outbox.hooks.database.transaction() as connection:
        enqueue(connection, "other", "job.approved", JOB, outbox.clock())
    claimed = [outbox.claim() for _ in range(THREADS)]
    assert [one and one.organization for one in claimed] == [*["acme"] * MAX_UNDER_WAY, "other", None]
    outbox.finish(claimed[0], FAILURE)
    assert outbox.claim().organization == "acme"


def test_a_hook_has_one_pending_test_at_most(outbox):
    hook, _ = outbox.hook()
    first = outbox.hooks.send_test("acme", hook.id)
    with pytest.raises(HookConflict, match=first):
        outbox.hooks.send_test("acme", hook.id)
    outbox.finish(outbox.claim(), FAILURE)
    with pytest.raises(HookConflict, match=first):
        outbox.hooks.send_test("acme", hook.id)
    outbox.hooks.replay("acme", hook.id, first)
    assert outbox.finish(outbox.claim(), Attempt(204, None, 1)) == "delivered"
    assert outbox.hooks.send_test("acme", hook.id) != first


def test_a_delivery_that_nobody_finishes_is_due_again_after_its_lease(outbox):
    outbox.hook()
    outbox.enqueue()
    lost = outbox.claim()
    outbox.clock.now += LEASE - timedelta(seconds=1)
    assert outbox.claim() is None
    outbox.clock.now += timedelta(seconds=1)
    again = outbox.claim()
    assert (again.id, again.body, again.attempts) == (lost.id, lost.body, 0)
    assert outbox.finish(lost, FAILURE) == "lost"
    assert outbox.finish(again, Attempt(204, None, 1)) == "delivered"


def test_a_dead_message_can_be_replayed_for_30_days(outbox, receiver):
    there = receiver(*[FAILS] * 10, ["HTTP/1.1 204 No Content\r\n\r\n"])
    hook, _ = outbox.hook(there.url)
    outbox.enqueue()
    outbox.run_until_dead(hook)
    delivery = outbox.only(hook)
    outbox.clock.now += KEPT - timedelta(seconds=1)
    with outbox.hooks.database.transaction() as connection:
        delete_old(connection, outbox.clock())
    assert outbox.hooks.replay("acme", hook.id, delivery.id) == delivery.id
    outbox.send_all()
    assert outbox.only(hook).status == "delivered"
    assert len({(got.headers["webhook-id"], got.body) for got in there.requests}) == 1
    outbox.clock.now += KEPT
    with outbox.hooks.database.transaction() as connection:
        delete_old(connection, outbox.clock())
    assert outbox.hooks.deliveries("acme", hook.id) == []


def test_a_hook_that_is_deleted_meanwhile_loses_what_is_under_way(outbox):
    hook, _ = outbox.hook()
    outbox.enqueue()
    claimed = outbox.claim()
    outbox.hooks.delete("acme", hook.id)
    assert outbox.finish(claimed, FAILURE) == "lost"
    assert outbox.claim() is None


def test_a_hook_that_is_paused_meanwhile_gets_no_further_attempt(outbox):
    hook, _ = outbox.hook()
    outbox.enqueue()
    outbox.enqueue()
    claimed = outbox.claim()
    outbox.hooks.change("acme", hook.id, HookChanges(active=False))
    assert outbox.finish(claimed, FAILURE) == "dead"
    assert {one.status for one in outbox.hooks.deliveries("acme", hook.id)} == {"dead"}
    assert outbox.hooks.hook("acme", hook.id).disabled_reason is None


def test_during_a_rotation_both_secrets_verify_and_after_24_hours_the_new_one_only(outbox, receiver):
    there = receiver()
    hook, old = outbox.hook(there.url)
    rotated, new = outbox.hooks.rotate("acme", hook.id)
    assert (rotated.secret_last4, old != new) == (new[-4:], True)
    assert rotated.previous_secret_until == outbox.clock() + timedelta(hours=24)
    signatures = []
    for pause in (timedelta(hours=24) - timedelta(seconds=1), timedelta(seconds=1)):
        outbox.clock.now += pause
        outbox.enqueue()
        outbox.send_all()
        got = there.requests[-1]
        signatures.append(got.headers["webhook-signature"].split(" "))
        stamp = datetime.fromtimestamp(int(got.headers["webhook-timestamp"]), UTC).replace(tzinfo=None)
        expected = [Webhook(key).sign(got.headers["webhook-id"], stamp, got.body.decode()) for key in (new, old)]
        assert signatures[-1] == expected[: len(signatures[-1])]
    assert [len(one) for one in signatures] == [2, 1]
    with outbox.hooks.database.transaction() as connection:
        delete_old(connection, outbox.clock())
    assert outbox.hooks.database.rows("SELECT previous_secret, previous_secret_until FROM hooks") == [(None, None)]


def test_what_follows_from_a_delivery_is_in_its_transaction(outbox, receiver):
    there = receiver(FAILS, ["HTTP/1.1 204 No Content\r\n\r\n"])
    hook, _ = outbox.hook(there.url)
    told = []

    def on_delivered(connection, claimed, now):
        assert connection.in_transaction
        told.append((claimed.organization, claimed.event, claimed.job_id))
        if len(told) == 1:
            raise ZeroDivisionError

    outbox.sender = outbox.another(on_delivered=on_delivered)
    outbox.enqueue()
    outbox.send_all()
    assert told == []
    outbox.clock.now = outbox.only(hook).next_attempt_at
    with pytest.raises(ZeroDivisionError):
        outbox.sender.send_one()
    assert outbox.only(hook).status == "pending"
    outbox.clock.now += LEASE
    outbox.send_all()
    assert told == [("acme", "job.approved", JOB["id"])] * 2
    assert outbox.only(hook).status == "delivered"


KILLED = """
import os, signal, sys
from datetime import UTC, datetime
from pathlib import Path
from ipaddress import ip_network
from data import Lake
from service.control_database import ControlDatabase
from service.hooks import sender
from service.hooks.delivery import HookClient

def killed(*_):
    os.kill(os.getpid(), signal.SIGKILL)

sender.finish = killed
control = ControlDatabase(Lake(Path(sys.argv[1])))
client = HookClient((ip_network("127.0.0.0/8"),))
sender.Sender(control, client, lambda: datetime.now(UTC)).send_one()
"""


def test_a_sender_that_is_killed_between_sending_and_recording_leads_to_the_same_message_again(outbox, receiver):
    there = receiver()
    hook, secret = outbox.hook(there.url)
    outbox.enqueue()
    run = subprocess.run([sys.executable, "-c", KILLED, str(outbox.lake.root)], check=False, timeout=300)
    assert run.returncode == -signal.SIGKILL
    assert outbox.only(hook).status == "pending"
    outbox.clock.now = datetime.now(UTC) + LEASE
    outbox.send_all()
    first, second = there.wait_for(2)
    assert first.headers["webhook-id"] == second.headers["webhook-id"]
    assert first.body == second.body
    Webhook(secret).verify(first.body, first.headers)
    assert outbox.only(hook).status == "delivered"


# Threads


def test_several_senders_share_the_outbox_and_send_everything_once(lake, receiver):
    outbox, there = Outbox(lake), receiver()
    for _ in range(10):
        outbox.hook(there.url)
    for _ in range(5):
        outbox.enqueue()
    with opened(lake.root) as other, open_store(Hooks, other, LOOPBACK) as hooks:
        senders = [outbox.sender, Sender(hooks.database, HookClient(LOOPBACK), outbox.clock)]
        for one in senders:
            one.begin()
        there.wait_for(50)
        for one in senders:
            one._stopped.set()
            for thread in one._threads:
                thread.join()
    assert sum(one.outcomes["delivered"] for one in senders) == 50
    assert len({got.headers["webhook-id"] for got in there.requests}) == there.connections == 50
    outbox.hooks.database.close()


def test_a_thread_survives_what_goes_wrong(outbox, receiver, caplog, monkeypatch):
    monkeypatch.setattr("service.hooks.sender.POLL_SECONDS", 0.01)
    there = receiver()
    outbox.hook(there.url)
    failures = iter([OSError("canary"), OSError("canary")])
    failed = threading.Event()

    class Failing(HookClient):
        def post(self, *what):
            for failure in failures:
                failed.set()
                outbox.clock.now += LEASE
                raise failure
            return super().post(*what)

    sender = outbox.another(Failing(LOOPBACK))
    outbox.enqueue()
    sender.begin()
    assert failed.wait(60)
    there.wait_for(1)
    sender._stopped.set()
    for thread in sender._threads:
        thread.join()
    assert sender.outcomes["delivered"] == 1
    assert "Hooks cannot be sent" in caplog.text
    assert "canary" not in caplog.text
