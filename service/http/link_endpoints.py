"""The endpoint of one link: programs read it, set it and remove it."""

from collections.abc import Mapping
from datetime import UTC
from typing import Final

from msgspec.json import encode
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from data import BadInput
from data.hosts import HOST_RULE, normalized_host
from data.store.links import SHORT_CODE_RULE, Link, is_short_code, new_link
from queries import InvalidParameter
from service.clock import Clock
from service.http.authentication import Caller
from service.http.bodies import read_body, reject_body
from service.http.errors import Forbidden, InvalidBody, NotFound
from service.http.links import LinkEditor
from service.http.responses import JsonResponse
from service.http.routing import Endpoint
from service.http.schemas import LinkTarget, StoredLink

MAX_LINK_BYTES: Final = 16_384
EVERY_DOMAIN: Final = "*"
"""Stands in an address for the domain of a link for every domain."""


def link_route(base: str, editor: LinkEditor, clock: Clock) -> Route:
    """The route of one link."""
    return Route(f"{base}/links/{{domain}}/{{short_code}}", _link(editor, clock), methods=["GET", "PUT", "DELETE"])


def _link(editor: LinkEditor, clock: Clock) -> Endpoint:
    """Return a link of the caller's organization (GET), add or change it (PUT), or remove it (DELETE)."""

    async def endpoint(request: Request) -> Response:
        caller: Caller = request.scope["caller"]
        if request.method != "GET" and not caller.may_write:
            raise Forbidden
        domain, short_code = _domain_and_short_code(request.path_params)
        if request.method == "PUT":
            body = await read_body(request, LinkTarget, MAX_LINK_BYTES)
            try:
                wanted = new_link(short_code, domain, body.target_url, clock())
            except BadInput as error:
                fix = "Use an http or https address of at most 2,048 characters."
                raise InvalidBody("`target_url` is invalid.", fix) from error
            stored, is_new = await editor.put(caller.organization, wanted)
            return JsonResponse(encode(_link_record(stored)), 201 if is_new else 200)
        reject_body(request)
        read_or_remove = editor.link if request.method == "GET" else editor.remove
        found = await read_or_remove(caller.organization, short_code, domain)
        if found is None:
            fix = f"Check the domain and the short code; {EVERY_DOMAIN} is the domain of links for every domain."
            raise NotFound("Link not found.", fix)
        return JsonResponse(encode(_link_record(found)))

    return endpoint


def _domain_and_short_code(parameters: Mapping[str, str]) -> tuple[str, str]:
    """The normal form of the domain ("" for every domain) and the short code in an address. Raises InvalidParameter."""
    domain = "" if parameters["domain"] == EVERY_DOMAIN else normalized_host(parameters["domain"])
    if domain is None:
        raise InvalidParameter("domain", HOST_RULE, f"Use {EVERY_DOMAIN} for every domain.")
    if not is_short_code(parameters["short_code"]):
        raise InvalidParameter("short_code", "is not a valid short code", f"Use {SHORT_CODE_RULE}.")
    return domain, parameters["short_code"]


def _link_record(link: Link) -> StoredLink:
    """A link in responses."""
    created_at = link.created_at.replace(microsecond=0, tzinfo=UTC)
    return StoredLink(link.short_code, link.domain or EVERY_DOMAIN, link.target_url, created_at)
