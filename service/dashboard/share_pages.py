"""The page Settings > Shares."""

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from data import BadInput
from service.access.page_context import PageLink, manager
from service.access.sessions import Session
from service.core.http.errors import NotFound
from service.core.pages.forms import form_fields
from service.dashboard.context import DashboardContext
from service.dashboard.shares import fixed_filters
from service.reports.filters import Filters

TABS = (PageLink("settings/shares", "Shares"),)


def routes(context: DashboardContext) -> list[Route]:
    """Return the routes for shares."""
    pages, root = _SharePages(context), f"{context.root}/settings/shares"
    return [
        Route(root, pages.shares, methods=["GET", "POST"]),
        Route(f"{root}/{{id}}/revoke", pages.revoke_share, methods=["POST"]),
    ]


class _SharePages:
    def __init__(self, context: DashboardContext) -> None:
        self._context = context

    async def shares(self, request: Request) -> Response:
        """Show the organization's shares (GET), or create a share and show its address once (POST). Only users who
        may change settings see or create shares.
        """
        session: Session = request.scope["session"]
        fields: dict[str, str] = {}
        secret, problem, may_manage = None, "", session.caller.may_manage_keys
        if request.method == "POST":
            manager(request)
            fields, services, organization = await form_fields(request), self._context.services, session.organization
            try:
                today, filters = services.today(organization), fixed_filters(fields).encode()
                Filters.parse(filters, organization, today, self._context.targets)  # checks the values
                create, creator = self._context.shares.create, session.caller.name
                secret = await self._context.control.write(create, organization, creator, fields)
            except BadInput as error:
                problem = str(error)
        store, shares = self._context.shares, []
        if may_manage:
            shares = await self._context.control.read(store.shares_of, session.organization)
        made = f"{self._context.origin.origin(request)}{self._context.root}/share/{secret}" if secret else None
        return await self._context.tab_page(
            request, "settings/shares", "settings_shares.html",
            shares=shares, made=made, problem=problem, may_manage=may_manage,
            fields={} if made else fields, is_embedded=bool(fields.get("embedders", "").strip()),
        )  # fmt: skip

    async def revoke_share(self, request: Request) -> Response:
        session, share_id = manager(request), request.path_params["id"]
        if not await self._context.control.write(self._context.shares.revoke, share_id, session.organization):
            raise NotFound
        return RedirectResponse(f"{self._context.root}/settings/shares", 303)
