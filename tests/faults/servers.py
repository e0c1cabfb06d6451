"""A running server over a lake in a folder, and requests to it. Each request has its own source address."""

import http.client
import itertools
import json
import re
import signal
import time
from contextlib import contextmanager
from datetime import date, timedelta
from typing import NamedTuple

from service.access.api_keys import ApiKeys
from tests.faults.lakes import reported
from tests.faults.tracing import Child, Tracer, calls_of
from tests.support.control import open_store
from tests.support.lakes import opened

_sources, _days = itertools.count(1), itertools.count()


class Answer(NamedTuple):
    status: int
    body: bytes


class Server(NamedTuple):
    """A server that runs in a process of a Program."""

    child: Child
    port: int
    key: str

    def ask(self, method, path, body=None, source=""):
        """Send one request on a separate connection. Raises OSError or HTTPException if the response is incomplete."""
        number = next(_sources)
        source = source or f"10.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}"
        headers = {"Authorization": f"Bearer {self.key}", "X-Forwarded-For": source, "Connection": "close"}
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request(method, path, body, headers)
            answer = connection.getresponse()
            return Answer(answer.status, answer.read())
        finally:
            connection.close()

    def report(self, batch):
        """Report a batch of visits."""
        return self.ask("POST", "/visits", b"\n".join(reported(batch)))

    def total(self):
        """Return the total number of visits, using a request that was never sent before."""
        start = date(2017, 1, 1) + timedelta(next(_days))
        answer = self.ask("GET", f"/analytics/traffic-overview?start_date={start}&end_date=2026-12-31")
        assert answer.status == 200, answer
        return json.loads(answer.body)["total_visits"]


def post_traced(server, folder, path, body, traced, *injected):
    """Return the status of a traced POST (None if the server was killed before it answered), and the calls made
    meanwhile.

    The calls of all the server's threads count, since the threads that send messages also write.
    """
    assert server.ask("GET", "/jobs").status == 200  # which records that the key was used
    trace = folder.with_suffix(".trace")
    expressions = [word for one in injected for word in ("-e", f"inject={one}")]
    tracer = Tracer(server.child.process, trace, "-y", "-e", f"trace={','.join(traced)}", *expressions)
    assert tracer.is_attached, tracer.told
    try:
        status = server.ask("POST", path, body).status
    except (OSError, http.client.HTTPException):
        status = None
        tracer.wait()
        assert server.child.wait().code == -signal.SIGKILL
    else:
        tracer.detach()
    return status, list(calls_of(trace.read_text(errors="replace")))


@contextmanager
def serving(program, folder, **settings):
    """Run a server for folder/lake while in this context, with a new key of acme."""
    with opened(folder / "lake") as lake, open_store(ApiKeys, lake) as keys:
        key = keys.create_key("acme", "test")
    settings = {"trusted_proxies": "127.0.0.1", **settings}
    child = program.start(folder, "serve", {f"TRAFFIC_{name.upper()}": value for name, value in settings.items()})
    try:
        while not (place := re.search(r"at http://127.0.0.1:(\d+)/", told := child.told.read_text())):
            assert child.runs(), told
            time.sleep(0.01)
        yield Server(child, int(place[1]), key)
    finally:
        if child.runs():
            child.kill(signal.SIGTERM)
            child.wait()
