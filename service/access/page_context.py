"""The context of every page: the service, sessions, the layout, the renderer, and cookies."""

import re
from collections.abc import Callable, Sequence
from datetime import timedelta
from functools import partial
from typing import Any, Final, NamedTuple

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from service.access.page_services import PageServices
from service.access.sessions import OpenedSession, Session, Sessions, SessionStore
from service.core.http.errors import Forbidden
from service.core.pages.origin import OriginChecker
from service.core.pages.rendering import Renderer, turn_of
from service.core.program import command_line
from service.core.threads import Arguments, Result

COOKIE: Final = "traffic"
"""The session cookie. Over https, its name begins with __Host-, which browsers refuse over plain http."""
_OWN_PAGE: Final = re.compile(r"[\x21-\x5b\x5d-\x7e]*")
"""Visible ASCII without a backslash, which browsers read as a slash."""


class PageLink(NamedTuple):
    """A page in the navigation, or a tab of Settings."""

    path: str  # after /app/
    title: str
    key: str = ""  # the keys that open it
    section: str = ""  # path prefix of its pages; "": the link is to a single page and keeps the filters

    def is_current(self, path: str) -> bool:
        """Return whether the link opens the page with this path, or this page is in the link's section."""
        return path.startswith(self.section) if self.section else path == self.path


class PageContext:
    """The parts that all pages share. Belongs to one event loop."""

    def __init__(self, services: PageServices, links: Sequence[PageLink], tabs: Sequence[PageLink]) -> None:
        """`links` are for the navigation, `tabs` for Settings."""
        self.services = services
        self.root = f"{services.settings.base_path}/app"
        self._links, self._tabs = links, tabs
        self.origin = OriginChecker(services.settings, services.sources)
        self.control = services.control
        self.sessions = Sessions(SessionStore(services.control, services.clock))
        self.command = partial(command_line, services.lake.root)
        self.renderer = Renderer(self.root, services.workers.texts, self.command, services.countries)

    async def in_thread(self, request: Request, work: Callable[[*Arguments], Result], *arguments: *Arguments) -> Result:
        """Run blocking work in a thread, when it is the caller's turn."""
        return await self.services.workers.texts.compute(*turn_of(request), partial(work, *arguments))

    def navigation(self, path: str, query: str = "") -> list[tuple[str, str, bool, str]]:
        """Return each link as (title, address, whether it is current on the page with this path, shortcut keys)."""
        return [
            (link.title, f"{self.root}/{link.path}{'' if link.section else query}", link.is_current(path), link.key)
            for link in self._links
        ]

    def layout(self, request: Request, path: str, query: str = "") -> dict[str, Any]:
        """Return the variables of layout.html for the page with this path after /app/ and the filters in `query`."""
        session = request.scope["session"]
        return {
            "navigation": self.navigation(path, query),
            "organization": session.organization,
            "zone": self.services.lake.manifest.organizations.zone(session.organization),
            "is_exposed": self.origin.is_exposed(request),
            "filters": None,
            "path": request.url.path,
            "body_class": f"page-{path.replace('/', '-') or 'overview'}",
        }

    async def tab_page(
        self,
        request: Request,
        path: str,
        template: str,
        status: int = 200,
        **content: Any,  # noqa: ANN401  # variables of any template
    ) -> Response:
        """Return the page of a Settings tab. If `content` has a secret to show (`made`), the page is not compressed; if
        it has a `problem`, the status 200 becomes 400.
        """
        status = 400 if content.get("problem") and status == 200 else status
        tabs = [(tab.title, f"{self.root}/{tab.path}", tab.is_current(path)) for tab in self._tabs]
        shown = {**self.layout(request, path), "tabs": tabs, **content}
        return await self.renderer.response(request, template, shown, status, is_compressible=not content.get("made"))

    async def session(self, request: Request) -> Session | None:
        """Return the browser's session, found by its cookie; None if it is not signed in."""
        secret = self.cookie(request)
        return await self.sessions.session(secret) if secret else None

    async def signed_in(self, request: Request, opened: OpenedSession, target: str) -> Response:
        """Redirect to the target with the cookie of a new session, and end the session that it replaces."""
        replaced = await self.session(request)
        if replaced:
            await self.sessions.revoke(replaced.id, replaced.organization)
        response = RedirectResponse(target, 303)
        self.set_cookie(request, response, *opened)
        return response

    def own_page(self, text: str) -> str:
        """Return the page to go to after signing in: `text` if it is one of our pages, otherwise the overview."""
        is_ours = text.startswith(f"{self.root}/") and "//" not in text.partition("?")[0]
        return text if is_ours and _OWN_PAGE.fullmatch(text) and "/.." not in text else f"{self.root}/"

    def cookie(self, request: Request, name: str = COOKIE) -> str:
        """Return the value of our cookie with this name, or "" if it was not sent."""
        return request.cookies.get(self._cookie_name(request, name), "")

    def set_cookie(
        self, request: Request, response: Response, secret: str, lifetime: timedelta, name: str = COOKIE
    ) -> None:
        """Set a cookie with a secret and its lifetime."""
        response.set_cookie(
            self._cookie_name(request, name), secret, max_age=int(lifetime.total_seconds()), path="/",
            secure=self.origin.is_https(request), httponly=True, samesite="lax",
        )  # fmt: skip

    def delete_cookie(self, request: Request, response: Response, name: str = COOKIE) -> None:
        """Delete a cookie, by default the session cookie."""
        self.set_cookie(request, response, "", timedelta(), name)

    def cookie_names(self, request: Request, prefix: str) -> list[str]:
        """Return the names of our cookies with a prefix, in the order in which they were sent."""
        sent, given = self._cookie_name(request, prefix), len(self._cookie_name(request, ""))
        return [name[given:] for name in request.cookies if name.startswith(sent)]

    def _cookie_name(self, request: Request, name: str) -> str:
        return f"__Host-{name}" if self.origin.is_https(request) else name


def manager(request: Request) -> Session:
    """Return the session of a user who may change settings. Raises Forbidden for any other user."""
    session: Session = request.scope["session"]
    if not session.caller.may_manage_keys:
        raise Forbidden(
            "This session may not change settings.",
            f"Sign in as an editor: `traffic sign-in --org {session.organization}` on the server prints a link.",
        )
    return session
