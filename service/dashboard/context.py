"""The context of pages with numbers: filters, answers, jobs and shares, in addition to what every page has."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Any

import orjson
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from data import BadInput
from data.links.index import LinkIndex
from queries import Entry, Scope
from service.access.page_context import PageContext, PageLink
from service.access.page_services import PageServices
from service.core.http.errors import InvalidBody, StateConflict
from service.core.pages.rendering import turn_of
from service.dashboard.shares import ShareStore
from service.jobs.reader import JobReader
from service.jobs.records import Actor, JobRecord
from service.jobs.service import actor_of
from service.jobs.states import JobConflict
from service.jobs.store import Jobs
from service.reports.answers import Answers
from service.reports.filters import Filters


class DashboardContext(PageContext):
    """The services that pages with numbers share. Belongs to one event loop."""

    def __init__(
        self,
        services: PageServices,
        links: Sequence[PageLink],
        tabs: Sequence[PageLink],
        *,
        answers: Answers,
        targets: LinkIndex,
        jobs: Jobs,
    ) -> None:
        super().__init__(services, links, tabs)
        self.answers, self.targets, self.jobs = answers, targets, jobs
        self.job_reader = JobReader(services.control)
        self.shares = ShareStore(services.control, services.clock)

    async def filters(self, request: Request, group: str = "") -> Filters:
        """Return the filters of a page for the session's organization; `group` is the page's default traffic_group.

        Raises InvalidParameter.
        """
        organization = request.scope["session"].organization
        today = self.services.today(organization)
        query_string = request.scope["query_string"]
        return await self.in_thread(request, Filters.parse, query_string, organization, today, self.targets, group)

    async def load(self, request: Request, wanted: Sequence[tuple[Entry, Scope]]) -> list[Any]:
        """Return the decoded answers to the wanted pairs, in order."""
        bodies = await self.bodies(request, wanted)
        return await self.in_thread(request, decoded, bodies)

    async def bodies(self, request: Request, wanted: Sequence[tuple[Entry, Scope]]) -> list[bytes]:
        """Return the answers to the wanted pairs as JSON, in order."""
        return await self.answers.get(wanted, request.scope["caller"].is_share)

    async def made_job(self, request: Request, make: Callable[[Jobs, Actor, datetime], JobRecord]) -> Response:
        """Create a job with `make` for the caller; redirect to the job. Raises InvalidBody and StateConflict."""
        services, caller = self.services, request.scope["caller"]
        work = partial(make, self.jobs, actor_of(caller), services.clock())
        try:
            job = await services.workers.writes.compute(*turn_of(request), work)
        except BadInput as error:
            raise InvalidBody(f"Nothing was done: {error}", "Go back and correct the form.") from error
        except JobConflict as error:
            raise StateConflict(f"Nothing was done: {error}") from error
        return RedirectResponse(f"{self.root}/jobs/{job.id}#implementation", 303)

    def numbers_layout(self, request: Request, path: str, filters: Filters, under: str | None = None) -> dict[str, Any]:
        """Return the variables of layout.html for a page with numbers and these filters.

        For a page that is not in the navigation, `under` is the path of the page to mark there instead.
        """
        query = replace(filters, by="").query_string(traffic_type=None, short_code=None, target_url=None)
        navigation = self.navigation(path if under is None else under, query)
        return {**self.layout(request, path, query), "navigation": navigation, "filters": filters}


def decoded(bodies: Sequence[bytes]) -> list[Any]:
    """Return the answers as Python values. Blocks."""
    return [orjson.loads(body) for body in bodies]
