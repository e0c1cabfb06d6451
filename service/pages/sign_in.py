"""Signing in and out: a one-time link, an API key pasted into the form, or the way to the identity provider."""

from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qsl, quote

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from service.http.errors import BodyTooLarge, Forbidden, InvalidBody
from service.http.live_visits import body_chunks

if TYPE_CHECKING:
    from service.pages.site import Site

MAX_FORM_BYTES: Final = 16_384


def routes(site: "Site") -> list[Route]:
    """The routes of signing in and out."""
    pages = _SignIn(site)
    return [
        Route(f"{site.root}/sign-in", pages.form, methods=["GET", "POST"]),
        Route(f"{site.root}/enter", pages.enter),
        Route(f"{site.root}/sign-out", pages.sign_out, methods=["POST"]),
    ]


class _SignIn:
    def __init__(self, site: "Site") -> None:
        self._site = site

    async def form(self, request: Request) -> Response:
        """The form (GET); or check the API key in it and open a session (POST)."""
        if request.method != "POST":
            target = self._site.own_page(request.query_params.get("next", ""))
            return await self._form_page(request, target)
        fields = await form_fields(request)
        key, target = fields.get("key", "").strip(), self._site.own_page(fields.get("next", ""))
        organization = await self._site.control.read(self._site.services.api_keys.organization_of, key)
        if organization is None:
            return await self._form_page(request, target, is_wrong=True)
        self._site.services.api_keys.record_use(key)
        opened = await self._site.control.write(self._site.sessions.store.open_by_key, key, organization)
        return await self._site.signed_in(request, opened, target)

    async def enter(self, request: Request) -> Response:
        """Use up a one-time link, unless the browser only loads the page in advance."""
        if not is_navigation(request):
            raise Forbidden("This link works once, so it is not loaded in advance.", "Open it yourself.")
        code = request.query_params.get("code", "")
        opened = await self._site.control.write(self._site.sessions.store.open_by_link, code)
        if opened is None:
            return await self._form_page(request, f"{self._site.root}/", is_dead_link=True)
        return await self._site.signed_in(request, opened, f"{self._site.root}/")

    async def sign_out(self, request: Request) -> Response:
        """End the session."""
        session = request.scope["session"]
        await self._site.sessions.revoke(session.id, session.organization)
        still_signed_in = "?signed-out=here" if session.kind == "oidc" else ""
        response = RedirectResponse(f"{self._site.root}/sign-in{still_signed_in}", 303)
        self._site.delete_cookie(request, response)
        return response

    async def _form_page(
        self, request: Request, target: str, is_wrong: bool = False, is_dead_link: bool = False
    ) -> Response:
        oidc = self._site.services.oidc
        context = {
            "target": target,
            "provider": oidc.provider if oidc else "",
            "provider_url": f"{self._site.root}/oidc/start?next={quote(target, safe='')}",
            "end_session_url": await oidc.end_session_url() if oidc and "signed-out" in request.query_params else "",
            "is_wrong": is_wrong,
            "is_dead_link": is_dead_link,
            "is_exposed": self._site.origin.is_exposed(request),
        }
        return await self._site.renderer.response(
            request, "sign_in.html", context, 403 if is_wrong or is_dead_link else 200
        )


async def form_fields(request: Request, max_bytes: int = MAX_FORM_BYTES) -> dict[str, str]:
    """The fields of a submitted form. Raises InvalidBody or BodyTooLarge."""
    body = bytearray()
    async for chunk in body_chunks(request):
        body += chunk
        if len(body) > max_bytes:
            raise BodyTooLarge("The form is too large.")
    try:
        return dict(parse_qsl(body.decode("utf-8"), keep_blank_values=True, strict_parsing=bool(body)))
    except ValueError as error:
        raise InvalidBody("is not a form", "Use the form on the page.") from error


def is_navigation(request: Request) -> bool:
    """Whether a user opens a page, and the browser neither loads it in advance nor as a part of another."""
    purpose = request.headers.get("sec-purpose", request.headers.get("purpose", ""))
    is_early = "prefetch" in purpose or "prerender" in purpose
    return not is_early and request.headers.get("sec-fetch-dest", "document") == "document" and request.method == "GET"
