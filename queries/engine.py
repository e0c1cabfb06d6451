"""The engines that compute the reports in the catalog: DuckDB on this machine (Warehouse), optionally with a cluster
(Cluster).
"""

from typing import TYPE_CHECKING, TypeAlias, Union

from data import BadInput, Lake
from queries.cluster_options import ClusterOptions
from queries.traffic_values import TrafficValue
from queries.warehouse import Warehouse

if TYPE_CHECKING:
    from queries.cluster import Cluster

Engine: TypeAlias = Union[Warehouse, "Cluster"]
"""Computes the reports in the catalog from one lake, for any organization. Safe to use from several threads."""


def open_cluster(
    lake: Lake, warehouse: Warehouse, options: ClusterOptions, values: list[TrafficValue] | None = None
) -> "Cluster":
    """Return a cluster that leaves smaller queries to the warehouse, and that closes the warehouse when it is closed
    itself.

    `values` are the values of visits, the same as the warehouse has. The cluster does not connect yet. Raises BadInput
    if the extra `cluster`, or the extra `publish` if the target needs it, is not installed.
    """
    try:
        from queries.cluster import Cluster  # noqa: PLC0415  # only the extra installs what it needs
    except ImportError as error:
        raise BadInput(
            "a cluster needs the packages of the extra `cluster`: in a clone, run `uv sync --extra cluster`; for an "
            "installed program, `pip install --require-hashes -r traffic-requirements-cluster.txt`."
        ) from error
    return Cluster(lake, warehouse, options, values)
