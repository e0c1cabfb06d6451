"""The endpoint of the Model Context Protocol: POST /mcp."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Literal

import orjson
from msgspec import UNSET, Struct, UnsetType
from starlette.responses import Response

from service.core.http.bodies import received_json
from service.core.http.caller import Caller
from service.core.http.compression import GZIP, VARY, compress, wants_gzip
from service.core.http.operations import Call, Json, Operation, Operations
from service.core.http.pools import Pool
from service.core.http.responses import JsonResponse
from service.mcp.protocol import reply_to
from service.mcp.tools import Toolbox
from service.reports.answers import while_connected

MAX_MESSAGE_BYTES: Final = 65_536
"""Maximum size of a message. The longest part of a message is a link's target URL."""
OPERATIONS = Operations["Assistants"]()


class RpcRequest(Struct, frozen=True):
    """One message of the Model Context Protocol."""

    jsonrpc: Literal["2.0"]
    method: Literal["server/discover", "initialize", "ping", "tools/list", "tools/call"]
    id: str | int | UnsetType = UNSET
    params: dict[str, Any] | UnsetType = UNSET


@dataclass(frozen=True, kw_only=True)
class Assistants:
    """The parts that answer assistants: the tools for each caller's organization, and threads that compress answers."""

    toolbox_of: Callable[[Caller], Toolbox]
    texts: Pool
    version: str


@OPERATIONS.handles(
    Operation(
        "POST /mcp", "mcp", "One message of the Model Context Protocol: the reports as tools for an assistant.",
        {"200": Json, "400": Json, "404": Json, "202": None}, body=RpcRequest,
        description="Stateless: one JSON-RPC request, one answer. A notification has no answer.",
    )
)  # fmt: skip
async def answer(assistants: Assistants, call: Call) -> Response:
    async with received_json(call.request, MAX_MESSAGE_BYTES, "Send one JSON-RPC 2.0 request.") as message:
        replying = reply_to(message, assistants.toolbox_of(call.caller), assistants.version)
        reply = await while_connected(replying, call.request.receive)
    body = b"" if reply.body is None else orjson.dumps(reply.body)
    if not wants_gzip(call.request.scope["headers"], body):
        return JsonResponse(body, reply.status, VARY)
    compressed = await assistants.texts.compute(*call.caller.turn, lambda: compress(body))
    return JsonResponse(compressed, reply.status, GZIP)
