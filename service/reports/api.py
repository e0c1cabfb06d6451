"""The endpoint of each report."""

import asyncio

from starlette.requests import Request
from starlette.responses import Response

from data.links.index import LinkIndex
from data.local_time import today
from queries import CACHE_STATS, Entry, parameters_of, scope_from
from service.core.clock import Clock
from service.core.encoding import encode
from service.core.http.bodies import reject_body
from service.core.http.caller import Caller
from service.core.http.compression import GZIP, VARY, wants_gzip
from service.core.http.responses import JsonResponse
from service.core.http.routing import Endpoint
from service.reports.answers import Answers
from service.reports.query_string import parse_parameters, parse_scope


def report_endpoint(entry: Entry, answers: Answers, targets: LinkIndex, clock: Clock) -> Endpoint:
    """Return the endpoint of a catalog entry, which answers for the caller's organization, by days in its time zone."""

    async def endpoint(request: Request) -> Response:
        caller: Caller = request.scope["caller"]
        organization = caller.organization
        reject_body(request)
        zone = answers.state(organization).zone
        query_string, day = request.scope["query_string"], today(zone, clock())
        scope = parse_scope(query_string, entry, organization, day, targets)
        if scope is None:  # reading the links blocks, so not on the event loop
            query = parse_parameters(query_string, parameters_of(entry))
            scope = await asyncio.to_thread(scope_from, query, organization, day, targets)
        if entry is CACHE_STATS:
            return JsonResponse(encode(answers.statistics(organization)), headers={"X-Time-Zone": zone})
        body = await answers.body(entry, scope, caller.is_share, request.receive)
        if wants_gzip(request.scope["headers"], body):
            compressed = await answers.compressed(entry, scope, caller.is_share, body)
            return JsonResponse(compressed, headers={"X-Time-Zone": zone, **GZIP})
        return JsonResponse(body, headers={"X-Time-Zone": zone, **VARY})

    return endpoint
