"""The cluster of the settings: which one answers what (TRAFFIC_ENGINE and what goes with it)."""

from queries import ClusterOptions
from service.settings import Settings


def cluster_options(settings: Settings) -> ClusterOptions | None:
    """Which cluster the settings name; None if they name none."""
    if not settings.engine:
        return None
    return ClusterOptions(settings.engine, settings.engine_from, settings.engine_timeout, settings.engine_lake)
