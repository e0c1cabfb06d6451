"""The endpoint of the Model Context Protocol: POST /mcp."""

from collections.abc import Callable
from typing import Final

import orjson
from starlette.responses import Response

from service.http.answers import while_connected
from service.http.authentication import Caller
from service.http.bodies import received_json
from service.http.compression import GZIP, VARY, compress, wants_gzip
from service.http.endpoints import Call, Handler
from service.http.lanes import Lane
from service.http.responses import JsonResponse
from service.mcp.protocol import reply_to
from service.mcp.tools import Toolbox

MAX_MESSAGE_BYTES: Final = 65_536
"""Of one message, whose longest part is the name of a link's target."""


def mcp_handler(toolbox_of: Callable[[Caller], Toolbox], texts: Lane, version: str) -> Handler:
    """Answers one message with the tools of the caller's organization."""

    async def handler(call: Call) -> Response:
        async with received_json(call.request, MAX_MESSAGE_BYTES, "Send one JSON-RPC 2.0 request.") as message:
            reply = await while_connected(reply_to(message, toolbox_of(call.caller), version), call.request.receive)
        body = b"" if reply.body is None else orjson.dumps(reply.body)
        if not wants_gzip(call.request.scope["headers"], body):
            return JsonResponse(body, reply.status, VARY)
        return JsonResponse(await texts.compute(*call.caller.turn, lambda: compress(body)), reply.status, GZIP)

    return handler
