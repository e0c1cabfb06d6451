"""The program in this process, as a command line calls it."""

import os

import pytest

from tests.service.commands.runs import called


@pytest.fixture
def traffic(monkeypatch):
    """Runs `traffic` with some arguments, with the settings of the test only; nobody answers its questions."""
    for name in [name for name in os.environ if name.startswith("TRAFFIC_")]:
        monkeypatch.delenv(name)
    return called
