"""Signing in at the identity provider: the browser leaves for it, and comes back with a code."""

import re
import secrets
from typing import Final
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from service.http.errors import Forbidden, Unauthorized
from service.http.oidc import OidcClient, PendingSignIn
from service.pages.context import PageContext
from service.pages.sessions import SIGN_IN_LIFETIME

COOKIE: Final = "traffic-oidc"
_SECRET: Final = re.compile("[A-Za-z0-9_-]{43}")


def routes(context: PageContext, client: OidcClient) -> list[Route]:
    """The routes of signing in at the identity provider."""
    pages = _ProviderSignIn(context, client)
    return [Route(f"{context.root}/oidc/start", pages.start), Route(f"{context.root}/oidc/callback", pages.callback)]


class _ProviderSignIn:
    def __init__(self, context: PageContext, client: OidcClient) -> None:
        self._context = context
        self._client = client

    async def start(self, request: Request) -> Response:
        """Send the browser to the provider. It keeps one cookie, so that it may sign in in several tabs at once."""
        target = self._context.own_page(request.query_params.get("next", ""))
        browser = self._context.cookie(request, COOKIE)
        browser = browser if _SECRET.fullmatch(browser) else secrets.token_urlsafe(32)
        sign_in = PendingSignIn.begin(browser, is_silent="silent" in request.query_params)
        address = await self._client.authorization_url(sign_in)
        await self._context.control.write(self._context.sessions.store.begin_sign_in, sign_in.secret, target)
        response = RedirectResponse(address, 303)
        self._context.set_cookie(request, response, sign_in.browser, SIGN_IN_LIFETIME, COOKIE)
        return response

    async def callback(self, request: Request) -> Response:
        """Open a session for a browser that comes back with a code; if a silent attempt fails, ask the user."""
        query = request.query_params
        sign_in = PendingSignIn(query.get("state", ""), self._context.cookie(request, COOKIE))
        target = await self._context.control.write(self._context.sessions.store.end_sign_in, sign_in.secret)
        if target is None:
            message = f"Begin again at {self._context.services.settings.public_url}{self._context.root}/sign-in."
            raise Forbidden("This sign-in expired or was started in another browser.", message)
        await self._client.check_issuer(query.get("iss"))
        if "error" in query and sign_in.is_silent:
            response = RedirectResponse(f"{self._context.root}/sign-in?next={quote(target, safe='')}", 303)
            self._context.delete_cookie(request, response)
            return response
        if "error" in query or "code" not in query:
            raise Forbidden("The identity provider did not sign you in.", "Begin again from the sign-in page.")
        try:
            user = await self._client.user(sign_in, query["code"])
        except Unauthorized as error:
            message = "Ask for an organization at the identity provider, then begin again from the sign-in page."
            raise Forbidden("The identity provider rejected the sign-in.", message) from error
        hours = self._context.services.settings.session_hours
        opened = await self._context.control.write(self._context.sessions.store.open_by_provider, user, hours)
        return await self._context.signed_in(request, opened, target)
