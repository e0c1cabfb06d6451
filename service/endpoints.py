"""What each route does: a few lines each, between the caller's words and the bytes of the answer."""

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime

import orjson
from starlette.requests import Request
from starlette.responses import Response

from data.links import Targets
from queries import CACHE_STATS, Entry
from service.answers import Answers
from service.control import Control
from service.encoding import encode
from service.errors import Forbidden
from service.parameters import read_query, scope_of
from service.receiving import Receiver
from service.responses import json_response

Endpoint = Callable[[Request], Awaitable[Response]]
Clock = Callable[[], datetime]


def utc_now() -> datetime:
    """The time in UTC."""
    return datetime.now(UTC)


def analytics(entry: Entry, answers: Answers, targets: Targets, clock: Clock) -> Endpoint:
    """Answer an entry of the catalogue for the caller's organization."""

    async def endpoint(request: Request) -> Response:
        organization = request.scope["caller"].organization
        query = read_query(request.scope["query_string"], entry)
        scope = scope_of(query, organization, clock().date(), targets)
        if entry is CACHE_STATS:
            return json_response(encode(answers.statistics(organization)))
        return json_response(await answers.body(entry, scope))

    return endpoint


def jobs(control: Control) -> Endpoint:
    """Answer the jobs of the caller's organization."""

    async def endpoint(request: Request) -> Response:
        return json_response(encode(control.jobs(request.scope["caller"].organization)))

    return endpoint


def visits(receiver: Receiver) -> Endpoint:
    """Take the visits that an editor's program reports."""

    async def endpoint(request: Request) -> Response:
        caller = request.scope["caller"]
        if not caller.may_write:
            raise Forbidden
        landed = await receiver.take(request, caller.organization)
        counts = {"accepted": landed.accepted, "refused": len(landed.refused)}
        return json_response(orjson.dumps({**counts, "errors": landed.refused}), 202)

    return endpoint


def health(probe: Callable[[], Awaitable[object]]) -> Endpoint:
    """Answer whether a real query works; it fails as any other request does."""

    async def endpoint(_: Request) -> Response:
        await probe()
        return json_response(b'{"status":"ok"}')

    return endpoint


def document(body: bytes) -> Endpoint:
    """Answer a document that never changes."""

    async def endpoint(_: Request) -> Response:
        return json_response(body)

    return endpoint
