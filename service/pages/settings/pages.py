"""The pages under Settings, except those of hooks: API keys, sessions, shares, the cache, and what is stored."""

from typing import Any

import orjson
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from data import BadInput
from data.store.status import organization_status
from queries import CACHE_STATS
from service.encoding import encode
from service.http.errors import Forbidden, NotFound
from service.pages.context import PageContext
from service.pages.filters import Filters
from service.pages.forms import form_fields
from service.pages.numbers.layout import layout
from service.pages.numbers.panels import Panel
from service.pages.numbers.tables import CellLinks, fill
from service.pages.sessions import Session
from service.pages.shares import fixed_filters

TABS = (
    ("api-keys", "API keys"),
    ("sessions", "Sessions"),
    ("shares", "Shares"),
    ("agent-hooks", "Agent Hooks"),
    ("cache", "Cache"),
    ("storage", "Storage"),
)


def routes(context: PageContext) -> list[Route]:
    """The routes under Settings."""
    pages, root = _SettingsPages(context), f"{context.root}/settings"
    return [
        Route(root, pages.first),
        Route(f"{root}/api-keys", pages.keys, methods=["GET", "POST"]),
        Route(f"{root}/api-keys/{{id}}/revoke", pages.revoke_key, methods=["POST"]),
        Route(f"{root}/sessions", pages.sessions),
        Route(f"{root}/sessions/{{id}}/revoke", pages.revoke_session, methods=["POST"]),
        Route(f"{root}/shares", pages.shares, methods=["GET", "POST"]),
        Route(f"{root}/shares/{{id}}/revoke", pages.revoke_share, methods=["POST"]),
        Route(f"{root}/cache", pages.cache),
        Route(f"{root}/storage", pages.storage),
    ]


async def tab_page(
    context: PageContext,
    request: Request,
    tab: str,
    template: str,
    status: int = 200,
    **content: Any,  # noqa: ANN401  # of any template
) -> Response:
    """A page under a tab of Settings. Of the content, `made` is a secret that it shows, a `problem` makes it a 400."""
    status = 400 if content.get("problem") and status == 200 else status
    tabs = [(label, f"{context.root}/settings/{name}", name == tab) for name, label in TABS]
    shown = {**layout(context, request, f"settings/{tab}", None), "tabs": tabs, **content}
    return await context.renderer.response(request, template, shown, status, is_compressible=not content.get("made"))


class _SettingsPages:
    def __init__(self, context: PageContext) -> None:
        self._context = context
        self._keys = context.services.api_keys

    async def first(self, _: Request) -> Response:
        return RedirectResponse(f"{self._context.root}/settings/api-keys", 303)

    async def keys(self, request: Request) -> Response:
        """The organization's API keys (GET); or make one and show it this once (POST)."""
        session: Session = request.scope["session"]
        made, problem = None, ""
        if request.method == "POST":
            self._manager(request)
            fields = await form_fields(request)
            name, expires_at = (fields.get(field, "").strip() for field in ("name", "expires_at"))
            try:
                made = await self._context.control.write(
                    self._keys.create_key, session.organization, name, session.caller.name, expires_at
                )
            except BadInput as error:
                problem = str(error)
        keys = await self._context.control.read(self._keys.all_keys, session.organization)
        return await self._page(
            request, "api-keys", keys=keys[::-1], made=made, problem=problem,
            may_manage=session.caller.may_manage_keys, origin=self._context.origin.origin(request),
            base=self._context.services.settings.base_path,
        )  # fmt: skip

    async def revoke_key(self, request: Request) -> Response:
        """Revoke an API key, and with it the sessions that it made."""
        session, key_id = self._manager(request), request.path_params["id"]
        try:
            await self._context.control.write(self._keys.revoke_key, key_id, session.organization)
        except BadInput as error:
            raise NotFound from error
        self._context.sessions.forget_key(key_id)
        return RedirectResponse(f"{self._context.root}/settings/api-keys", 303)

    async def sessions(self, request: Request) -> Response:
        """The sessions that the caller may end: all of the organization, or for viewers and keys their own."""
        own: Session = request.scope["session"]
        listed = await self._context.control.read(self._context.sessions.store.sessions_of, own.organization)
        mine = [session for session in listed if own.caller.may_manage_keys or session.id == own.id]
        return await self._page(request, "sessions", sessions=mine, own=own)

    async def revoke_session(self, request: Request) -> Response:
        own: Session = request.scope["session"]
        session_id = request.path_params["id"]
        if session_id != own.id:
            self._manager(request)
        if not await self._context.sessions.revoke(session_id, own.organization):
            raise NotFound
        return RedirectResponse(f"{self._context.root}/settings/sessions", 303)

    async def shares(self, request: Request) -> Response:
        """The organization's shares (GET); or make one and show its link this once (POST). For editors only."""
        session: Session = request.scope["session"]
        fields: dict[str, str] = {}
        secret, problem, may_manage = None, "", session.caller.may_manage_keys
        if request.method == "POST":
            self._manager(request)
            fields, services, organization = await form_fields(request), self._context.services, session.organization
            try:
                today, filters = services.today(organization), fixed_filters(fields).encode()
                Filters.parse(filters, organization, today, services.targets)  # is checked by this
                create, creator = self._context.shares.create, session.caller.name
                secret = await self._context.control.write(create, organization, creator, fields)
            except BadInput as error:
                problem = str(error)
        store, shares = self._context.shares, []
        if may_manage:
            shares = await self._context.control.read(store.shares_of, session.organization)
        made = f"{self._context.origin.origin(request)}{self._context.root}/share/{secret}" if secret else None
        return await self._page(
            request, "shares", shares=shares, made=made, problem=problem, may_manage=may_manage,
            fields={} if made else fields, is_embedded=bool(fields.get("embedders", "").strip()),
        )  # fmt: skip

    async def revoke_share(self, request: Request) -> Response:
        session, share_id = self._manager(request), request.path_params["id"]
        if not await self._context.control.write(self._context.shares.revoke, share_id, session.organization):
            raise NotFound
        return RedirectResponse(f"{self._context.root}/settings/shares", 303)

    async def cache(self, request: Request) -> Response:
        """The statistics of the cache of this organization's answers."""
        session: Session = request.scope["session"]
        rows = orjson.loads(encode(self._context.services.answers.statistics(session.organization)))
        links = CellLinks(self._context.root, request.url.path, await self._context.filters(request))
        return await self._page(request, "cache", panel=fill(Panel(CACHE_STATS, "Cache", is_wide=True), rows, links))

    async def storage(self, request: Request) -> Response:
        """What this organization has stored; nothing about others."""
        organization, services = request.scope["session"].organization, self._context.services
        now = services.clock()
        status = await self._context.in_thread(request, organization_status, services.lake, organization, now)
        rules = await self._context.control.read(self._context.jobs.rules, organization)
        return await self._page(request, "storage", stored=status, rules=rules)

    async def _page(self, request: Request, tab: str, **content: Any) -> Response:  # noqa: ANN401
        return await tab_page(self._context, request, tab, f"settings_{tab.replace('-', '_')}.html", **content)

    @staticmethod
    def _manager(request: Request) -> Session:
        """The session of a user who may change settings. Raises Forbidden."""
        session: Session = request.scope["session"]
        if not session.caller.may_manage_keys:
            raise Forbidden(
                "This session may not change settings.",
                "Sign in with a link of an editor: `traffic sign-in` on the server prints one.",
            )
        return session
