"""Work on jobs for the API and pages: writes and long reads, each in its organization's queue."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from queries import Warehouse
from service.core.clock import Clock
from service.core.http.caller import Caller
from service.core.http.group_commit import GroupCommit
from service.core.http.pools import Workers
from service.core.threads import Result, lower_priority
from service.jobs.records import Actor
from service.jobs.redirects import ADD_REDIRECT, RedirectGuess, redirect_guesses
from service.jobs.store import Jobs

LinkWrites = GroupCommit[None, None]
"""Writes the links that redirects need. All waiting links of an organization are written in one change, and every
caller waits for it."""


def link_writes(store: Jobs, serves_others: Callable[[str], bool]) -> LinkWrites:
    """Return the writer of redirects' links, with its own thread. After each change, an organization pauses if queries
    of other organizations are running or waiting.
    """

    def write(organization: str, waiting: list[None]) -> list[None]:
        store.write_links(organization)
        return waiting

    thread = ThreadPoolExecutor(1, thread_name_prefix="redirects-write", initializer=lower_priority)
    return GroupCommit(write, thread, serves_others)


@dataclass(frozen=True, kw_only=True)
class JobService:
    """The jobs of a lake, with the engine that reads visits and the thread that writes links for them."""

    store: Jobs
    links: LinkWrites
    warehouse: Warehouse
    workers: Workers
    clock: Clock

    async def written(self, caller: Caller, work: Callable[[], Result]) -> Result:
        """Run a write in its organization's turn, and return its result. Raises the exceptions of `work`."""
        return await self.workers.writes.compute(*caller.turn, work)

    async def in_turn(self, caller: Caller, work: Callable[[], Result]) -> Result:
        """Run long work in its organization's turn, and return its result. Raises Overloaded, or what `work` raises."""
        with self.workers.texts.admitted(*caller.turn):
            return await self.workers.texts.compute(*caller.turn, work)

    async def write_links(self, organization: str) -> None:
        """Write the pending links of an organization's redirects, and wait for links that are being written."""
        await self.links.add(organization, None)

    async def guesses(self, caller: Caller, job_id: str) -> list[RedirectGuess]:
        """Return guessed redirect targets for a job. Raises JobNotFound, Overloaded and the exceptions of queries."""
        database = self.store.database
        job = await database.read(self.store.job, caller.organization, job_id)
        if job.action_id != ADD_REDIRECT:
            return []
        today = database.lake.manifest.organizations.today(caller.organization, self.clock())
        with self.workers.admitted(*caller.turn):
            return await self.workers.compute(*caller.turn, lambda: redirect_guesses(self.warehouse, job, today))


def actor_of(caller: Caller) -> Actor:
    """Return a request's caller as the actor for a job's history."""
    return Actor(caller.name, "key" if caller.is_key else "user")
