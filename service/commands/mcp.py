"""`traffic mcp`: the reports of one organization as tools of an assistant, over stdin and stdout."""

from data import BadInput
from service.commands.filters import open_lake
from service.commands.options import DEFAULT_LAKE, LakeOption, OrganizationOption


def mcp(organization: OrganizationOption, lake: LakeOption = DEFAULT_LAKE) -> None:
    """Serve the reports as tools of the Model Context Protocol, over stdin and stdout, for one assistant.

    It only reads. An assistant starts it by itself; add this line to its list of servers.

    Example: uvx --from "traffic-analytics[mcp]" traffic mcp --org acme --lake /srv/traffic
    """
    opened = open_lake(lake, organization)
    try:
        from service.mcp.stdio import serve
    except ImportError as error:
        raise BadInput(
            "`traffic mcp` needs the package mcp: install traffic-analytics with its extra 'mcp'."
        ) from error
    from importlib.metadata import version

    from service.mcp.sources import lake_sources
    from service.mcp.tools import Toolbox

    serve(Toolbox(lake_sources(opened, organization)), version("traffic-analytics"))
