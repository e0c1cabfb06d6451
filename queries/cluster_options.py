"""The options for a cluster, and the errors that a cluster raises. Does not need the extra `cluster`."""

from dataclasses import dataclass, field
from typing import Final

from data import TrafficError
from queries.locked_engine import QueryTimeout

CLUSTER_TIMEOUT_SECONDS: Final = 120.0
"""The default time limit for a query: longer than on this machine, since a cluster gets the largest queries."""


@dataclass(frozen=True)
class ClusterOptions:
    """The address of a cluster, the queries that it answers, their time limit, and where it finds the lake."""

    address: str = field(repr=False)  # such as sc://host:15002; its parameters may contain a token
    from_visits: int  # the cluster answers queries that would read at least this many visits on this machine
    seconds: float = CLUSTER_TIMEOUT_SECONDS  # the time limit of each query
    folder: str = ""  # the lake folder on the workers; empty: the same as on this machine
    is_published: bool = False  # whether `folder` is the target where the lake is published

    @property
    def shown_address(self) -> str:
        """The address without its parameters."""
        return self.address.partition("/;")[0]


class ClusterTimeout(QueryTimeout):
    """A query exceeded the cluster's time limit."""


class ClusterUnavailable(TrafficError):
    """The cluster or the published lake cannot be used, for example because the cluster does not respond, its session
    was lost, or too many rows are not published yet. A retry may work.
    """
