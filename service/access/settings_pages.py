"""The Settings pages for API keys and sessions."""

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from data import BadInput
from service.access.page_context import PageContext, PageLink, manager
from service.access.sessions import Session
from service.core.http.errors import NotFound
from service.core.pages.forms import form_fields

NAVIGATION = PageLink("settings/api-keys", "Settings", "g s", section="settings")
TABS = (PageLink("settings/api-keys", "API keys"), PageLink("settings/sessions", "Sessions"))


def routes(context: PageContext) -> list[Route]:
    """Return the routes for keys and sessions, and for Settings, which redirects to the API keys tab."""
    pages, root = _SettingsPages(context), f"{context.root}/settings"
    return [
        Route(root, pages.first),
        Route(f"{root}/api-keys", pages.keys, methods=["GET", "POST"]),
        Route(f"{root}/api-keys/{{id}}/revoke", pages.revoke_key, methods=["POST"]),
        Route(f"{root}/sessions", pages.sessions),
        Route(f"{root}/sessions/end-others", pages.revoke_other_sessions, methods=["POST"]),
        Route(f"{root}/sessions/{{id}}/revoke", pages.revoke_session, methods=["POST"]),
    ]


class _SettingsPages:
    def __init__(self, context: PageContext) -> None:
        self._context = context
        self._keys = context.services.api_keys

    async def first(self, _: Request) -> Response:
        return RedirectResponse(f"{self._context.root}/settings/api-keys", 303)

    async def keys(self, request: Request) -> Response:
        """Show the organization's API keys (GET), or create a key and show it once (POST)."""
        session: Session = request.scope["session"]
        made, problem = None, ""
        if request.method == "POST":
            manager(request)
            fields = await form_fields(request)
            name, expires_at = (fields.get(field, "").strip() for field in ("name", "expires_at"))
            try:
                made = await self._context.control.write(
                    self._keys.create_key, session.organization, name, session.caller.name, expires_at
                )
            except BadInput as error:
                problem = str(error)
        keys = await self._context.control.read(self._keys.all_keys, session.organization)
        return await self._context.tab_page(
            request, "settings/api-keys", "settings_api_keys.html",
            keys=keys[::-1], made=made, problem=problem,
            may_manage=session.caller.may_manage_keys, origin=self._context.origin.origin(request),
            base=self._context.services.settings.base_path,
        )  # fmt: skip

    async def revoke_key(self, request: Request) -> Response:
        """Revoke an API key and the sessions that it started."""
        session, key_id = manager(request), request.path_params["id"]
        try:
            await self._context.control.write(self._keys.revoke_key, key_id, session.organization)
        except BadInput as error:
            raise NotFound from error
        self._context.sessions.forget_key(key_id)
        return RedirectResponse(f"{self._context.root}/settings/api-keys", 303)

    async def sessions(self, request: Request, problem: str = "") -> Response:
        """List the sessions that the caller may end: all sessions of the organization if the caller may change
        settings, otherwise only the caller's own session. If a form was rejected, also show the `problem`.
        """
        own: Session = request.scope["session"]
        listed = await self._context.control.read(self._context.sessions.store.sessions_of, own.organization)
        mine = [session for session in listed if own.caller.may_manage_keys or session.id == own.id]
        return await self._context.tab_page(
            request, "settings/sessions", "settings_sessions.html", sessions=mine, own=own, problem=problem
        )

    async def revoke_other_sessions(self, request: Request) -> Response:
        """End all sessions of the organization except the caller's, if the form confirms it."""
        own = manager(request)
        if (await form_fields(request)).get("confirmed") != "on":
            return await self.sessions(request, "No session was ended: tick the box to confirm.")
        await self._context.sessions.revoke_others(own)
        return RedirectResponse(f"{self._context.root}/settings/sessions", 303)

    async def revoke_session(self, request: Request) -> Response:
        own: Session = request.scope["session"]
        session_id = request.path_params["id"]
        if session_id != own.id:
            manager(request)
        if not await self._context.sessions.revoke(session_id, own.organization):
            raise NotFound
        return RedirectResponse(f"{self._context.root}/settings/sessions", 303)
