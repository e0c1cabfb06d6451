"""What answers the entries of the catalog: this machine's DuckDB alone (Warehouse), or a cluster as well (Cluster)."""

import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from data import BadInput, Lake
from data.store.epochs import OrganizationState
from queries.catalog import Entry
from queries.cluster_options import ClusterOptions
from queries.scope import Scope
from queries.traffic_values import TrafficValue
from queries.variables import Variables
from queries.warehouse import Result, Tables, Warehouse

if TYPE_CHECKING:
    from queries.cluster import Cluster


class Engine(Protocol):
    """Answers entries over one lake, for every organization. Safe to use from several threads."""

    def variables(self, scope: Scope) -> Variables:
        """A snapshot of the lake for a scope. Answers computed from one snapshot are consistent with each other."""

    def with_shared_visits(
        self, variables: Variables, entries: Sequence[Entry], cancelled: threading.Event | None = None
    ) -> Variables:
        """The snapshot with what these answers count read once. Cancelled, and raises, as `answer`."""

    def state(self, organization: str) -> OrganizationState:
        """The zone of an organization, and its epoch, which outdates earlier answers when it rises."""

    def answer(self, entry: Entry, variables: Variables, cancelled: threading.Event | None = None) -> Result:
        """The answer of one entry. Raises QueryTimeout, QueryFailed, FilesGone, EngineLost or ClusterUnavailable.

        To cancel it from another thread, pass the event `cancelled` and call `stop` with it.
        """

    def tables(self, entry: Entry, variables: Variables) -> Tables:
        """The same answer as an Arrow table, or as a dict of them. Raises what `answer` raises."""

    def stop(self, cancelled: threading.Event) -> None:
        """Cancel the queries of the `answer` call that got this event."""

    def probe(self) -> None:
        """Check that this machine can answer. Raises what `answer` raises."""

    def close(self) -> None:
        """Close the engine."""


def open_cluster(
    lake: Lake, warehouse: Warehouse, options: ClusterOptions, values: list[TrafficValue] | None = None
) -> "Cluster":
    """A cluster over the warehouse, which is closed with it. `values` are those of the warehouse.

    Connects to nothing yet. Raises BadInput if the extra `cluster` is not installed.
    """
    try:
        from queries.cluster import Cluster  # noqa: PLC0415  # only the extra installs what it needs
    except ImportError as error:
        raise BadInput(
            "a cluster needs packages of the extra `cluster`: run `pip install 'traffic-analytics[cluster]'`, or "
            "`uv sync --extra cluster`."
        ) from error
    return Cluster(lake, warehouse, options, values)
