"""The pages behind their gate: sessions, checks of origin, routes, and errors as pages."""

import asyncio
import re
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any, Final, TypeVar
from urllib.parse import quote

import orjson
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from queries import Entry, InvalidParameter, QueryTimeout
from queries import Scope as QueryScope
from service.http.answers import while_connected
from service.http.errors import InternalError, MethodNotAllowed, NotFound, ParameterRefused, Problem
from service.http.routing import RouteTable
from service.pages import (
    PageServices,
    export,
    hook_pages,
    job_pages,
    oidc,
    run_it_yourself,
    settings_pages,
    shared_page,
    sign_in,
    views,
)
from service.pages.assets import Assets
from service.pages.filters import Filters
from service.pages.job_store import JobReader
from service.pages.origin import OriginChecker
from service.pages.rendering import Renderer, accepts_gzip, headers_of
from service.pages.sessions import OpenedSession, Session, Sessions, SessionStore
from service.pages.shares import ShareStore

Result = TypeVar("Result")

COOKIE: Final = "traffic"
"""The cookie of a session. Over https its name begins with __Host-, which browsers refuse over plain http."""
_OWN_PAGE: Final = re.compile(r"[\x21-\x5b\x5d-\x7e]*")
"""Visible ASCII without a backslash, which browsers read as a slash."""


class Site:
    """The ASGI application of all pages. Belongs to one event loop."""

    def __init__(self, services: PageServices) -> None:
        self.services = services
        self.root = f"{services.settings.base_path}/app"
        self.origin = OriginChecker(services.settings, services.sources)
        self.control = services.control
        self.sessions = Sessions(SessionStore(services.control, services.clock))
        self.shares = ShareStore(services.control, services.clock)
        self.jobs = JobReader(services.control)
        self.assets = Assets()
        self._threads = ThreadPoolExecutor(2, thread_name_prefix="pages")
        self.renderer = Renderer(self.root, self.assets, self._threads)
        self._public = {f"{self.root}{path}" for path in ("", "/sign-in", "/enter", "/oidc/start", "/oidc/callback")}
        self._table = RouteTable(self._routes())

    def path_of(self, path: str) -> str:
        """The route of a path as declared, such as /app/ai/{source}; "" if there is none."""
        return self._table.path_of(path)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request under /app/."""
        request = Request(scope, receive)
        try:
            response = await self._response(request)
        except Problem as problem:
            response = await self._problem_page(request, problem)
        except InvalidParameter as error:
            response = await self._problem_page(request, ParameterRefused(error))
        except QueryTimeout:
            response = await self._problem_page(request, InternalError("Ask for fewer days, or for one link."))
        except Exception:
            await self._finished(request, await self._problem_page(request, InternalError()))(scope, receive, send)
            raise  # so that it is logged
        await self._finished(request, response)(scope, receive, send)

    async def in_thread(self, work: Callable[..., Result], *arguments: Any) -> Result:  # noqa: ANN401  # of any work
        """Run blocking work in a thread."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, work, *arguments)

    async def filters(self, request: Request) -> Filters:
        """The filters of a page, for the organization of the session. Raises InvalidParameter."""
        organization, today = request.scope["session"].organization, self.services.clock().date()
        query_string = request.scope["query_string"]
        return await self.in_thread(Filters.parse, query_string, organization, today, self.services.targets)

    async def load(self, request: Request, wanted: Sequence[tuple[Entry, QueryScope]]) -> list[Any]:
        """The decoded answers of the pairs, in their order; those of one scope are computed as one batch."""
        groups: dict[QueryScope, list[Entry]] = {}
        for entry, scope in wanted:
            groups.setdefault(scope, []).append(entry)
        loading = asyncio.gather(*(self.services.answers.bodies(group, scope) for scope, group in groups.items()))
        answers = await while_connected(loading, request.receive)
        bodies = {scope: iter(bodies_of_scope) for scope, bodies_of_scope in zip(groups, answers, strict=True)}
        return [orjson.loads(next(bodies[scope])) for _, scope in wanted]

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
            self._cookie_name(request, name),
            secret,
            max_age=int(lifetime.total_seconds()),
            path="/",
            secure=self.origin.is_https(request),
            httponly=True,
            samesite="lax",
        )

    def delete_cookie(self, request: Request, response: Response) -> None:
        """Take the secret of its session from the browser."""
        self.set_cookie(request, response, "", timedelta())

    def close(self) -> None:
        """Wait for the threads."""
        self._threads.shutdown()

    def _cookie_name(self, request: Request, name: str) -> str:
        return f"__Host-{name}" if self.origin.is_https(request) else name

    def _routes(self) -> list[Route]:
        root = self.root
        return [
            Route(root, self._to_overview),
            Route(f"{root}/static/{{name}}", self._static),
            *views.routes(self),
            *sign_in.routes(self),
            *(oidc.routes(self, self.services.oidc) if self.services.oidc else ()),
            *job_pages.routes(self),
            *settings_pages.routes(self),
            *hook_pages.routes(self),
            Route(f"{root}/share/{{secret}}", shared_page.endpoint(self)),
            Route(f"{root}/export/{{name}}.csv", export.endpoint(self)),
            Route(f"{root}/run/{{name}}", run_it_yourself.endpoint(self)),
        ]

    async def _response(self, request: Request) -> Response:
        """The response of the route. Raises Problem, InvalidParameter and QueryTimeout."""
        if "refusal" in request.scope:
            raise request.scope["refusal"]
        if request.method not in {"GET", "HEAD"}:
            self.origin.check_same_origin(request)
        if not self._is_public(request.url.path):
            session = await self.session(request)
            if session is None:
                return await self._to_sign_in(request)
            request.scope["session"], request.scope["caller"] = session, session.caller
        return await self._table.response(request.scope, request.receive)

    def _is_public(self, path: str) -> bool:
        return path in self._public or path.startswith((f"{self.root}/static/", f"{self.root}/share/"))

    async def _to_sign_in(self, request: Request) -> Response:
        """To the sign-in page; or silently through the identity provider, if its session has just expired."""
        target = request.url.path
        if request.url.query:
            target += f"?{request.url.query}"
        parameter = f"next={quote(target, safe='')}" if request.method == "GET" and target != f"{self.root}/" else ""
        secret = self.cookie(request)
        if (
            secret and self.services.oidc and sign_in.is_navigation(request)
            and await self.control.read(self.sessions.store.is_renewable, secret)
        ):  # fmt: skip
            return RedirectResponse(f"{self.root}/oidc/start?silent=1&{parameter}".rstrip("&"), 303)
        return RedirectResponse(f"{self.root}/sign-in?{parameter}".rstrip("?"), 303)

    async def _to_overview(self, _: Request) -> Response:
        return RedirectResponse(f"{self.root}/", 303)

    async def _static(self, request: Request) -> Response:
        return self.assets.response(request.path_params["name"], accepts_gzip(request))

    async def _problem_page(self, request: Request, problem: Problem) -> Response:
        """An error as a page: what is wrong, what to do, and a way back."""
        is_shared = request.url.path.startswith(f"{self.root}/share/")
        context = {
            "problem": problem.body, "status": problem.status, "is_refused": "refusal" in request.scope,
            "is_shared": is_shared,
        }  # fmt: skip
        if isinstance(problem, NotFound) and is_shared:
            context["problem"] = {
                "error": "There is no such page.",
                "message": "The link is wrong, expired or revoked. Ask for a new one whoever gave it to you.",
            }
        elif isinstance(problem, NotFound):
            context["problem"] = {"error": "There is no such page.", "message": "Start from the overview."}
        elif isinstance(problem, MethodNotAllowed):
            context["problem"] = {"error": "This page cannot do that.", "message": "Start from the overview."}
        response = await self.renderer.response(request, "problem.html", context, problem.status)
        for name, value in problem.headers.items():
            response.headers[name] = value
        return response

    @staticmethod
    def _finished(request: Request, response: Response) -> Response:
        """The response with the headers of every page."""
        for name, value in headers_of(request.scope.get("embedders", ())).items():
            response.headers[name] = value
        return response
