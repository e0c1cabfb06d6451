"""Tests that the lake keeps the program's promises: after kills, on failing disks, and under concurrent work.

By default, the tests try a sample. `TRAFFIC_FAULTS=10 uv run pytest tests/faults` tries ten times as much;
`TRAFFIC_FAULTS=all uv run pytest tests/faults` tries every system call, and takes an hour or two. The figures are
printed at the end.
"""

import sys
from pathlib import Path

import pytest

from tests.faults.tracing import Program, why_not
from tests.faults.trials import IS_LONG

if sys.platform != "linux":
    collect_ignore_glob = ["test_*.py"]


def pytest_collection_modifyitems(items):
    """Lift the time limit if every system call is tried, as one command can take longer than any other test may."""
    for item in items if IS_LONG else []:
        if item.path.is_relative_to(Path(__file__).parent):
            item.add_marker(pytest.mark.timeout(0))


@pytest.fixture(scope="session")
def program(forks, tmp_path_factory):
    """A program that runs functions from workers.py in separate processes."""
    return Program(tmp_path_factory.mktemp("told"), forks)


@pytest.fixture(scope="session")
def traceable(pytestconfig):
    """Skip a test if system calls cannot be traced, and report that even while output is captured."""
    if why_not():
        with pytestconfig.pluginmanager.getplugin("capturemanager").global_and_fixture_disabled():
            sys.stderr.write(f"\nproofs of tests/faults are skipped: {why_not()}\n")
        pytest.skip(why_not())
