"""Content, order and outcomes of messages, with a fake clock over days and real receivers."""

import itertools
import json
from contextlib import suppress
from datetime import UTC, datetime, timedelta

import pytest
from standardwebhooks import Webhook

from service.hooks.attempts import DISABLED_FAILURES, JITTER, SCHEDULE, delete_old, next_delivery
from service.hooks.outbox import LEASE, MAX_MESSAGE_BYTES, MAX_PENDING, HookConflict, check_room, enqueue, message
from service.hooks.records import EVENTS, HookChanges
from tests.service.hooks.outboxes import FAILS, FAILURE, GONE, JOB, SILENCE, TAKEN, TAKES


@pytest.fixture
def subscribed(outbox):
    """Create five hooks; return acme's two that get approvals: one only for approvals, one for every event."""
    approved, _ = outbox.hook()
    every, _ = outbox.hook(events=EVENTS)
    outbox.hook(events=["job.created"])
    outbox.hook(active=False)
    outbox.hooks.create("other", "other", "https://other.example/")
    return approved, every


def test_a_message_is_queued_for_each_active_subscribed_hook(outbox, subscribed):
    assert outbox.enqueue() == 2
    one, other = map(outbox.only, subscribed)
    assert one.id != other.id
    assert {claimed.body for claimed in (outbox.claim(), outbox.claim())} == {
        message("acme", "job.approved", JOB, outbox.clock(), "")
    }


@pytest.mark.usefixtures("subscribed")
def test_a_hook_for_every_event_gets_each_event(outbox):
    assert [outbox.enqueue(event) for event in EVENTS] == [2, 2, *[1] * 7]


@pytest.mark.usefixtures("subscribed")
def test_a_transaction_that_fails_queues_no_message(outbox):
    outbox.enqueue()
    pending = outbox.sender.pending()
    with suppress(ZeroDivisionError), outbox.hooks.database.transaction() as connection:
        assert enqueue(connection, "acme", "job.approved", JOB, outbox.clock()) == 2
        raise ZeroDivisionError
    assert outbox.sender.pending() == pending


AT = datetime(2026, 11, 22, 2, 37, 28, 9, tzinfo=UTC)


def test_a_message_has_an_event_a_time_a_job_and_addresses():
    told = json.loads(message("acme", "job.created", JOB, AT, "https://stats.example/base"))
    data, path = told.pop("data"), "https://stats.example/base/jobs/job_0123456789abcdef0123"
    assert told == {"type": "job.created", "timestamp": "2026-11-22T02:37:28Z"}
    assert data.pop("links") == {
        "self": path,
        "actions": f"{path}/actions",
        "implementations": f"{path}/implementations",
        "dashboard": path.replace("/jobs/", "/app/jobs/"),
    }
    assert data == {"organization": "acme", "job": JOB}


def test_without_a_public_address_a_message_has_paths():
    assert json.loads(message("acme", "job.created", JOB, AT, ""))["data"]["links"]["self"] == f"/jobs/{JOB['id']}"


def test_a_message_has_at_most_ten_evidence_rows():
    job = JOB | {"evidence": {"rows": [{"n": n} for n in range(30)], "untrusted": []}}
    told = json.loads(message("acme", "job.created", job, AT, ""))["data"]["job"]
    assert told == JOB | {"evidence": {"rows": [{"n": n} for n in range(10)], "untrusted": []}}


def test_a_long_message_has_fewer_rows():
    job = JOB | {"evidence_rows": 9, "evidence": {"rows": [{"n": n, "path": "x" * 4_000} for n in range(9)]}}
    body = message("acme", "job.created", job, AT, "")
    assert len(body) <= MAX_MESSAGE_BYTES
    told = json.loads(body)["data"]["job"]
    assert ([row["n"] for row in told["evidence"]["rows"]], told["evidence_rows"]) == ([0, 1, 2, 3], 9)
    assert len(job["evidence"]["rows"]) == 9


# Attempts


def assert_ended(outbox, hook, reason, caplog):
    """Check that the service has disabled a hook for a reason, and that all its messages are dead."""
    ended = outbox.health(hook)
    assert (ended.active, ended.paused_until, ended.disabled_reason) == (False, None, reason)
    assert set(outbox.statuses(hook)) == {"dead"}
    assert f"{hook.id} of acme is disabled: {reason}" in caplog.text


def test_a_retried_message_passes_standard_verification(outbox, receiver):
    hook, secret = outbox.waiting(there := receiver(FAILS, TAKES))
    assert len(outbox.run_until_dead(hook)) == 2
    delivery = outbox.only(hook)
    for got in there.requests:
        assert Webhook(secret).verify(got.body, got.headers)["data"]["job"] == JOB
        assert got.headers["webhook-id"] == delivery.id
    assert (delivery.status, delivery.attempts, delivery.status_code, delivery.error) == ("delivered", 2, 204, None)
    health = outbox.health(hook)
    assert (health.last_success_at, health.consecutive_failures) == (outbox.clock(), 0)
    assert health.last_failure_at is not None
    assert outbox.sender.outcomes == {"delivered": 1, "failed": 1, "dead": 0}
    assert outbox.sender.pending() == 0


def test_a_message_is_dead_after_all_scheduled_attempts(outbox, receiver):
    hook, _ = outbox.waiting(there := receiver(FAILS))
    times = outbox.run_until_dead(hook)
    assert len(times) == len(SCHEDULE) == 10
    pauses = [after - before for before, after in itertools.pairwise([0.0, *times])]
    for pause, planned in zip(pauses, SCHEDULE, strict=True):
        seconds = planned.total_seconds()
        assert (1 - JITTER) * seconds - 1 <= pause <= (1 + JITTER) * seconds
    assert len({round(pause - planned.total_seconds()) for pause, planned in zip(pauses, SCHEDULE, strict=True)}) > 1
    assert 60 * 3_600 <= times[-1] <= 92 * 3_600
    assert sum(SCHEDULE, timedelta(0)) == timedelta(hours=75, minutes=35, seconds=5)
    assert len({(got.headers["webhook-id"], got.body) for got in there.requests}) == 1
    assert len({got.headers["webhook-timestamp"] for got in there.requests}) == 10
    delivery = outbox.only(hook)
    assert (delivery.status, delivery.attempts, delivery.status_code) == ("dead", 10, 500)
    assert outbox.sender.outcomes == {"delivered": 0, "failed": 9, "dead": 1}


@pytest.mark.parametrize(
    ("header", "seconds"), [("7200", (7_200, 7_200)), ("99999999", (86_400, 86_400)), ("-1", (4, 6)), ("1", (4, 6))]
)
def test_retry_after_is_respected_for_at_most_a_day(outbox, receiver, header, seconds):
    hook, _ = outbox.waiting(receiver([f"HTTP/1.1 429 Too Many Requests\r\nRetry-After: {header}\r\n\r\n"]))
    outbox.send_all()
    delivery = outbox.only(hook)
    pause = (delivery.next_attempt_at - delivery.attempted_at).total_seconds()
    assert seconds[0] - 1 <= pause <= seconds[1]


def test_status_410_disables_the_hook(outbox, receiver, caplog):
    there = receiver(GONE)
    there.url += "?token=canary"
    hook, _ = outbox.waiting(there, 2)
    outbox.send_all()
    assert_ended(outbox, hook, "The receiver answered 410 Gone.", caplog)
    assert (there.connections, outbox.enqueue()) == (1, 0)
    assert "canary" not in caplog.text


def failed_for_five_days(outbox):
    """Let every message to a hook fail for five days; return the hook and the number of failures."""
    hook, _ = outbox.hook()
    began, times = outbox.clock(), DISABLED_FAILURES + 5
    for number in range(times):
        outbox.clock.now = began + timedelta(days={0: 0, times - 1: 5}.get(number, 4))
        assert outbox.enqueue() == 1
        outbox.hooks.database.rows("UPDATE hooks SET paused_until = NULL")
        outbox.finish(outbox.claim(), FAILURE)
    return hook, times


def test_a_hook_that_fails_for_five_days_is_disabled(outbox, caplog):
    hook, times = failed_for_five_days(outbox)
    assert_ended(outbox, hook, "Every attempt failed for 5 days.", caplog)
    assert outbox.health(hook).consecutive_failures == times


def test_a_reactivated_hook_starts_over(outbox):
    hook, _ = failed_for_five_days(outbox)
    again = outbox.hooks.change("acme", hook.id, HookChanges(active=True))
    assert (again.active, again.disabled_reason, again.consecutive_failures) == (True, None, 0)
    assert outbox.enqueue() == 1
    outbox.finish(outbox.claim(), FAILURE)
    assert outbox.health(hook).active


def test_a_few_failures_over_a_long_time_disable_no_hook(outbox):
    hook, _ = outbox.hook()
    for _ in range(DISABLED_FAILURES - 1):
        outbox.enqueue()
        outbox.finish(outbox.claim(), FAILURE)
        outbox.clock.now += timedelta(days=1)
    assert outbox.health(hook).consecutive_failures == DISABLED_FAILURES - 1
    assert outbox.health(hook).active


# Order, leases and replays


def test_a_hook_has_one_delivery_in_progress_at_a_time(outbox):
    first, _ = outbox.hook()
    second, _ = outbox.hook()
    outbox.enqueue()
    outbox.enqueue()
    assert outbox.claim(full=["acme"]) is None  # which has its maximum of deliveries in progress
    claimed = [outbox.claim(full=["other"]), outbox.claim(), outbox.claim()]
    assert [one and one.hook_id for one in claimed] == [first.id, second.id, None]
    assert outbox.finish(claimed[0], TAKEN) == "delivered"
    assert outbox.claim().hook_id == first.id


def test_an_unfinished_delivery_is_due_again_after_its_lease(outbox):
    outbox.waiting()
    lost = outbox.claim()
    outbox.clock.now += LEASE - timedelta(seconds=1)
    assert outbox.claim() is None
    outbox.clock.now += timedelta(seconds=1)
    again = outbox.claim()
    assert (again.id, again.body, again.attempts) == (lost.id, lost.body, 0)
    assert [outbox.finish(lost, FAILURE), outbox.finish(again, TAKEN)] == ["lost", "delivered"]


def test_organizations_and_their_hooks_take_turns(outbox):
    names = {}
    for organization in ("acme", "acme", "acme", "other", "third"):
        hook, _ = outbox.waiting(count=2, organization=organization)
        names[hook.id] = f"{organization}{len(names)}"

    def turn(count):
        claimed = [outbox.claim() for _ in range(count)]
        for one in claimed:
            outbox.finish(one, TAKEN)
        return [names[one.hook_id] for one in claimed]

    assert turn(5) == ["acme0", "other3", "third4", "acme1", "acme2"]
    assert turn(4) == ["other3", "third4", "acme0", "acme1"]
    new, _ = outbox.waiting(organization="new")
    names[new.id] = "new5"
    assert turn(2) == ["new5", "acme2"]


def test_an_unresponsive_receiver_pauses_its_hook(outbox):
    hook, _ = outbox.waiting(count=3)
    outbox.finish(outbox.claim(), SILENCE)
    paused = outbox.health(hook).paused_until
    assert timedelta(seconds=4) <= paused - outbox.clock() <= timedelta(seconds=6)
    assert {one.next_attempt_at for one in outbox.hooks.deliveries("acme", hook.id)} == {paused}
    for failures in range(1, 10):
        assert outbox.claim() is None
        outbox.clock.now = paused
        outbox.finish(outbox.claim(), SILENCE)
        paused = outbox.health(hook).paused_until
        planned = SCHEDULE[min(failures + 1, 9)]
        assert (1 - JITTER) * planned <= paused - outbox.clock() + timedelta(seconds=1) <= (1 + JITTER) * planned * 1.1
    outbox.clock.now = paused
    outbox.finish(outbox.claim(), FAILURE)  # it responds again, with an error that delays one message only
    assert outbox.health(hook).paused_until is None
    assert outbox.claim() is not None


def test_three_error_responses_pause_a_hook_until_a_success(outbox, receiver):
    hook, _ = outbox.waiting(there := receiver(*[FAILS] * 5, TAKES), 20)
    for attempts, planned in ((3, SCHEDULE[1]), (4, SCHEDULE[2]), (5, SCHEDULE[3])):
        outbox.send_all()
        assert there.connections == attempts
        paused = outbox.health(hook).paused_until
        assert (1 - JITTER) * planned - timedelta(seconds=1) <= paused - outbox.clock() <= (1 + JITTER) * planned
        outbox.clock.now = paused
    outbox.send_all()
    assert outbox.health(hook).paused_until is None
    delivered = [one for one in outbox.hooks.deliveries("acme", hook.id) if one.status == "delivered"]
    assert len(delivered) >= 15


def test_a_repeatedly_rejected_message_does_not_delay_others(outbox, receiver):
    hook, _ = outbox.waiting(there := receiver(*[FAILS] * 4, TAKES))
    for _ in range(4):
        outbox.clock.now = outbox.only(hook).next_attempt_at
        outbox.send_all()
    for job_id in ("job_2", "job_3"):
        outbox.enqueue(job=JOB | {"id": job_id})
    outbox.send_all()
    assert outbox.statuses(hook) == ["delivered", "delivered", "pending"]
    outbox.clock.now += timedelta(days=1)
    outbox.send_all()
    told = [json.loads(got.body)["data"]["job"]["id"] for got in there.requests]
    assert told == [JOB["id"]] * 4 + ["job_2", "job_3", JOB["id"]]


def test_a_test_a_replay_or_a_new_address_ends_a_pause(outbox):
    hook, _ = outbox.waiting()

    def paused():
        outbox.finish(outbox.claim(), SILENCE)
        assert outbox.claim() is None
        return outbox.only(hook).id

    outbox.hooks.replay("acme", hook.id, paused())
    paused()
    outbox.hooks.change("acme", hook.id, HookChanges(url="http://127.0.0.1:10/"))
    paused()
    outbox.hooks.send_test("acme", hook.id)
    assert outbox.claim() is not None


def test_deliveries_dated_by_a_wrong_clock_are_due(outbox):
    real = outbox.clock()
    outbox.clock.now = real + timedelta(days=400)
    late, _ = outbox.hook()
    paused, _ = outbox.hook()
    outbox.enqueue()
    abandoned = outbox.claim()
    outbox.finish(outbox.claim(), SILENCE)
    outbox.clock.now = real
    claimed = [outbox.claim(), outbox.claim()]
    assert {one.hook_id for one in claimed} == {late.id, paused.id}
    assert abandoned.id in {one.id for one in claimed}
    assert [outbox.finish(one, TAKEN) for one in claimed] == ["delivered", "delivered"]
    outbox.enqueue()
    assert outbox.claim() is not None


# Limits on pending messages


def test_a_new_finding_replaces_its_jobs_pending_message(outbox):
    hook, _ = outbox.hook(events=EVENTS)

    def found(event, **job):
        return outbox.enqueue(event, JOB | job, by_service=True)

    def waiting():
        listed = outbox.hooks.database.rows(
            "SELECT event, body FROM deliveries WHERE status = 'pending' ORDER BY number"
        )
        return [(event, json.loads(body)["type"], json.loads(body)["data"]["job"].get("n")) for event, body in listed]

    first = found("job.created", n=1)
    ids = [one.id for one in outbox.hooks.deliveries("acme", hook.id)]
    found("job.updated", n=2)
    found("job.created", id="job_other", n=3)
    assert first == 1
    assert waiting() == [("job.created", "job.created", 2), ("job.created", "job.created", 3)]
    assert ids[0] not in {one.id for one in outbox.hooks.deliveries("acme", hook.id)}
    found("job.reopened", n=4)
    outbox.enqueue("job.approved", JOB | {"n": 5})
    found("job.not_measurable", n=6)
    assert waiting() == [("job.created",) * 2 + (3,), ("job.approved",) * 2 + (5,), ("job.not_measurable",) * 2 + (6,)]


def test_messages_in_progress_or_delivered_are_not_replaced(outbox):
    hook, _ = outbox.hook(events=EVENTS)
    outbox.enqueue("job.created", by_service=True)
    claimed = outbox.claim()
    for _ in range(2):
        outbox.enqueue("job.updated", by_service=True)
        outbox.finish(claimed, TAKEN)
    assert [one.event for one in outbox.hooks.deliveries("acme", hook.id)] == ["job.updated", "job.created"]


def test_user_actions_are_rejected_at_100_pending_messages(outbox):
    hook, _ = outbox.waiting(count=MAX_PENDING)
    outbox.hook(events=["job.approved", "job.created"])
    pending = outbox.sender.pending()
    for refused in (outbox.enqueue, lambda: outbox.hooks.send_test("acme", hook.id)):
        with pytest.raises(HookConflict, match=rf"^100 messages are pending for the hook 'automation' \({hook.id}\)"):
            refused()
    assert outbox.sender.pending() == pending
    assert outbox.enqueue("job.created", by_service=True) == 1
    delivered = outbox.claim()
    outbox.finish(delivered, TAKEN)
    assert outbox.enqueue() == 2
    with pytest.raises(HookConflict):
        outbox.hooks.replay("acme", hook.id, delivered.id)


def test_a_paused_hook_with_100_messages_is_disabled(outbox, caplog):
    hook, _ = outbox.waiting(count=MAX_PENDING)
    outbox.finish(outbox.claim(), SILENCE)
    assert outbox.enqueue() == 0
    assert_ended(outbox, hook, "100 messages were pending, and the receiver did not respond.", caplog)
    assert outbox.sender.pending() == 0


def test_a_hook_has_at_most_one_pending_test(outbox):
    hook, _ = outbox.hook()
    first = outbox.hooks.send_test("acme", hook.id)
    with pytest.raises(HookConflict, match=first):
        outbox.hooks.send_test("acme", hook.id)
    outbox.finish(outbox.claim(), FAILURE)
    with pytest.raises(HookConflict, match=first):
        outbox.hooks.send_test("acme", hook.id)
    outbox.hooks.replay("acme", hook.id, first)
    assert outbox.finish(outbox.claim(), TAKEN) == "delivered"
    assert outbox.hooks.send_test("acme", hook.id) != first


def test_a_dead_message_can_be_replayed_for_30_days(outbox, receiver):
    hook, _ = outbox.waiting(there := receiver(*[FAILS] * 10, TAKES))
    outbox.run_until_dead(hook)
    delivery = outbox.only(hook)
    outbox.clock.now += timedelta(days=30) - timedelta(seconds=1)
    outbox.delete_old()
    assert outbox.hooks.replay("acme", hook.id, delivery.id) == delivery.id
    outbox.send_all()
    assert outbox.only(hook).status == "delivered"
    assert len({(got.headers["webhook-id"], got.body) for got in there.requests}) == 1
    outbox.clock.now += timedelta(days=30)
    outbox.delete_old()
    assert outbox.hooks.deliveries("acme", hook.id) == []


def test_a_hook_keeps_only_its_newest_finished_messages(outbox, monkeypatch):
    monkeypatch.setattr("service.hooks.attempts.MAX_FINISHED", 3)
    hook, _ = outbox.hook()
    outbox.enqueue(job=JOB | {"id": "job_waiting"})
    outbox.finish(outbox.claim(), FAILURE)
    for number in range(5):
        outbox.enqueue(job=JOB | {"id": f"job_{number}"})
        assert outbox.finish(outbox.claim(), TAKEN) == "delivered"
    kept = [one.job_id for one in outbox.hooks.deliveries("acme", hook.id)]
    assert kept == ["job_4", "job_3", "job_2", "job_waiting"]


def test_the_cost_of_sending_does_not_grow_with_the_queue(outbox):
    database = outbox.hooks.database
    hooks = {name: outbox.hook(organization=name)[0] for name in ("acme", "fails", "takes")}

    def fill(count):
        for organization, attempt in (("fails", FAILURE), ("takes", TAKEN)):
            for number in range(count):
                outbox.enqueue(job=JOB | {"id": f"job_{number}"}, organization=organization)
                database.rows("UPDATE hooks SET paused_until = NULL")
                outbox.finish(outbox.claim(), attempt)

    def steps():
        """Return the number of SQLite VM steps to find the next delivery, and to count, list and delete old ones."""
        counted = itertools.count()
        for connection in (*database._readers.idle, database._writer):
            connection.set_progress_handler(lambda: next(counted) < 0, 1)
        with database.transaction() as connection:
            assert next_delivery(connection, outbox.clock()) is None
            check_room(connection, hooks["takes"].id, "takes")
            delete_old(connection, outbox.clock())
        assert (outbox.sender.dead(), outbox.only(hooks["acme"]).job_id) == (0, "job_mine")
        for connection in (*database._readers.idle, database._writer):
            connection.set_progress_handler(None, 0)
        return next(counted)

    outbox.enqueue(job=JOB | {"id": "job_mine"})
    outbox.finish(outbox.claim(), TAKEN)
    fill(2)
    few = steps()
    fill(MAX_PENDING - 2)
    assert steps() <= few + 10


def test_a_disabled_or_deleted_hook_gets_no_further_attempt(outbox):
    hook, _ = outbox.waiting(count=2)
    claimed = outbox.claim()
    outbox.hooks.change("acme", hook.id, HookChanges(active=False))
    assert outbox.finish(claimed, FAILURE) == "dead"
    assert set(outbox.statuses(hook)) == {"dead"}
    assert outbox.health(hook).disabled_reason is None
    outbox.hooks.change("acme", hook.id, HookChanges(active=True))
    outbox.enqueue()
    claimed = outbox.claim()
    outbox.hooks.delete("acme", hook.id)
    assert outbox.finish(claimed, FAILURE) == "lost"
    assert outbox.claim() is None


def test_a_rotated_secret_stays_valid_for_24_hours(outbox, receiver):
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
    outbox.delete_old()
    assert outbox.hooks.database.rows("SELECT previous_secret, previous_secret_until FROM hooks") == [(None, None)]


def test_a_delivery_outcome_is_recorded_in_one_transaction(outbox, receiver):
    hook, _ = outbox.waiting(receiver(FAILS, TAKES))
    told = []

    def on_delivered(connection, claimed, now):
        assert connection.in_transaction
        told.append((claimed.organization, claimed.event, claimed.job_id))
        if len(told) == 1:
            raise ZeroDivisionError

    outbox.sender = outbox.another(on_delivered=on_delivered)
    outbox.send_all()
    assert told == []
    outbox.clock.now = outbox.only(hook).next_attempt_at
    with pytest.raises(ZeroDivisionError):
        outbox.send_one()
    assert outbox.only(hook).status == "pending"
    outbox.clock.now += LEASE
    outbox.send_all()
    assert told == [("acme", "job.approved", JOB["id"])] * 2
    assert outbox.only(hook).status == "delivered"
