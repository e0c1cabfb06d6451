"""The receiver in the documents, run as it stands there, and what a server sends to it."""

import re
import socket
import subprocess
import sys
import time
from contextlib import closing

import pytest

from service.clock import utc_now
from service.hooks.outbox import enqueue
from service.hooks.registry import Hooks
from tests.support.control import open_store
from tests.support.docs import HOOKS

JOB = {"id": "job_0123456789abcdef0123", "title": "Links that lead nowhere"}


@pytest.fixture
def documented(tmp_path):
    """Runs the receiver of the documents with a secret, on a free port."""
    (text,) = re.findall(r"^```python\n(.*?)^```", HOOKS.read_text("utf-8"), re.DOTALL | re.MULTILINE)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    (tmp_path / "receiver.py").write_text(text.replace("9000", str(port)))
    running = []

    def documented(secret):
        command, how = [sys.executable, tmp_path / "receiver.py"], {"stderr": subprocess.DEVNULL, "text": True}
        process = subprocess.Popen(command, env={"HOOK_SECRET": secret}, stdout=subprocess.PIPE, **how)
        running.append(process)
        while not is_listening(port):
            assert process.poll() is None
            time.sleep(0.02)
        return process

    documented.url = f"http://127.0.0.1:{port}/traffic"
    documented.lines = len(text.strip().splitlines())
    yield documented
    for process in running:
        process.kill()
        process.communicate()


def is_listening(port):
    with closing(socket.socket()) as connection:
        return connection.connect_ex(("127.0.0.1", port)) == 0


def finished(hooks, hook):
    """The deliveries to a hook, once none is to be attempted for the first time."""
    while not all(one.attempts for one in hooks.deliveries("acme", hook.id)):
        time.sleep(0.02)
    return hooks.deliveries("acme", hook.id)


def test_the_receiver_of_the_documents_takes_messages_once_and_refuses_others(lake, opened, documented):
    with opened(lake, clock=utc_now, hook_networks="127.0.0.0/8") as client:
        made = client.post("/agent-hooks", json={"name": "agent", "url": documented.url}).json()
        process = documented(made["secret"])
        with open_store(Hooks, lake) as hooks:
            hook = hooks.hook("acme", made["id"])
            with hooks.database.transaction() as connection:
                enqueue(connection, "acme", "job.approved", JOB, utc_now())
            (delivery,) = finished(hooks, hook)
            assert (delivery.status, delivery.status_code) == ("delivered", 204)
            client.post(f"/agent-hooks/{hook.id}/deliveries/{delivery.id}/replay")
            client.post(f"/agent-hooks/{hook.id}/test")
            assert {one.status_code for one in finished(hooks, hook)} == {204}
            told = [process.stdout.readline() for _ in range(2)]
            assert told == [f"job.approved {JOB['id']}\n", "hook.test job_00000000000000000000\n"]
            client.post(f"/agent-hooks/{hook.id}/secret")
            client.post(f"/agent-hooks/{hook.id}/test")
            assert finished(hooks, hook)[0].status == "delivered"  # also signed with the old secret
            client.post(f"/agent-hooks/{hook.id}/secret")
            client.post(f"/agent-hooks/{hook.id}/test")
            refused = finished(hooks, hook)[0]
            assert (refused.status, refused.status_code) == ("pending", 401)
    assert documented.lines <= 25
