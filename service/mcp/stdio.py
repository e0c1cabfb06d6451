"""Serves the tools over stdin and stdout with the official SDK, the extra `mcp`. The HTTP server does not import it."""

import asyncio

from mcp import types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

from service.mcp.tools import INSTRUCTIONS, Toolbox, ToolFailed


def serve(toolbox: Toolbox, version: str) -> None:
    """Answer one client until it closes stdin."""
    asyncio.run(_serve(toolbox, version))


async def _serve(toolbox: Toolbox, version: str) -> None:
    async def list_tools(_: object, __: object) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[types.Tool.model_validate(one) for one in toolbox.definitions])

    async def call_tool(_: object, params: types.CallToolRequestParams) -> types.CallToolResult:
        try:
            text, failed = await toolbox.call(params.name, params.arguments or {}), False
        except KeyError:
            text, failed = f"There is no tool {params.name!r}.", True
        except ToolFailed as error:
            text, failed = str(error), True
        return types.CallToolResult(content=[types.TextContent(type="text", text=text)], is_error=failed)

    server = Server(
        "traffic-analytics",
        version=version,
        instructions=INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )
    async with stdio_server() as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())
