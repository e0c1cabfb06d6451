"""Signing in at the identity provider: the browser leaves for it, and comes back with a code."""

import re
import secrets
from functools import partial
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
    return [
        Route(f"{context.root}/oidc/start", partial(start, context, client)),
        Route(f"{context.root}/oidc/callback", partial(callback, context, client)),
    ]


async def start(context: PageContext, client: OidcClient, request: Request) -> Response:
    """Send the browser to the provider. It keeps one cookie, so that it may sign in in several tabs at once."""
    target = context.own_page(request.query_params.get("next", ""))
    browser = context.cookie(request, COOKIE)
    browser = browser if _SECRET.fullmatch(browser) else secrets.token_urlsafe(32)
    sign_in = PendingSignIn.begin(browser, is_silent="silent" in request.query_params)
    address = await client.authorization_url(sign_in)
    await context.control.write(context.sessions.store.begin_sign_in, sign_in.secret, target)
    response = RedirectResponse(address, 303)
    context.set_cookie(request, response, sign_in.browser, SIGN_IN_LIFETIME, COOKIE)
    return response


async def callback(context: PageContext, client: OidcClient, request: Request) -> Response:
    """Open a session for a browser that comes back with a code; if a silent attempt fails, ask the user."""
    query = request.query_params
    sign_in = PendingSignIn(query.get("state", ""), context.cookie(request, COOKIE))
    target = await context.control.write(context.sessions.store.end_sign_in, sign_in.secret)
    if target is None:
        message = f"Begin again at {context.services.settings.public_url}{context.root}/sign-in."
        raise Forbidden("This sign-in expired or was started in another browser.", message)
    await client.check_issuer(query.get("iss"))
    if "error" in query and sign_in.is_silent:
        response = RedirectResponse(f"{context.root}/sign-in?next={quote(target, safe='')}", 303)
        context.delete_cookie(request, response)
        return response
    if "error" in query or "code" not in query:
        raise Forbidden("The identity provider did not sign you in.", "Begin again from the sign-in page.")
    try:
        user = await client.user(sign_in, query["code"])
    except Unauthorized as error:
        message = "Ask for an organization at the identity provider, then begin again from the sign-in page."
        raise Forbidden("The identity provider rejected the sign-in.", message) from error
    hours = context.services.settings.session_hours
    opened = await context.control.write(context.sessions.store.open_by_provider, user, hours)
    return await context.signed_in(request, opened, target)
