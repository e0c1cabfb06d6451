"""The program in this process, as a command line calls it."""

import os

import pytest

from tests.service.commands.runs import called


@pytest.fixture
def traffic(request, monkeypatch):
    """Runs `traffic` with some arguments over the lake of a test, or that of its file, and with no other settings.

    Its questions stay without an answer.
    """
    for name in [name for name in os.environ if name.startswith("TRAFFIC_")]:
        monkeypatch.delenv(name)
    for name in ("shared_lake", "lake"):
        if name in request.fixturenames:
            monkeypatch.setenv("TRAFFIC_LAKE", str(request.getfixturevalue(name).root))
    return called
