"""The cluster of the settings: which one answers what (TRAFFIC_ENGINE and what goes with it)."""

from queries import ClusterOptions
from service.settings import Settings


def cluster_options(settings: Settings) -> ClusterOptions | None:
    """Which cluster the settings name; None if they name none."""
    if not settings.engine:
        return None
    lake = settings.engine_lake or settings.publish
    is_published = bool(lake) and lake == settings.publish
    return ClusterOptions(settings.engine, settings.engine_from, settings.engine_timeout, lake, is_published)
