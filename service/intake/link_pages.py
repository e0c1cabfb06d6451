"""The page of one link: its numbers, and a form that sets its tags."""

from functools import partial
from typing import Final

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from data import BadInput
from data.links.links import LinkEdit, links_with
from data.links.tags import MAX_TAG_LENGTH, MAX_TAGS, check_tags, joined_tags, split_tags
from service.core.http.errors import Forbidden, NotFound
from service.core.pages.forms import form_fields
from service.dashboard.content import LINK
from service.dashboard.context import DashboardContext
from service.dashboard.views import View
from service.intake.link_api import LinkService

_MAX_TEXT: Final = MAX_TAGS * (2 * MAX_TAG_LENGTH + 4)
"""Maximum number of characters in the tags field: each tag may be quoted and contain quotes."""


def routes(context: DashboardContext, links: LinkService) -> list[Route]:
    """Return the routes of the page."""
    return [Route(f"{context.root}/{LINK.path}", partial(link_page, context, links), methods=["GET", "POST"])]


async def link_page(context: DashboardContext, links: LinkService, request: Request) -> Response:
    """Show the link in the filters (GET), or set its tags (POST); if the filters name no link, redirect to the list of
    links.
    """
    view = await View.start(context, request, LINK)
    short_code, domain = view.filters.scope.short_code, view.filters.scope.domain
    may_write, problem, fields = request.scope["session"].caller.may_write, "", dict[str, str]()
    if request.method == "POST":
        if not may_write:
            raise Forbidden("Viewers cannot change links.", "Ask an editor to do it.")
        fields = await form_fields(request)
        try:
            await _set_tags(links, view.filters.organization, short_code or "", fields)
        except BadInput as error:
            problem = f"Nothing was changed: {error}"
        else:
            return RedirectResponse(f"{request.url.path}?{request.url.query}", 303)
    if instead := await view.instead():
        return instead
    if not short_code:
        return RedirectResponse(f"{context.root}/links{view.filters.query_string(target_url=None)}", 303)
    find = partial(links_with, links.lake, view.filters.organization, short_code)
    shown = {
        "title": short_code,
        "links": [
            (link, joined_tags(link.tags or ()))
            for link in await context.in_thread(request, find)
            if not domain or link.domain in {"", domain}
        ],
        "may_write": may_write,
        "max_text": _MAX_TEXT,
        "problem": problem,
        "fields": fields,
    }
    return await view.response("link.html", 400 if problem else 200, **await view.content() | shown)


async def _set_tags(links: LinkService, organization: str, short_code: str, fields: dict[str, str]) -> None:
    """Replace a link's tags with the tags in a form. Raises BadInput, or NotFound if the link was removed."""
    tags = check_tags(split_tags(fields.get("tags", "")), f"the link {short_code}")
    before, _ = await links.edit(organization, LinkEdit(short_code, fields.get("domain", ""), None, tags))
    if before is None:
        raise NotFound
