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
    """Return a cluster that delegates smaller queries to the warehouse. Closing the cluster also closes the warehouse.

    `values` are the values of visits, and must equal the warehouse's. The cluster does not connect yet. Raises BadInput
    if the extra `cluster` is not installed, or the extra `publish` if the cluster reads a published lake that needs it.
    """
    try:
        from queries.cluster import Cluster  # noqa: PLC0415  # its dependencies come with the extra
    except ImportError as error:
        raise BadInput(
            "a cluster needs the packages of the extra `cluster`: in a clone, run `uv sync --extra cluster`; for an "
            "installed program, `pip install --require-hashes -r traffic-requirements-cluster.txt`."
        ) from error
    return Cluster(lake, warehouse, options, values)
