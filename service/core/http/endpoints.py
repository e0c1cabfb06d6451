"""The endpoint of each operation, which checks and reads requests, and encodes the handler's results."""

from collections.abc import Iterable
from contextlib import nullcontext
from typing import Any

from msgspec.json import encode
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from data import BadInput
from queries import InvalidParameter
from service.core.http.bodies import received_object, reject_body
from service.core.http.errors import InvalidBody, Problem, sentence
from service.core.http.operations import Call, Handler, Operation
from service.core.http.responses import JsonResponse
from service.core.http.routing import Endpoint


def routes_of(base: str, operations: Iterable[tuple[Operation, Handler]]) -> list[Route]:
    """Return a route for each path of the operations; their handlers answer requests for the path."""
    endpoints: dict[str, dict[str, Endpoint]] = {}
    for one, handler in operations:
        method, path = one.route.split()
        endpoints.setdefault(path, {})[method] = endpoint_of(one, handler)
    return [Route(f"{base}{path}", _by_method(methods), methods=list(methods)) for path, methods in endpoints.items()]


def _by_method(endpoints: dict[str, Endpoint]) -> Endpoint:
    async def endpoint(request: Request) -> Response:
        return await endpoints[request.method](request)

    return endpoint


def endpoint_of(one: Operation, handler: Handler) -> Endpoint:
    """Return the endpoint of an operation. It raises InvalidBody if the handler raises BadInput.

    The version of the handler's result, if it has one, is also sent as the ETag.
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
        except (Problem, InvalidParameter):
            raise
        except BadInput as error:
            raise InvalidBody("The body is invalid.", sentence(error)) from error
        if isinstance(result, Response):
            return result
        version: Any = getattr(result, "version", None)
        return JsonResponse(encode(result), status, {} if version is None else {"ETag": f'"{version}"'})

    return endpoint
