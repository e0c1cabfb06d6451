"""Serves the tools over stdin and stdout: a JSON-RPC message a line, answered one after another."""

import asyncio
import sys

import orjson

from service.mcp.protocol import PARSE_ERROR, Reply, error_reply, reply_to
from service.mcp.tools import Toolbox


def serve(toolbox: Toolbox, version: str) -> None:
    """Answer one client until it closes stdin."""
    with asyncio.Runner() as runner:
        for line in sys.stdin.buffer:
            if line.strip():
                reply = runner.run(_reply(line, toolbox, version))
                if reply.body is not None:
                    sys.stdout.buffer.write(orjson.dumps(reply.body, option=orjson.OPT_APPEND_NEWLINE))
                    sys.stdout.buffer.flush()


async def _reply(line: bytes, toolbox: Toolbox, version: str) -> Reply:
    try:
        message = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        return error_reply(PARSE_ERROR, f"This line is not JSON: {error}.")
    return await reply_to(message, toolbox, version)
