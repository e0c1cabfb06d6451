"""A lake's hooks with a clock that stands still until a test moves it."""

import asyncio
from datetime import UTC, datetime, timedelta
from ipaddress import ip_network

from service.core.control_database import ControlDatabase
from service.hooks.attempts import claim, delete_old, finish
from service.hooks.delivery import Attempt
from service.hooks.outbox import enqueue
from service.hooks.registry import Hooks
from service.hooks.sender import Sender
from tests.support.clock import Clock

LOOPBACK = (ip_network("127.0.0.0/8"),)
JOB = {"id": "job_0123456789abcdef0123", "type": "broken_link", "title": "Links – nowhere"}
GONE = ["HTTP/1.1 410 Gone\r\n\r\n"]
FAILS, TAKES = ["HTTP/1.1 500 Oops\r\n\r\n"], ["HTTP/1.1 204 No Content\r\n\r\n"]
TAKEN, FAILURE, SILENCE = Attempt(204, None, 1), Attempt(500, None, 1), Attempt(None, "timed_out", 15_000)


class Outbox:
    """A lake's hooks and their sender, with a fake clock."""

    def __init__(self, lake):
        self.lake = lake
        self.clock = Clock(datetime.now(UTC).replace(microsecond=0))
        self.hooks = Hooks(ControlDatabase(lake), LOOPBACK, clock=self.clock)
        self.sender = self.another()

    def another(self, **more):
        return Sender(self.hooks.database, LOOPBACK, self.clock, **more)

    def hook(self, url="http://127.0.0.1:9/", organization="acme", **how):
        return self.hooks.create(organization, "automation", url, **how)

    def waiting(self, there=None, count=1, organization="acme", **how):
        """Create a hook with `count` pending messages, for the receiver `there` if given; return the hook and its
        secret."""
        hook, secret = self.hook(**({"url": there.url} if there else {}), organization=organization, **how)
        for number in range(count):
            self.enqueue(job=JOB | ({"id": f"job_{number}"} if number else {}), organization=organization)
        return hook, secret

    def enqueue(self, event="job.approved", job=JOB, organization="acme", **how):
        with self.hooks.database.transaction() as connection:
            return enqueue(connection, organization, event, job, self.clock(), **how)

    def claim(self, full=()):
        with self.hooks.database.transaction() as connection:
            return claim(connection, self.clock(), full)

    def finish(self, claimed, attempt):
        with self.hooks.database.transaction() as connection:
            return finish(connection, claimed, attempt, self.clock())

    def delete_old(self):
        with self.hooks.database.transaction() as connection:
            delete_old(connection, self.clock())

    def health(self, hook):
        return self.hooks.hook("acme", hook.id)

    def statuses(self, hook):
        """Return the statuses of the messages to a hook, newest first."""
        return [one.status for one in self.hooks.deliveries("acme", hook.id)]

    def send_one(self):
        """Send a message that is due; return whether there was one."""
        claimed = self.sender.claim()
        if claimed:
            asyncio.run(self.sender.deliver(claimed))
        return claimed is not None

    def send_all(self):
        while self.send_one():
            pass

    def only(self, hook):
        (delivery,) = self.hooks.deliveries("acme", hook.id)
        return delivery

    def run_until_dead(self, hook):
        """Send a hook's only message whenever it is due, until it is delivered or dead; return when it was sent, in
        seconds since the beginning."""
        started_at, times = self.clock(), []
        while (delivery := self.only(hook)).status == "pending":
            self.clock.now = delivery.next_attempt_at - timedelta(seconds=1)
            assert self.clock() < started_at or not self.send_one()
            self.clock.now = delivery.next_attempt_at
            assert self.send_one()
            times.append((self.clock() - started_at).total_seconds())
        return times
