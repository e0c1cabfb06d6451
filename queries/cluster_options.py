"""Which cluster answers what, and the errors of one that does not. Needs nothing of the extra `cluster`."""

from dataclasses import dataclass, field
from typing import Final

from data import TrafficError
from queries.locked_engine import QueryTimeout

CLUSTER_TIMEOUT_SECONDS: Final = 120.0
"""The default limit of an answer: longer than here, since a cluster is for what is too much for one machine."""


@dataclass(frozen=True)
class ClusterOptions:
    """Which cluster answers what."""

    address: str = field(repr=False)  # as sc://host:15002; its parameters may hold a token
    from_visits: int  # the cluster gives answers that would read this many visits or more on this machine
    seconds: float = CLUSTER_TIMEOUT_SECONDS  # the time limit of each answer
    folder: str = ""  # the lake's folder as the workers see it; empty: as this machine sees it
    is_published: bool = False  # whether `folder` is the target where the lake is published

    @property
    def shown_address(self) -> str:
        """The address without its parameters."""
        return self.address.partition("/;")[0]


class ClusterTimeout(QueryTimeout):
    """A query exceeded the time limit of the cluster."""


class ClusterUnavailable(TrafficError):
    """The cluster cannot be reached, does not respond, or was lost while it answered. A retry may work."""
