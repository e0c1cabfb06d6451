"""The receiver in the documents, run as it stands there, and what a server sends to it."""

import re
import socket
import subprocess
import sys
import time
from contextlib import suppress
from functools import partial

from service.clock import utc_now
from service.hooks.outbox import enqueue
from service.hooks.registry import Hooks
from tests.service.hooks.outboxes import JOB
from tests.support.control import open_store
from tests.support.docs import HOOKS


def outcomes(hooks, hook_id):
    """The status of each delivery to a hook and that of the response, once each was attempted."""
    while not all(one.attempts for one in hooks.deliveries("acme", hook_id)):
        time.sleep(0.02)
    return [(one.status, one.status_code) for one in hooks.deliveries("acme", hook_id)]


def test_the_receiver_of_the_documents_takes_messages_once_and_refuses_others(lake, opened, tmp_path):
    (text,) = re.findall(r"^```python\n(.*?)^```", HOOKS.read_text("utf-8"), re.DOTALL | re.MULTILINE)
    assert len(text.strip().splitlines()) <= 25
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    (tmp_path / "receiver.py").write_text(text.replace("9000", str(port)))
    with opened(lake, clock=utc_now, hook_networks="127.0.0.0/8") as client, open_store(Hooks, lake) as hooks:
        made = client.post("/agent-hooks", json={"name": "agent", "url": f"http://127.0.0.1:{port}/traffic"}).json()
        path = f"/agent-hooks/{made['id']}"
        process = subprocess.Popen([sys.executable, tmp_path / "receiver.py"], env={"HOOK_SECRET": made["secret"]},
                                   stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)  # fmt: skip
        attempted = partial(outcomes, hooks, made["id"])
        try:
            is_listening = False
            while not is_listening:
                assert process.poll() is None
                with suppress(ConnectionRefusedError), socket.create_connection(("127.0.0.1", port)):
                    is_listening = True
            with hooks.database.transaction() as connection:
                enqueue(connection, "acme", "job.approved", JOB, utc_now())
            assert attempted() == [("delivered", 204)]
            client.post(f"{path}/deliveries/{hooks.deliveries('acme', made['id'])[0].id}/replay")
            client.post(f"{path}/test")
            assert attempted() == [("delivered", 204)] * 2
            told = [process.stdout.readline() for _ in range(2)]
            assert told == [f"job.approved {JOB['id']}\n", "hook.test job_00000000000000000000\n"]
            client.post(f"{path}/secret")
            client.post(f"{path}/test")
            assert attempted()[0] == ("delivered", 204)  # also signed with the old secret
            client.post(f"{path}/secret")
            client.post(f"{path}/test")
            assert attempted()[0] == ("pending", 401)
        finally:
            process.kill()
            process.communicate()
