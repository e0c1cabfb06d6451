"""Programs without a cluster: the extra `cluster` is not installed, or no cluster is configured."""

import subprocess
import sys
from contextlib import closing

import pytest

from data import BadInput
from queries import ClusterOptions, Warehouse, open_cluster


def test_a_missing_extra_is_reported_with_the_install_command(lake, monkeypatch):
    monkeypatch.setitem(sys.modules, "grpc", None)  # parts of pyspark may have been imported
    for module in ("queries.cluster", "queries.connect"):
        monkeypatch.delitem(sys.modules, module, raising=False)
    with (
        closing(Warehouse(lake)) as warehouse,
        pytest.raises(BadInput, match=r"-r traffic-requirements-cluster\.txt`"),
    ):
        open_cluster(lake, warehouse, ClusterOptions("sc://127.0.0.1:15002", from_visits=0))


def test_a_server_without_a_cluster_imports_no_cluster_packages():
    program = "import sys, service.app.application; print(*{'grpc', 'pyspark', 'pandas'} & set(sys.modules))"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert run.stdout == "\n"
