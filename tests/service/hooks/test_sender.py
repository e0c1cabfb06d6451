"""The sender in its own event loop: real receivers, including the documented one, killed processes, and errors."""

import asyncio
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import suppress
from datetime import UTC, datetime

from standardwebhooks import Webhook

from service.core.clock import utc_now
from service.hooks.delivery import post
from service.hooks.outbox import LEASE
from service.hooks.registry import Hooks
from service.hooks.sender import SLOTS, Sender
from tests.service.hooks.outboxes import JOB, LOOPBACK
from tests.support.control import open_store
from tests.support.docs import HOOKS
from tests.support.lakes import opened

KILLED = """
import asyncio, os, signal, sys
from datetime import UTC, datetime
from pathlib import Path
from ipaddress import ip_network
from data import Lake
from service.core.control_database import ControlDatabase
from service.hooks import sender

def killed(*_):
    os.kill(os.getpid(), signal.SIGKILL)

sender.finish = killed
control = ControlDatabase(Lake(Path(sys.argv[1])))
one = sender.Sender(control, (ip_network("127.0.0.0/8"),), lambda: datetime.now(UTC))
asyncio.run(one.deliver(one.claim()))
"""


def test_a_sender_killed_before_recording_sends_again(outbox, receiver):
    hook, secret = outbox.waiting(there := receiver())
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


def test_several_senders_send_each_message_once(outbox, receiver):
    there = receiver()
    for _ in range(10):
        outbox.hook(there.url)
    for _ in range(5):
        outbox.enqueue()
    with opened(outbox.lake.root) as other, open_store(Hooks, other, LOOPBACK) as hooks:
        senders = [outbox.sender, Sender(hooks.database, LOOPBACK, outbox.clock)]
        for one in senders:
            one.begin()
        there.wait_for(50)
        for one in senders:
            asyncio.run(one.end())
    assert sum(one.outcomes["delivered"] for one in senders) == 50
    assert len({got.headers["webhook-id"] for got in there.requests}) == there.connections == 50


def test_receivers_that_hang_delay_no_other_messages(outbox, receiver, monkeypatch):
    """Eight organizations have 20 hooks each, and each hook has 20 messages: more than there are slots, but some slots
    stay free."""
    monkeypatch.setattr("service.hooks.delivery.DEADLINE_SECONDS", 600)
    hanging, there = receiver(["hang"]), receiver()
    outbox.clock = outbox.hooks._clock = utc_now
    for number in range(8):
        for _ in range(19):
            outbox.hook(hanging.url, f"hostile{number}")
        outbox.waiting(hanging, 20, f"hostile{number}")
    sender = outbox.another()
    sender.begin()
    hanging.wait_for(64)
    outbox.waiting(there)
    there.wait_for(1)
    while outbox.sender.pending() > 8 * 20 * 20:  # until it is recorded, too
        time.sleep(0.01)
    claimed = "SELECT count(*) FROM deliveries WHERE claimed_until IS NOT NULL GROUP BY organization ORDER BY 1"
    counts = [count for (count,) in outbox.hooks.database.rows(claimed)]
    started_at = time.monotonic()
    asyncio.run(sender.end())  # without waiting for receivers
    assert time.monotonic() - started_at < 15
    assert not sender._thread.is_alive()
    assert len(counts) == 8
    assert counts[-1] - counts[0] <= 1
    assert 64 <= sum(counts) < SLOTS
    assert sender.outcomes == {"delivered": 1, "failed": 0, "dead": 0}


def test_a_sender_survives_errors(outbox, receiver, caplog, monkeypatch):
    monkeypatch.setattr("service.hooks.sender.POLL_SECONDS", 0.01)
    outbox.waiting(there := receiver())
    failures = iter([OSError("canary"), OSError("canary")])
    failed = threading.Event()

    async def failing(*what):
        for failure in failures:
            failed.set()
            outbox.clock.now += LEASE
            raise failure
        attempt = await post(*what)
        while not sender._is_stopped:
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.1)  # it is in progress when the sender ends, and recorded
        return attempt

    monkeypatch.setattr("service.hooks.sender.post", failing)
    sender = outbox.another()
    sender.begin()
    assert failed.wait(60)
    there.wait_for(1)
    asyncio.run(sender.end())
    assert sender.outcomes["delivered"] == 1
    assert "Messages to hooks cannot be sent" in caplog.text
    assert "canary" not in caplog.text


def test_the_documented_receiver_accepts_each_message_once(outbox, tmp_path):
    (text,) = re.findall(r"^```python\n(.*?)^```", HOOKS.read_text("utf-8"), re.DOTALL | re.MULTILINE)
    assert len(text.strip().splitlines()) <= 25
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    (tmp_path / "receiver.py").write_text(text.replace("9000", str(port)))
    hook, secret = outbox.waiting(url=f"http://127.0.0.1:{port}/traffic")
    process = subprocess.Popen([sys.executable, tmp_path / "receiver.py"], env={"HOOK_SECRET": secret},
                               stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)  # fmt: skip

    def sent():
        outbox.send_all()
        return [(one.status, one.status_code) for one in outbox.hooks.deliveries("acme", hook.id)]

    try:
        is_listening = False
        while not is_listening:
            assert process.poll() is None
            with suppress(ConnectionRefusedError), socket.create_connection(("127.0.0.1", port)):
                is_listening = True
        assert sent() == [("delivered", 204)]
        outbox.hooks.replay("acme", hook.id, outbox.only(hook).id)
        outbox.hooks.send_test("acme", hook.id)
        assert sent() == [("delivered", 204)] * 2
        told = [process.stdout.readline() for _ in range(2)]
        assert told == [f"job.approved {JOB['id']}\n", "hook.test job_00000000000000000000\n"]
        for outcome in (("delivered", 204), ("pending", 401)):  # once, it is also signed with the old secret
            outbox.hooks.rotate("acme", hook.id)
            outbox.hooks.send_test("acme", hook.id)
            assert sent()[0] == outcome
    finally:
        process.kill()
        process.communicate()
