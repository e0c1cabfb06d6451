"""Rendering of templates to responses: one Jinja2 environment, with escaping, compression and the pages' headers."""

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import Response

from data.rules.geoip import CountryDatabase
from service.core.http.caller import Caller
from service.core.http.compression import negotiated
from service.core.http.pools import Pool
from service.core.pages import formats
from service.core.pages.assets import ICON, REFUSED_STYLE, SCRIPT, STYLESHEET, source_of
from service.core.pages.markup import with_code
from service.core.program import runnable

FOLDERS: Final = sorted(Path(__file__).parents[2].glob("**/templates"))
"""The template folders of this room and of each other room with pages."""
_POLICY: Final = (
    f"default-src 'none'; script-src {source_of(SCRIPT)}; style-src 'self' {source_of(REFUSED_STYLE)}; img-src data:; "
    "form-action 'self'; base-uri 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
)
CONTENT_SECURITY_POLICY: Final = f"{_POLICY}; frame-ancestors 'none'"
"""The policy of every page that must not be embedded."""
_HEADERS: Final = {
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), microphone=(), geolocation=()",
    "X-Robots-Tag": "noindex",
}


def headers_of(embedders: Iterable[str] = ()) -> dict[str, str]:
    """Return the headers of every response under /app/, in addition to the server's headers for all responses.

    Only pages from the origins in `embedders` may embed the response. X-Frame-Options cannot name origins, so it is
    sent only if embedding is forbidden.
    """
    origins = " ".join(embedders)
    if origins:
        return {"Content-Security-Policy": f"{_POLICY}; frame-ancestors {origins}", **_HEADERS}
    return {"Content-Security-Policy": CONTENT_SECURITY_POLICY, "X-Frame-Options": "DENY", **_HEADERS}


def environment() -> Environment:
    """Return the Jinja2 environment, with autoescaping, and with the formats for numbers and times as filters."""
    jinja = Environment(
        loader=FileSystemLoader(FOLDERS, encoding="utf-8"), autoescape=True, undefined=StrictUndefined,
        trim_blocks=True, lstrip_blocks=True, auto_reload=False,
    )  # fmt: skip
    written = (
        formats.humanize,
        formats.number,
        formats.decimal,
        formats.percent,
        formats.day,
        formats.size,
        formats.time_of_day,
        formats.with_days,
    )
    jinja.filters |= {how.__name__: how for how in written} | {
        "time": formats.moment,
        "with_code": with_code,
        "runnable": str,
    }
    return jinja


class Renderer:
    """A renderer of page templates in threads. A template is compiled when it is first used."""

    def __init__(
        self, root: str, texts: Pool, command: Callable[..., str], countries: CountryDatabase | None = None
    ) -> None:
        """`root` is the path above all pages, without a final slash. Pages name the provider of `countries`.

        `command` returns the shell line for the words of a command.
        """
        self._texts = texts
        self._environment = environment()
        self._environment.globals |= {
            "root": root,
            "stylesheet": f"{root}/static/{STYLESHEET}",
            "script": Markup(SCRIPT),  # noqa: S704  # our own file
            "refused_style": Markup(REFUSED_STYLE),  # noqa: S704  # our own file
            "icon": ICON,
            "command": command,
            "countries_from": countries and countries.provider,
        }
        self._environment.filters |= {
            "runnable": partial(runnable, command),
            "with_code": partial(with_code, runnable=partial(runnable, command)),
        }

    async def response(
        self,
        request: Request,
        template: str,
        context: Mapping[str, Any],
        status: int = 200,
        is_compressible: bool = True,
    ) -> Response:
        """Render a page from a template and the context.

        `is_compressible` is False for a page with a secret: a compressed page's size can reveal its content (BREACH).
        """
        accepted = request.scope["headers"] if is_compressible else ()
        body, headers = await self._texts.compute(
            *turn_of(request), lambda: negotiated(accepted, self.render(template, context))
        )
        return Response(body, status, headers, "text/html")

    def render(self, template: str, context: Mapping[str, Any]) -> bytes:
        """Render a page, without compressing it. Blocks."""
        return self._environment.get_template(template).render(context).encode()


def turn_of(request: Request) -> tuple[str, bool]:
    """Return a Pool's arguments for scheduling a request: the caller's `turn` or, before sign-in, no organization."""
    caller: Caller | None = request.scope.get("caller")
    return caller.turn if caller else ("", False)
