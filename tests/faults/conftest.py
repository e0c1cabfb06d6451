"""The proofs of the lake: what the program promises when it is killed, when disks fail, when everybody is at work.

All tests together try a sample. `TRAFFIC_FAULTS=10 uv run pytest tests/faults` tries ten times as much,
`TRAFFIC_FAULTS=all uv run pytest tests/faults` every system call, and works for an hour or two. Figures come last.
"""

import sys
from contextlib import closing

import pytest

from data import Lake
from queries import RollupBuilder, Warehouse
from tests.faults.tracing import Program, why_not
from tests.support.visits import land, visit

if sys.platform != "linux":
    collect_ignore_glob = ["test_*.py"]


@pytest.fixture(scope="session")
def program(relations, tmp_path_factory):
    """Runs functions of workers.py in processes of their own, whose engines copy the relations."""
    folder = tmp_path_factory.mktemp("told")
    with closing((lake := Lake(folder / "lake", create=True)).manifest):  # defines what they copy, of both kinds
        land(lake, "acme", [visit()])
        RollupBuilder(lake).run()
        Warehouse(lake).close()
    program = Program(folder, relations)
    yield program
    program.close()


@pytest.fixture(scope="session")
def traceable(pytestconfig):
    """Skips a test where system calls cannot be traced, and says so whatever else is shown."""
    if why_not():
        with pytestconfig.pluginmanager.getplugin("capturemanager").global_and_fixture_disabled():
            sys.stderr.write(f"\nproofs of tests/faults are skipped: {why_not()}\n")
        pytest.skip(why_not())
