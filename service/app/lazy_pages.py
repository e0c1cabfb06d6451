"""The entry point of the pages, loaded at a server's start; templates and static files follow with the first page."""

import asyncio
from typing import TYPE_CHECKING

from starlette.responses import RedirectResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from service.app.page_parts import PageParts

if TYPE_CHECKING:
    from service.app.pages import PagesApp


class Pages:
    """ASGI middleware that answers everything under {base}/app/, and passes other requests on.

    A browser that requests {base}/ is redirected to the pages. Belongs to one event loop.
    """

    def __init__(self, app: ASGIApp, parts: PageParts) -> None:
        self._app = app
        self._parts = parts
        base = parts.services.settings.base_path
        self._root = f"{base}/app"
        self._base_paths = {base, f"{base}/"}
        self._pages: PagesApp | None = None
        self._loading = asyncio.Lock()

    def is_page(self, path: str) -> bool:
        """Return whether a path belongs to the pages: {base}/app, or anything below it."""
        return path.startswith(self._root) and path[len(self._root) :][:1] in {"", "/"}

    def path_of(self, path: str) -> str:
        """Return the declared route for a page's path, such as /app/ai/{source}; "" for other paths, and before the
        first page is loaded.
        """
        return self._pages.path_of(path) if self._pages and self.is_page(path) else ""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request for a page, redirect a browser from {base}/ to the pages, or pass the request on."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
        elif self.is_page(scope["path"]):
            async with self._loading:
                if self._pages is None:
                    self._pages = await asyncio.to_thread(_load, self._parts)
            await self._pages(scope, receive, send)
        elif scope["path"] in self._base_paths and _is_browser(scope):
            await RedirectResponse(f"{self._root}/", 303)(scope, receive, send)
        else:
            await self._app(scope, receive, send)


def _load(parts: PageParts) -> "PagesApp":
    from service.app.pages import PagesApp  # noqa: PLC0415  # loads Jinja2, which only pages need

    return PagesApp(parts)


def _is_browser(scope: Scope) -> bool:
    """Return whether the request looks like a browser's navigation: a GET or HEAD that accepts HTML."""
    accepted = b",".join(value for name, value in scope["headers"] if name == b"accept")
    return scope["method"] in {"GET", "HEAD"} and b"text/html" in accepted
