"""Sign-in at the identity provider: redirecting the browser there, and receiving it back with a code."""

from functools import partial
from typing import Final

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from service.access.oidc import OidcClient, PendingSignIn
from service.access.page_context import PageContext
from service.access.sessions import SIGN_IN_LIFETIME
from service.core.control_database import sha256
from service.core.http.errors import Forbidden, Unauthorized

COOKIE: Final = "traffic-oidc-"
"""Prefix of sign-in cookies. Each sign-in has its own cookie, named after a hash of its state, with a new secret."""
MAX_COOKIES: Final = 8
"""Maximum number of concurrent sign-ins per browser; a further sign-in deletes the oldest cookie."""


def routes(context: PageContext, client: OidcClient) -> list[Route]:
    """Return the routes for signing in at the identity provider."""
    return [
        Route(f"{context.root}/oidc/start", partial(start, context, client)),
        Route(f"{context.root}/oidc/callback", partial(callback, context, client)),
    ]


async def start(context: PageContext, client: OidcClient, request: Request) -> Response:
    """Redirect to the provider, with a cookie for this sign-in, so that several tabs can sign in at the same time."""
    target = context.own_page(request.query_params.get("next", ""))
    sign_in = PendingSignIn.begin()
    address = await client.authorization_url(sign_in)
    await context.control.write(context.sessions.store.begin_sign_in, sign_in.secret, target)
    response = RedirectResponse(address, 303)
    for name in context.cookie_names(request, COOKIE)[: 1 - MAX_COOKIES]:  # the oldest come first
        context.delete_cookie(request, response, name)
    context.set_cookie(request, response, sign_in.browser, SIGN_IN_LIFETIME, _cookie_of(sign_in.state))
    return response


async def callback(context: PageContext, client: OidcClient, request: Request) -> Response:
    """Open a session for a browser that returns with a code."""
    query = request.query_params
    cookie = _cookie_of(query.get("state", ""))
    sign_in = PendingSignIn(query.get("state", ""), context.cookie(request, cookie))
    target = await context.control.write(context.sessions.store.end_sign_in, sign_in.secret)
    if target is None:
        message = f"Begin again at {context.services.settings.public_url}{context.root}/sign-in."
        raise Forbidden("This sign-in expired or was started in another browser.", message)
    await client.check_issuer(query.get("iss"))
    if "error" in query or "code" not in query:
        raise Forbidden("The identity provider did not sign you in.", "Begin again from the sign-in page.")
    try:
        user = await client.user(sign_in, query["code"])
    except Unauthorized as error:
        message = "Ask the administrator of the identity provider to assign you to an organization, then sign in again."
        raise Forbidden("The identity provider rejected the sign-in.", message) from error
    hours = context.services.settings.session_hours
    opened = await context.control.write(context.sessions.store.open_by_provider, user, hours)
    signed_in = await context.signed_in(request, opened, target)
    context.delete_cookie(request, signed_in, cookie)
    return signed_in


def _cookie_of(state: str) -> str:
    """Return the name of the cookie for the sign-in with this state."""
    return f"{COOKIE}{sha256(state)[:16]}"
