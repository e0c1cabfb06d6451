"""The endpoint of the Model Context Protocol: POST /mcp."""

from collections.abc import Callable
from typing import Final

import orjson
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from service.http.authentication import Caller
from service.http.bodies import read_json
from service.http.compression import GZIP, VARY, compress, wants_gzip
from service.http.lanes import Lane
from service.http.responses import JsonResponse
from service.mcp.protocol import reply_to
from service.mcp.tools import Toolbox

MAX_MESSAGE_BYTES: Final = 65_536
"""Of one message, whose longest part is the name of a link's target."""


def mcp_route(base: str, toolbox_of: Callable[[Caller], Toolbox], texts: Lane, version: str) -> Route:
    """The route that answers one message with the tools of the caller's organization."""

    async def answer(request: Request) -> Response:
        message = await read_json(request, MAX_MESSAGE_BYTES, "Send one JSON-RPC 2.0 request.")
        caller: Caller = request.scope["caller"]
        reply = await reply_to(message, toolbox_of(caller), version)
        body = b"" if reply.body is None else orjson.dumps(reply.body)
        if not wants_gzip(request.scope["headers"], body):
            return JsonResponse(body, reply.status, VARY)
        return JsonResponse(await texts.compute(*caller.turn, lambda: compress(body)), reply.status, GZIP)

    return Route(f"{base}/mcp", answer, methods=["POST"])
