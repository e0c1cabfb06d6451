"""`traffic mcp`: serves one organization's reports as tools for an assistant, over stdin and stdout."""

from service.core.commands.options import DEFAULT_LAKE, CommandRow, LakeOption, OrganizationOption, open_lake


def mcp(organization: OrganizationOption, lake: LakeOption = DEFAULT_LAKE) -> None:
    """Serve the reports to one assistant as tools of the Model Context Protocol, over stdin and stdout.

    The command never changes the lake. Assistants start it themselves: add it to their list of servers.

    Example: traffic mcp --org acme --lake /srv/traffic
    """
    import asyncio
    import sqlite3
    import sys
    from contextlib import ExitStack, closing
    from importlib.metadata import version

    import orjson

    from service.mcp.protocol import INTERNAL_ERROR, PARSE_ERROR, error_reply, reply_to
    from service.mcp.sources import lake_sources
    from service.mcp.tools import Toolbox

    program = version("traffic-analytics")
    with ExitStack() as opened, asyncio.Runner() as runner:
        read = open_lake(lake, organization)
        opened.enter_context(closing(read.manifest))
        toolbox = Toolbox(lake_sources(read, organization, opened))
        for line in filter(bytes.strip, sys.stdin.buffer):  # one message per line, answered in order
            message = None
            try:
                message = orjson.loads(line)
                reply = runner.run(reply_to(message, toolbox, program))
            except orjson.JSONDecodeError as error:
                reply = error_reply(PARSE_ERROR, f"This line is not JSON: {error}.")
            except (sqlite3.Error, OSError) as error:  # a full or failing disk: the next message may be answered
                asked = message.get("id") if isinstance(message, dict) else None
                reply = error_reply(INTERNAL_ERROR, f"The lake cannot be used: {error}.", asked)
            if reply.body is not None:
                sys.stdout.buffer.write(orjson.dumps(reply.body, option=orjson.OPT_APPEND_NEWLINE))
                sys.stdout.buffer.flush()


COMMANDS = {"mcp": CommandRow(mcp)}
