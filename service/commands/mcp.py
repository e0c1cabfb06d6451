"""`traffic mcp`: the reports of one organization as tools of an assistant, over stdin and stdout."""

from service.commands.filters import open_lake
from service.commands.options import DEFAULT_LAKE, LakeOption, OrganizationOption


def mcp(organization: OrganizationOption, lake: LakeOption = DEFAULT_LAKE) -> None:
    """Serve the reports as tools of the Model Context Protocol, over stdin and stdout, for one assistant.

    It only reads. An assistant starts it by itself; add this line to its list of servers.

    Example: traffic mcp --org acme --lake /srv/traffic
    """
    from importlib.metadata import version

    from service.mcp.sources import lake_sources
    from service.mcp.stdio import serve
    from service.mcp.tools import Toolbox

    opened = open_lake(lake, organization)
    serve(Toolbox(lake_sources(opened, organization)), version("traffic-analytics"))
