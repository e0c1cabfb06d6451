"""API operations on a single link: read, set and remove it."""

import asyncio
import re
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC
from functools import partial
from typing import Annotated, Final

from msgspec import Meta, Struct
from msgspec.json import encode
from starlette.responses import Response

from data import BadInput, Lake
from data.hosts import HOST_RULE, normalized_host
from data.links.links import (
    ANY_VERSION,
    MAX_TARGET_URL_LENGTH,
    SHORT_CODE_RULE,
    Link,
    LinkEdit,
    edit_links,
    is_short_code,
    link_of,
    new_link,
    version_of,
)
from data.links.tags import MAX_TAG_LENGTH, MAX_TAGS, check_tags
from queries import InvalidParameter
from service.core.clock import Clock, Time
from service.core.http.bodies import reject_body
from service.core.http.errors import InvalidBody, NotFound, Overloaded, PreconditionFailed
from service.core.http.group_commit import GroupCommit
from service.core.http.operations import KIB, Call, Operation, Operations, writer
from service.core.http.responses import JsonResponse
from service.core.threads import lower_priority

EVERY_DOMAIN: Final = "*"
"""The domain in the URL of a link for every domain."""
MAX_WAITING_EDITS: Final = 8
"""Maximum number of edits that may wait per organization; further edits raise Overloaded."""

OPERATIONS = Operations["LinkService"]()
LinkEdits = GroupCommit[LinkEdit, tuple[Link | None, Link | None]]
"""A group commit of edits: all waiting edits of an organization become one change, since each change writes a file."""


def link_edits(lake: Lake, serves_others: Callable[[str], bool]) -> LinkEdits:
    """Return the group commit of a lake's link edits, with its thread. Each edit returns the link before and after.

    An organization's edits pause while other organizations' queries run or wait.
    """
    thread = ThreadPoolExecutor(1, thread_name_prefix="links-write", initializer=lower_priority)
    return GroupCommit(partial(edit_links, lake), thread, serves_others)


Tag = Annotated[str, Meta(min_length=1, max_length=MAX_TAG_LENGTH)]


class LinkTarget(Struct, frozen=True, forbid_unknown_fields=True):
    """A link's target and tags."""

    target_url: Annotated[str, Meta(max_length=MAX_TARGET_URL_LENGTH, description="an http or https address")]
    tags: Annotated[
        Annotated[list[Tag], Meta(max_length=MAX_TAGS)] | None,
        Meta(description="all tags of the link; without this field, the link keeps its tags"),
    ] = None


class StoredLink(Struct, frozen=True, forbid_unknown_fields=True):
    """A link in a response."""

    short_code: str
    domain: Annotated[str, Meta(description="normalized; * for every domain")]
    target_url: str
    created_at: Annotated[Time, Meta(description="when the link was added or its target last changed")]
    tags: Annotated[list[Tag], Meta(max_length=MAX_TAGS, description="sorted")]


@dataclass(frozen=True, kw_only=True)
class LinkService:
    """Reads and edits the links of a lake."""

    lake: Lake
    edits: LinkEdits
    clock: Clock

    async def edit(self, organization: str, wanted: LinkEdit) -> tuple[Link | None, Link | None]:
        """Make an edit durably; return the link before and after.

        Raises Overloaded, StorageUnavailable, LakeDamaged, or PreconditionFailed if the link does not have the version
        that the edit requires. In each case, nothing has changed.
        """
        if self.edits.count_pending(organization) >= MAX_WAITING_EDITS:
            raise Overloaded
        before, after = await self.edits.add(organization, wanted)
        if not wanted.fits(before):
            raise PreconditionFailed("The link does not have the version in If-Match.")
        return before, after


@OPERATIONS.handles(
    Operation("GET /links/{domain}/{short_code}", "get-link", "The link for a short code.", {"200": StoredLink})
)
async def read(links: LinkService, call: Call) -> Response:
    short_code, domain = _short_code_and_domain(call.path)
    return _response(await asyncio.to_thread(link_of, links.lake, call.organization, short_code, domain))


@OPERATIONS.handles(
    Operation(
        "PUT /links/{domain}/{short_code}", "put-link",
        "Add a link (201), or change its target and tags (200). Only for roles that may write.",
        {"200": StoredLink, "201": StoredLink}, writer, LinkTarget, 16 * KIB, errors="412",
    )
)  # fmt: skip
async def put(links: LinkService, call: Call) -> Response:
    short_code, domain = _short_code_and_domain(call.path)
    try:
        tags = None if call.body.tags is None else check_tags(call.body.tags, "Tags")
    except BadInput as error:
        raise InvalidBody("`tags` is invalid.", str(error)) from error
    try:
        wanted = new_link(short_code, domain, call.body.target_url, links.clock(), tags)
    except BadInput as error:
        fix = "Use an http or https address of at most 2,048 characters."
        raise InvalidBody("`target_url` is invalid.", fix) from error
    edit = LinkEdit(short_code, domain, wanted, version=_version(call))
    before, after = await links.edit(call.organization, edit)
    return _response(after, 200 if before else 201)


@OPERATIONS.handles(
    Operation(
        "DELETE /links/{domain}/{short_code}", "delete-link",
        "Remove a link; its visits stay. Only for roles that may write.", {"200": StoredLink}, writer, errors="412",
    )
)  # fmt: skip
async def delete(links: LinkService, call: Call) -> StoredLink:
    reject_body(call.request)
    edit = LinkEdit(*_short_code_and_domain(call.path), None, version=_version(call))
    before, _ = await links.edit(call.organization, edit)
    return _record(before)


def _version(call: Call) -> str | None:
    """Return the version in If-Match: ANY_VERSION for `*`, None without the header. Any other value that is not a
    single strong entity tag matches no link.
    """
    header = call.request.headers.get("if-match")
    if header is None or header == ANY_VERSION:
        return header
    match = re.fullmatch(r'"([0-9a-f]{32})"', header.strip())
    return match[1] if match else ""


def _short_code_and_domain(path: Mapping[str, str]) -> tuple[str, str]:
    """Return the short code in a path and its normalized domain, "" for every domain. Raises InvalidParameter."""
    domain = "" if path["domain"] == EVERY_DOMAIN else normalized_host(path["domain"])
    if domain is None:
        raise InvalidParameter("domain", HOST_RULE, f"Use {EVERY_DOMAIN} for every domain.")
    if not is_short_code(path["short_code"]):
        raise InvalidParameter("short_code", "is not a valid short code", f"Use {SHORT_CODE_RULE}.")
    return path["short_code"], domain


def _response(link: Link | None, status: int = 200) -> Response:
    """Return a response with a link; its entity tag is the link's version. Raises NotFound if there is no link."""
    body = encode(_record(link))
    return JsonResponse(body, status, {"ETag": f'"{version_of(link)}"'} if link else {})


def _record(link: Link | None) -> StoredLink:
    """Return a link's record for a response. Raises NotFound if there is none."""
    if link is None:
        fix = f"Check the domain and the short code; a link for every domain has the domain {EVERY_DOMAIN}."
        raise NotFound("Link not found.", fix)
    created_at = link.created_at.replace(microsecond=0, tzinfo=UTC)
    return StoredLink(link.short_code, link.domain or EVERY_DOMAIN, link.target_url, created_at, [*(link.tags or ())])
