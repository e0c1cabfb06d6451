"""`traffic mcp`: the reports of one organization as tools of an assistant, over stdin and stdout."""

from service.commands.options import DEFAULT_LAKE, LakeOption, OrganizationOption, open_lake


def mcp(organization: OrganizationOption, lake: LakeOption = DEFAULT_LAKE) -> None:
    """Serve the reports as tools of the Model Context Protocol, over stdin and stdout, for one assistant.

    It only reads. An assistant starts it by itself; add this line to its list of servers.

    Example: traffic mcp --org acme --lake /srv/traffic
    """
    import asyncio
    import sys
    from importlib.metadata import version

    import orjson

    from service.mcp.protocol import PARSE_ERROR, error_reply, reply_to
    from service.mcp.sources import lake_sources
    from service.mcp.tools import Toolbox

    toolbox, program = Toolbox(lake_sources(open_lake(lake, organization), organization)), version("traffic-analytics")
    with asyncio.Runner() as runner:
        for line in filter(bytes.strip, sys.stdin.buffer):  # a message a line, answered one after another
            try:
                reply = runner.run(reply_to(orjson.loads(line), toolbox, program))
            except orjson.JSONDecodeError as error:
                reply = error_reply(PARSE_ERROR, f"This line is not JSON: {error}.")
            if reply.body is not None:
                sys.stdout.buffer.write(orjson.dumps(reply.body, option=orjson.OPT_APPEND_NEWLINE))
                sys.stdout.buffer.flush()
