"""All pages: the pages of each room, their authentication, and error pages."""

from functools import partial
from typing import Final
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from service.access import oidc_pages, settings_pages, sign_in_pages
from service.app.page_parts import PageParts
from service.core.http.errors import ClientDisconnected, InternalError, MethodNotAllowed, NotFound, Problem
from service.core.http.problems import PROBLEMS, TEMPORARY, problem_of
from service.core.http.routing import RouteTable
from service.core.pages.assets import stylesheet
from service.core.pages.rendering import headers_of
from service.dashboard import live_page, navigation, share_pages, shared_page, views
from service.dashboard.context import DashboardContext
from service.dashboard.export import export
from service.dashboard.run_it_yourself import run
from service.exclusions import pages as exclusion_pages
from service.hooks import pages as hook_pages
from service.intake import link_pages
from service.jobs import pages as job_pages
from service.ops import pages as ops_pages
from service.reports.answers import while_connected
from service.robots import pages as robots_pages

NAVIGATION: Final = (*navigation.NAVIGATION, job_pages.NAVIGATION, settings_pages.NAVIGATION)
TABS: Final = (*settings_pages.TABS, *share_pages.TABS, *hook_pages.TABS, *ops_pages.TABS)
_READING: Final = frozenset({"GET", "HEAD"})


class PagesApp:
    """The ASGI application of all pages. Belongs to one event loop."""

    def __init__(self, parts: PageParts) -> None:
        self.context = DashboardContext(
            parts.services, NAVIGATION, TABS, answers=parts.answers, targets=parts.targets, jobs=parts.jobs.store
        )
        self._root = self.context.root
        self._public = {f"{self._root}{path}" for path in ("", "/sign-in", "/enter", "/oidc/start", "/oidc/callback")}
        provider = parts.services.oidc
        self._table = RouteTable(
            [
                Route(self._root, self._to_overview),
                Route(f"{self._root}/static/{{name}}", stylesheet),
                *views.routes(self.context),
                *link_pages.routes(self.context, parts.links),
                Route(f"{self._root}/{live_page.LIVE.path}", partial(live_page.live_page, self.context)),
                *robots_pages.routes(self.context),
                *exclusion_pages.routes(self.context),
                *sign_in_pages.routes(self.context),
                *(oidc_pages.routes(self.context, provider) if provider else ()),
                *job_pages.routes(self.context, parts.jobs),
                *settings_pages.routes(self.context),
                *share_pages.routes(self.context),
                *hook_pages.routes(self.context, parts.hooks),
                *ops_pages.routes(self.context),
                Route(f"{self._root}/share/{{secret}}", shared_page.endpoint(self.context)),
                Route(f"{self._root}/export/{{name}}.csv", partial(export, self.context)),
                Route(f"{self._root}/run/{{name}}", partial(run, self.context)),
            ]
        )

    def path_of(self, path: str) -> str:
        """Return the declared route for a path, such as /app/ai/{source}, or "" if there is none."""
        return self._table.path_of(path)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request under /app/."""
        request = Request(scope, receive)
        failure: Exception | None = None
        try:
            answering = self._response(request)  # only GET and HEAD may be cancelled: other methods write
            response = await (while_connected(answering, receive) if request.method in _READING else answering)
        except ClientDisconnected as error:
            response = Response(status_code=error.status)  # the client is gone: only the log reads the status
        except PROBLEMS as error:
            response = await self._problem_page(request, problem_of(error))
            failure = error if isinstance(error, TEMPORARY) else None
        except Exception as error:  # noqa: BLE001  # raised after the answer, so that it is logged
            failure, response = error, await self._problem_page(request, InternalError())
        response.headers.update(headers_of(request.scope.get("embedders", ())))
        await response(scope, receive, send)
        if failure:
            raise failure

    async def _response(self, request: Request) -> Response:
        """Return the route's response, or a redirect to the sign-in page. Raises the exceptions in PROBLEMS."""
        path = request.url.path
        if "refusal" in request.scope:
            raise request.scope["refusal"]
        if request.method not in _READING:
            self.context.origin.check_same_origin(request)
        is_public = path in self._public or path.startswith((f"{self._root}/static/", f"{self._root}/share/"))
        if not is_public:
            session = await self.context.session(request)
            if session is None:
                return self._to_sign_in(request)
            request.scope["session"], request.scope["caller"] = session, session.caller
        return await self._table.response(request.scope, request.receive)

    def _to_sign_in(self, request: Request) -> Response:
        """Redirect to the sign-in page, which leads back to the requested page."""
        target = request.url.path
        if request.url.query:
            target += f"?{request.url.query}"
        parameter = f"next={quote(target, safe='')}" if request.method == "GET" and target != f"{self._root}/" else ""
        return RedirectResponse(f"{self._root}/sign-in?{parameter}".rstrip("?"), 303)

    async def _to_overview(self, _: Request) -> Response:
        return RedirectResponse(f"{self._root}/", 303)

    async def _problem_page(self, request: Request, problem: Problem) -> Response:
        """Return an error page with the problem, a remedy and, unless for a share or 429, a link to the overview."""
        is_shared = request.url.path.startswith(f"{self._root}/share/")
        body = problem.body
        if isinstance(problem, NotFound | MethodNotAllowed):
            error = "Page not found." if isinstance(problem, NotFound) else "This page does not accept this request."
            body = {"error": error, "message": "Start from the overview."}
        if isinstance(problem, NotFound) and is_shared:
            body["message"] = "The link is wrong, expired or revoked. Ask the person who shared it for a new link."
        shown = {
            "problem": body, "status": problem.status, "is_refused": "refusal" in request.scope,
            "is_shared": is_shared, "navigation": self.context.navigation("-") if "session" in request.scope else (),
        }  # fmt: skip
        response = await self.context.renderer.response(request, "problem.html", shown, problem.status)
        response.headers.update(problem.headers)
        return response
