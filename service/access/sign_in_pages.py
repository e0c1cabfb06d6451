"""Sign-in by one-time link, by pasted API key or at the identity provider, and sign-out."""

from functools import partial
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from service.access.page_context import PageContext
from service.core.pages.forms import form_fields


def routes(context: PageContext) -> list[Route]:
    """Return the routes for signing in and out."""
    return [
        Route(f"{context.root}/sign-in", partial(sign_in, context), methods=["GET", "POST"]),
        Route(f"{context.root}/enter", partial(enter, context), methods=["GET", "POST"]),
        Route(f"{context.root}/sign-out", partial(sign_out, context), methods=["POST"]),
    ]


async def sign_in(context: PageContext, request: Request) -> Response:
    """Show the form (GET), or check the API key in it and open a session (POST)."""
    if request.method != "POST":
        target = context.own_page(request.query_params.get("next", ""))
        return await _form_page(context, request, target)
    fields = await form_fields(request)
    text, target = fields.get("key", "").strip(), context.own_page(fields.get("next", ""))
    key = await context.control.read(context.services.api_keys.find, text)
    if key is None or key.state != "active":
        return await _form_page(context, request, target, is_wrong=True)
    context.services.api_keys.record_use(text)
    opened = await context.control.write(context.sessions.store.open_by_key, key)
    return await context.signed_in(request, opened, target)


async def enter(context: PageContext, request: Request) -> Response:
    """Show a button to sign in with a one-time link (GET), or use up the link and sign in (POST).

    Opening the link does not use it up, since mail scanners open links before recipients do.
    """
    store, overview = context.sessions.store, f"{context.root}/"
    if request.method == "POST":
        code = (await form_fields(request)).get("code", "")
        if opened := await context.control.write(store.open_by_link, code):
            return await context.signed_in(request, opened, overview)
        return await _form_page(context, request, overview, is_dead_link=True)
    code = request.query_params.get("code", "")
    organization = await context.control.read(store.organization_of_link, code)
    if organization is None:
        return await _form_page(context, request, overview, is_dead_link=True)
    shown = {"organization": organization, "code": code, "is_exposed": context.origin.is_exposed(request)}
    return await context.renderer.response(request, "sign_in_link.html", shown, is_compressible=False)


async def sign_out(context: PageContext, request: Request) -> Response:
    """End the session."""
    session = request.scope["session"]
    await context.sessions.revoke(session.id, session.organization)
    still_signed_in = "?signed-out=here" if session.kind == "oidc" else ""
    response = RedirectResponse(f"{context.root}/sign-in{still_signed_in}", 303)
    context.delete_cookie(request, response)
    return response


async def _form_page(
    context: PageContext, request: Request, target: str, is_wrong: bool = False, is_dead_link: bool = False
) -> Response:
    oidc = context.services.oidc
    shown = {
        "target": target,
        "provider": oidc.provider if oidc else "",
        "provider_url": f"{context.root}/oidc/start?next={quote(target, safe='')}",
        "end_session_url": await oidc.end_session_url() if oidc and "signed-out" in request.query_params else "",
        "is_wrong": is_wrong,
        "is_dead_link": is_dead_link,
        "is_exposed": context.origin.is_exposed(request),
    }
    status = 403 if is_wrong or is_dead_link else 200
    return await context.renderer.response(request, "sign_in.html", shown, status)
