"""The endpoints of all routes. Each function returns the endpoint for the given parts of the service."""

import asyncio
from typing import Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from data import BadInput
from data.local_time import today
from data.store.link_index import LinkIndex
from queries import CACHE_STATS, Entry, scope_from
from service.api_keys import ApiKeys, Key, key_id_of
from service.clock import Clock
from service.encoding import encode
from service.http.answers import Answers
from service.http.authentication import Caller
from service.http.bodies import read_body, reject_body
from service.http.compression import GZIP, VARY, compress, wants_gzip
from service.http.errors import AllRefused, Forbidden, InvalidBody, NotFound
from service.http.live_visits import VisitReceiver
from service.http.monitoring import HealthCheck
from service.http.query_string import parse_query, parse_scope
from service.http.responses import JsonResponse
from service.http.routing import Endpoint
from service.http.schemas import ApiKey, CreatedApiKey, NewApiKey, ReceivedVisits, RefusedVisit

MAX_NAME_BYTES: Final = 4_096


def analytics(entry: Entry, answers: Answers, targets: LinkIndex, clock: Clock) -> Endpoint:
    """Return the answer of an entry of the catalog for the caller's organization, whose days are those of its zone."""

    async def endpoint(request: Request) -> Response:
        caller: Caller = request.scope["caller"]
        organization = caller.organization
        reject_body(request)
        zone = answers.state(organization).zone
        query_string, day = request.scope["query_string"], today(zone, clock())
        scope = parse_scope(query_string, entry, organization, day, targets)
        if scope is None:  # the links are read, so not on the event loop
            query = parse_query(query_string, entry)
            scope = await asyncio.to_thread(scope_from, query, organization, day, targets)
        if entry is CACHE_STATS:
            return JsonResponse(encode(answers.statistics(organization)), headers={"X-Time-Zone": zone})
        body = await answers.body(entry, scope, caller.asker, request.receive)
        if wants_gzip(request.scope["headers"], body):
            compressed = await answers.compressed(entry, scope, caller.asker, body)
            return JsonResponse(compressed, headers={"X-Time-Zone": zone, **GZIP})
        return JsonResponse(body, headers={"X-Time-Zone": zone, **VARY})

    return endpoint


def api_keys(keys: ApiKeys) -> Endpoint:
    """List the keys of the caller's organization (GET), or create one (POST)."""

    async def endpoint(request: Request) -> Response:
        caller = _key_manager(request)
        if request.method == "GET":
            reject_body(request)
            listed = await keys.database.read(keys.keys_of, caller.organization)
            return JsonResponse(msgspec.json.encode([_key_record(key) for key in listed]))
        body = await read_body(request, NewApiKey, MAX_NAME_BYTES)
        try:
            key = await keys.database.write(
                keys.create_key, caller.organization, body.name, caller.name, body.expires_at
            )
        except BadInput as error:
            raise InvalidBody("The API key cannot be created.", str(error)) from error
        created = await keys.database.read(keys.key, key_id_of(key))
        shown = CreatedApiKey(**msgspec.structs.asdict(_key_record(created)), key=key)
        return JsonResponse(msgspec.json.encode(shown), 201)

    return endpoint


def api_key(keys: ApiKeys) -> Endpoint:
    """Revoke a key of the caller's organization."""

    async def endpoint(request: Request) -> Response:
        caller = _key_manager(request)
        key_id = request.path_params["id"]
        try:
            await keys.database.write(keys.revoke_key, key_id, caller.organization)
        except BadInput as error:
            raise NotFound("No active key has this id.", "List the keys to see which are active.") from error
        return JsonResponse(msgspec.json.encode(_key_record(await keys.database.read(keys.key, key_id))))

    return endpoint


def _key_manager(request: Request) -> Caller:
    """The caller of a request. Raises Forbidden unless it may manage API keys."""
    caller: Caller = request.scope["caller"]
    if not caller.may_manage_keys:
        raise Forbidden(
            "This token may not manage API keys.",
            "Use an identity token of a role that may write; or `traffic keys` on the server.",
        )
    return caller


def _key_record(key: Key) -> ApiKey:
    """A key in responses."""
    return msgspec.convert(key, ApiKey, from_attributes=True)


def visits(receiver: VisitReceiver) -> Endpoint:
    """Accept live visits from a caller who may write. If all are refused, the answer is a 400 with the reasons."""

    async def endpoint(request: Request) -> Response:
        caller = request.scope["caller"]
        if not caller.may_write:
            raise Forbidden
        landed = await receiver.receive(request, caller.organization)
        if landed.refused and not landed.accepted:
            raise AllRefused(landed.refused)
        refused = [RefusedVisit(one.index, one.error) for one in landed.refused]
        return JsonResponse(msgspec.json.encode(ReceivedVisits(landed.accepted, len(refused), refused)), 202)

    return endpoint


def health(check: HealthCheck) -> Endpoint:
    """Return {"status":"ok"} if a real query works; otherwise fail like any other request."""

    async def endpoint(_: Request) -> Response:
        if failure := await check.failure():
            raise failure
        return JsonResponse(b'{"status":"ok"}')

    return endpoint


def document(body: bytes) -> Endpoint:
    """Return a fixed JSON document."""
    compressed = compress(body)

    async def endpoint(request: Request) -> Response:
        is_compressed = wants_gzip(request.scope["headers"], body)
        return JsonResponse(compressed if is_compressed else body, headers=GZIP if is_compressed else VARY)

    return endpoint
