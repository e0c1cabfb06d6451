"""An endpoint for each operation and each report: it checks and reads the request, and encodes what answers it."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

from msgspec.json import encode
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from data import BadInput
from data.links.index import LinkIndex
from data.local_time import today
from queries import CACHE_STATS, Entry, parameters_of, scope_from
from service.clock import Clock
from service.encoding import encode as encode_answer
from service.hooks.outbox import HookConflict
from service.http.answers import Answers
from service.http.authentication import Caller
from service.http.bodies import received_object, reject_body
from service.http.compression import GZIP, VARY, compress, wants_gzip
from service.http.errors import PROBLEMS, BodyTooLarge, InvalidBody, PreconditionFailed, StateConflict, sentence
from service.http.operations import OPERATIONS, Operation
from service.http.query_string import parse_parameters, parse_scope
from service.http.responses import JsonResponse
from service.http.routing import Endpoint
from service.jobs.records import JobRecord
from service.jobs.states import JobChanged, JobConflict, TooLarge


@dataclass(frozen=True)
class Call:
    """A request for an operation, from a caller who may make it."""

    request: Request
    body: Any = None
    """The decoded body, as the operation declares it; None if the handler reads it."""

    @property
    def caller(self) -> Caller:
        """The sender of the request."""
        found: Caller = self.request.scope["caller"]
        return found

    @property
    def organization(self) -> str:
        """The caller's organization, which is all that the operation is about."""
        return self.caller.organization

    @property
    def path(self) -> Mapping[str, str]:
        """The parameters in the path."""
        return self.request.path_params


Handler = Callable[[Call], Awaitable[object]]
"""Answers a call: with what is encoded as JSON, or with a whole response."""


def routes_of(base: str, handlers: Mapping[str, Handler]) -> list[Route]:
    """A route for each path of OPERATIONS, answered by the handlers of these operations."""
    endpoints: dict[str, dict[str, Endpoint]] = {}
    for one in OPERATIONS:
        method, path = one.route.split()
        endpoints.setdefault(path, {})[method] = endpoint_of(one, handlers[one.name])
    return [Route(f"{base}{path}", _by_method(methods), methods=list(methods)) for path, methods in endpoints.items()]


def _by_method(endpoints: Mapping[str, Endpoint]) -> Endpoint:
    async def endpoint(request: Request) -> Response:
        return await endpoints[request.method](request)

    return endpoint


def endpoint_of(one: Operation, handler: Handler) -> Endpoint:
    """The endpoint of an operation, which makes problems of the errors of jobs, hooks, keys and links.

    The version of a job that it returns is the entity tag, too.
    """
    status = int(next(iter(one.answers)))

    async def endpoint(request: Request) -> Response:
        if not one.is_public:
            one.check(request.scope["caller"])
            if request.method == "GET":
                reject_body(request)
        try:
            reading = received_object(request, one.body, one.max_bytes) if one.max_bytes else nullcontext()
            async with reading as body:
                result = await handler(Call(request, body))
        except PROBLEMS:
            raise
        except JobConflict as error:
            known = {"status": error.status, "version": error.version}
            state: dict[str, Any] = {name: value for name, value in known.items() if value is not None}
            problem = PreconditionFailed if isinstance(error, JobChanged) else StateConflict
            raise problem(str(error), **state) from error
        except HookConflict as error:
            raise StateConflict(str(error)) from error
        except TooLarge as error:
            raise BodyTooLarge(sentence(error), "Send less text.") from error
        except BadInput as error:
            raise InvalidBody("The body is invalid.", sentence(error)) from error
        if isinstance(result, Response):
            return result
        headers = {"ETag": f'"{result.version}"'} if isinstance(result, JobRecord) else {}
        return JsonResponse(encode(result), status, headers)

    return endpoint


def report_endpoint(entry: Entry, answers: Answers, targets: LinkIndex, clock: Clock) -> Endpoint:
    """Return the answer of an entry of the catalog for the caller's organization, whose days are those of its zone."""

    async def endpoint(request: Request) -> Response:
        caller: Caller = request.scope["caller"]
        organization = caller.organization
        reject_body(request)
        zone = answers.state(organization).zone
        query_string, day = request.scope["query_string"], today(zone, clock())
        scope = parse_scope(query_string, entry, organization, day, targets)
        if scope is None:  # the links are read, so not on the event loop
            query = parse_parameters(query_string, parameters_of(entry))
            scope = await asyncio.to_thread(scope_from, query, organization, day, targets)
        if entry is CACHE_STATS:
            return JsonResponse(encode_answer(answers.statistics(organization)), headers={"X-Time-Zone": zone})
        body = await answers.body(entry, scope, caller.is_share, request.receive)
        if wants_gzip(request.scope["headers"], body):
            compressed = await answers.compressed(entry, scope, caller.is_share, body)
            return JsonResponse(compressed, headers={"X-Time-Zone": zone, **GZIP})
        return JsonResponse(body, headers={"X-Time-Zone": zone, **VARY})

    return endpoint


def document_handler(body: bytes) -> Handler:
    """Return a fixed JSON document."""
    compressed = compress(body)

    async def handler(call: Call) -> Response:
        is_compressed = wants_gzip(call.request.scope["headers"], body)
        return JsonResponse(compressed if is_compressed else body, headers=GZIP if is_compressed else VARY)

    return handler
