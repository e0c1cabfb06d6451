"""Which cluster answers what, and the error of one that does not. Needs nothing of the extra `cluster`."""

from dataclasses import dataclass, field

from data import TrafficError
from queries.locked_engine import QUERY_TIMEOUT_SECONDS


@dataclass(frozen=True)
class ClusterOptions:
    """Which cluster answers what."""

    address: str = field(repr=False)
    """As sc://host:15002; its parameters may hold a token."""
    from_visits: int
    """The cluster answers what would have to read as many visits on this machine, or more."""
    seconds: float = QUERY_TIMEOUT_SECONDS
    """The limit of each answer."""
    folder: str = ""
    """The lake's folder as the workers see it; empty: as this machine sees it."""


class ClusterUnavailable(TrafficError):
    """The cluster cannot be reached, does not respond, or was lost while it answered. A retry may work."""
