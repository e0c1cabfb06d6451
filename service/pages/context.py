"""What every page has at hand: the service, sessions, the renderer, its filters, its answers, and cookies."""

import re
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final

import orjson
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from data import BadInput
from queries import Entry, Scope
from service.http.answers import all_of
from service.http.errors import InvalidBody, StateConflict
from service.http.job_endpoints import actor_of
from service.jobs.records import Actor, JobRecord
from service.jobs.states import JobConflict
from service.jobs.store import Jobs
from service.pages.filters import Filters
from service.pages.job_reader import JobReader
from service.pages.origin import OriginChecker
from service.pages.rendering import Renderer, turn_of
from service.pages.services import PageServices
from service.pages.sessions import OpenedSession, Session, Sessions, SessionStore
from service.pages.shares import ShareStore
from service.threads import Arguments, Result

COOKIE: Final = "traffic"
"""The cookie of a session. Over https its name begins with __Host-, which browsers refuse over plain http."""
_OWN_PAGE: Final = re.compile(r"[\x21-\x5b\x5d-\x7e]*")
"""Visible ASCII without a backslash, which browsers read as a slash."""


class PageContext:
    """The parts that all pages share. Belongs to one event loop."""

    def __init__(self, services: PageServices) -> None:
        self.services = services
        self.root = f"{services.settings.base_path}/app"
        self.origin = OriginChecker(services.settings, services.sources)
        self.control = services.control
        self.sessions = Sessions(SessionStore(services.control, services.clock))
        self.shares = ShareStore(services.control, services.clock)
        self.jobs = JobReader(services.control)
        self.renderer = Renderer(self.root, services.workers.texts, services.countries)

    async def in_thread(self, request: Request, work: Callable[[*Arguments], Result], *arguments: *Arguments) -> Result:
        """Run blocking work in a thread, when it is the caller's turn."""
        return await self.services.workers.texts.compute(*turn_of(request), partial(work, *arguments))

    async def filters(self, request: Request) -> Filters:
        """The filters of a page, for the organization of the session. Raises InvalidParameter."""
        organization = request.scope["session"].organization
        today = self.services.today(organization)
        query_string = request.scope["query_string"]
        return await self.in_thread(request, Filters.parse, query_string, organization, today, self.services.targets)

    async def load(self, request: Request, wanted: Sequence[tuple[Entry, Scope]]) -> list[Any]:
        """The decoded answers of the pairs, in their order."""
        bodies = await self.bodies(request, wanted)
        return await self.in_thread(request, decoded, bodies)

    async def bodies(self, request: Request, wanted: Sequence[tuple[Entry, Scope]]) -> list[bytes]:
        """The answers of the pairs, in their order, as JSON; those of one scope are computed as one batch."""
        groups: dict[Scope, list[Entry]] = {}
        for entry, scope in wanted:
            groups.setdefault(scope, []).append(entry)
        answers, is_share = self.services.answers, request.scope["caller"].is_share
        loaded = await all_of(answers.bodies(group, scope, is_share) for scope, group in groups.items())
        bodies = {scope: iter(bodies_of_scope) for scope, bodies_of_scope in zip(groups, loaded, strict=True)}
        return [next(bodies[scope]) for _, scope in wanted]

    async def made_job(self, request: Request, make: Callable[[Jobs, Actor, datetime], JobRecord]) -> Response:
        """A redirect to the job that an editor makes. Raises InvalidBody and StateConflict."""
        services, caller = self.services, request.scope["caller"]
        work = partial(make, services.jobs, actor_of(caller), services.clock())
        try:
            job = await services.workers.writes.compute(*turn_of(request), work)
        except BadInput as error:
            raise InvalidBody(f"Nothing was done: {error}", "Go back and correct it.") from error
        except JobConflict as error:
            raise StateConflict(f"Nothing was done: {error}") from error
        return RedirectResponse(f"{self.root}/jobs/{job.id}#implementation", 303)

    async def session(self, request: Request) -> Session | None:
        """The session of the browser, by its cookie."""
        secret = self.cookie(request)
        return await self.sessions.session(secret) if secret else None

    async def signed_in(self, request: Request, opened: OpenedSession, target: str) -> Response:
        """A redirect to the target with the cookie of a new session; the session that it replaces ends."""
        replaced = await self.session(request)
        if replaced:
            await self.sessions.revoke(replaced.id, replaced.organization)
        response = RedirectResponse(target, 303)
        self.set_cookie(request, response, *opened)
        return response

    def own_page(self, text: str) -> str:
        """The page to go to after signing in: `text` if it is one of ours, otherwise the overview."""
        is_ours = text.startswith(f"{self.root}/") and "//" not in text.partition("?")[0]
        return text if is_ours and _OWN_PAGE.fullmatch(text) and "/.." not in text else f"{self.root}/"

    def cookie(self, request: Request, name: str = COOKIE) -> str:
        """The value of a cookie of ours; "" if there is none."""
        return request.cookies.get(self._cookie_name(request, name), "")

    def set_cookie(
        self, request: Request, response: Response, secret: str, lifetime: timedelta, name: str = COOKIE
    ) -> None:
        """Give the browser a secret to keep for so long."""
        response.set_cookie(
            self._cookie_name(request, name), secret, max_age=int(lifetime.total_seconds()), path="/",
            secure=self.origin.is_https(request), httponly=True, samesite="lax",
        )  # fmt: skip

    def delete_cookie(self, request: Request, response: Response, name: str = COOKIE) -> None:
        """Take a secret from the browser, by default that of its session."""
        self.set_cookie(request, response, "", timedelta(), name)

    def cookie_names(self, request: Request, prefix: str) -> list[str]:
        """The names of the cookies of ours that begin so, in the order in which they were sent."""
        sent, given = self._cookie_name(request, prefix), len(self._cookie_name(request, ""))
        return [name[given:] for name in request.cookies if name.startswith(sent)]

    def _cookie_name(self, request: Request, name: str) -> str:
        return f"__Host-{name}" if self.origin.is_https(request) else name


def decoded(bodies: Sequence[bytes]) -> list[Any]:
    """Answers as Python values. Blocks."""
    return [orjson.loads(body) for body in bodies]
