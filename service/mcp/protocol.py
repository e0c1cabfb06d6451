"""The Model Context Protocol: one JSON-RPC message, one answer, no session. Both transports use this module.

Supports the stateless revision 2026-07-28 and, also without state, the handshake of earlier revisions
(https://modelcontextprotocol.io/specification). Small enough to need no SDK.
"""

import json
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from service.mcp.tools import INSTRUCTIONS, Toolbox, ToolFailed

MODERN: Final = "2026-07-28"
HANDSHAKE: Final = ("2025-03-26", "2025-06-18", "2025-11-25")
MAX_BATCH: Final = 20
"""Maximum number of messages in a batch, which clients that use revision 2025-03-26 may send."""
PARSE_ERROR: Final = -32700
INVALID_REQUEST: Final = -32600
METHOD_NOT_FOUND: Final = -32601
INVALID_PARAMETERS: Final = -32602
INTERNAL_ERROR: Final = -32603
UNSUPPORTED_VERSION: Final = -32022
_VERSION_KEY: Final = "io.modelcontextprotocol/protocolVersion"
_SERVER_KEY: Final = "io.modelcontextprotocol/serverInfo"
_CACHEABLE: Final = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}


class Reply(NamedTuple):
    """The HTTP status of a response, and its body, which is None for a notification."""

    status: int
    body: dict[str, Any] | list[Any] | None


class RpcError(Exception):
    """A JSON-RPC error, with its HTTP status."""

    def __init__(self, code: int, message: str, status: int = 400, data: object = None) -> None:
        super().__init__(message)
        self.status = status
        self.error = {"code": code, "message": message} | ({} if data is None else {"data": data})


async def reply_to(message: object, toolbox: Toolbox, version: str) -> Reply:
    """Answer one parsed message, or an array of up to MAX_BATCH, in order. `version` is this program's version."""
    if isinstance(message, list) and 0 < len(message) <= MAX_BATCH:
        replies = [await reply_to(None if isinstance(one, list) else one, toolbox, version) for one in message]
        bodies = [reply.body for reply in replies if reply.body is not None]
        return Reply(200, bodies) if bodies else Reply(202, None)
    if not isinstance(message, dict) or message.get("jsonrpc") != "2.0" or not isinstance(message.get("method"), str):
        return error_reply(INVALID_REQUEST, "Send one JSON-RPC 2.0 request.")
    if "id" not in message:
        return Reply(202, None)
    head = {"jsonrpc": "2.0", "id": message["id"]}
    try:
        parameters = message.get("params") or {}
        if not isinstance(parameters, dict) or not isinstance(parameters.get("_meta", {}), dict):
            raise RpcError(INVALID_PARAMETERS, "params and its _meta must be objects.")
        server = {"name": "traffic-analytics", "version": version}
        result = await _result(message["method"], parameters, toolbox, server)
    except RpcError as error:
        return Reply(error.status, {**head, "error": error.error})
    return Reply(200, {**head, "result": result})


def error_reply(code: int, message: str, identity: object = None) -> Reply:
    """Return the error response to the message with this id, which is None if the message has no readable id."""
    return Reply(400, {"jsonrpc": "2.0", "id": identity, "error": {"code": code, "message": message}})


async def _result(
    method: str, parameters: Mapping[str, Any], toolbox: Toolbox, server: Mapping[str, str]
) -> dict[str, Any]:
    requested = parameters.get("_meta", {}).get(_VERSION_KEY)
    if requested not in (None, MODERN):
        versions = {"supported": [MODERN], "requested": requested}
        raise RpcError(UNSUPPORTED_VERSION, f"Use version {MODERN}.", data=versions)
    match method:
        case "server/discover":
            known = {"supportedVersions": [MODERN], "_meta": {_SERVER_KEY: server}, **_CACHEABLE}
            return {**known, "capabilities": {"tools": {}}, "instructions": INSTRUCTIONS}
        case "initialize":
            asked = parameters.get("protocolVersion")
            known = {"protocolVersion": asked if asked in HANDSHAKE else HANDSHAKE[-1], "serverInfo": server}
            return {**known, "capabilities": {"tools": {}}, "instructions": INSTRUCTIONS}
        case "ping":
            return {}
        case "tools/list":
            return {"tools": toolbox.definitions, **_CACHEABLE}
        case "tools/call":
            name, arguments = parameters.get("name"), parameters.get("arguments") or {}
            if not isinstance(name, str) or not isinstance(arguments, dict):
                raise RpcError(INVALID_PARAMETERS, "Give the tool's name as a string, and its arguments as an object.")
            try:
                text, failed = await toolbox.call(name, arguments), False
            except KeyError:
                raise RpcError(INVALID_PARAMETERS, f"Unknown tool {json.dumps(name)}.") from None
            except ToolFailed as error:
                text, failed = str(error), True
            return {"content": [{"type": "text", "text": text}], "isError": failed, "resultType": "complete"}
    raise RpcError(METHOD_NOT_FOUND, f"Unknown method {json.dumps(method)}.", 404)
