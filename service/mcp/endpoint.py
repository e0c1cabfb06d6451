"""The endpoint of the Model Context Protocol: POST /mcp."""

from collections.abc import Callable
from typing import Final

import orjson
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from service.http.authentication import Caller
from service.http.bodies import read_json
from service.http.responses import JsonResponse
from service.mcp.protocol import reply_to
from service.mcp.tools import Toolbox

MAX_MESSAGE_BYTES: Final = 65_536
"""Of one message, whose longest part is the name of a link's target."""


def mcp_route(base: str, toolbox_of: Callable[[Caller], Toolbox], version: str) -> Route:
    """The route that answers one message with the tools of the caller's organization."""

    async def answer(request: Request) -> Response:
        message = await read_json(request, MAX_MESSAGE_BYTES, "Send one JSON-RPC 2.0 request.")
        reply = await reply_to(message, toolbox_of(request.scope["caller"]), version)
        return JsonResponse(b"" if reply.body is None else orjson.dumps(reply.body), reply.status)

    return Route(f"{base}/mcp", answer, methods=["POST"])
