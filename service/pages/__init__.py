"""The web dashboard: HTML pages under {base}/app/, outside the API's routes.

Pages read their numbers from the same Answers as the API. They identify a browser by its cookie, which the API never
reads, and never read the Authorization header. This file is all that a server loads at its start; Jinja2, the
templates and the static files are loaded with the first page.
"""

import asyncio
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from starlette.responses import RedirectResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from data import Lake
from data.store.links import LinkIndex
from queries import Warehouse
from service.api_keys import ApiKeys
from service.clock import Clock
from service.control_database import ControlDatabase
from service.hooks.registry import Hooks
from service.http.answers import Answers
from service.http.oidc import OidcClient
from service.http.query_batch import Workers
from service.http.rate_limit import SourceResolver
from service.jobs.store import Jobs
from service.settings import Settings

if TYPE_CHECKING:
    from service.pages.site import Site


@dataclass(frozen=True)
class PageServices:
    """The parts of the service that pages use."""

    lake: Lake
    control: ControlDatabase
    answers: Answers
    targets: LinkIndex
    api_keys: ApiKeys
    sources: SourceResolver
    settings: Settings
    clock: Clock
    jobs: Jobs
    hooks: Hooks
    warehouse: Warehouse
    workers: Workers
    oidc: OidcClient | None = None  # None: nobody signs in at an identity provider


class Pages:
    """ASGI middleware that answers everything under {base}/app/, and passes other requests on.

    A browser that asks for {base}/ is redirected to the pages. Belongs to one event loop.
    """

    def __init__(self, app: ASGIApp, services: PageServices) -> None:
        self._app = app
        self._services = services
        base = services.settings.base_path
        self._root = f"{base}/app"
        self._base_paths = {base, f"{base}/"}
        self._site: Site | None = None
        self._loading = asyncio.Lock()

    def is_page(self, path: str) -> bool:
        """Whether a path belongs to the pages."""
        return path.startswith(self._root) and path[len(self._root) :][:1] in {"", "/"}

    def path_of(self, path: str) -> str:
        """The route of a page's path as declared, such as /app/ai/{source}; "" for any other path."""
        return self._site.path_of(path) if self._site and self.is_page(path) else ""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request for a page, or pass it on."""
        if scope["type"] != "http":
            await self._app(scope, receive, partial(self._send_after_close, send))
        elif self.is_page(scope["path"]):
            await (await self._loaded_site())(scope, receive, send)
        elif scope["path"] in self._base_paths and _is_browser(scope):
            await RedirectResponse(f"{self._root}/", 303)(scope, receive, send)
        else:
            await self._app(scope, receive, send)

    async def _send_after_close(self, send: Send, message: Message) -> None:
        """Before the end of the lifespan is sent, wait for what runs in threads.

        Afterwards the event loop ends and cancels whatever still runs.
        """
        if self._site and message["type"].startswith("lifespan.shutdown"):
            await asyncio.to_thread(self._site.close)
        await send(message)

    async def _loaded_site(self) -> "Site":
        async with self._loading:
            if self._site is None:
                self._site = await asyncio.to_thread(_load, self._services)
        return self._site


def _load(services: PageServices) -> "Site":
    from service.pages.site import Site  # noqa: PLC0415  # loads Jinja2, which only pages need

    return Site(services)


def _is_browser(scope: Scope) -> bool:
    """Whether the request is a navigation of a browser: a GET that prefers HTML."""
    accepted = b",".join(value for name, value in scope["headers"] if name == b"accept")
    return scope["method"] in {"GET", "HEAD"} and b"text/html" in accepted
