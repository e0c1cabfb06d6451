"""The program in this process, as a command line calls it."""

import io
import os
import sys

import pytest

from service.commands import main
from tests.service.commands.runs import Run


@pytest.fixture
def traffic(monkeypatch, capsys):
    """Runs `traffic` with some arguments, without the caller's settings; there is nobody to answer its questions."""
    for name in [name for name in os.environ if name.startswith("TRAFFIC_")]:
        monkeypatch.delenv(name)
    monkeypatch.setattr(sys, "stdin", io.StringIO())

    def traffic(*arguments):
        monkeypatch.setattr(sys, "argv", ["traffic", *map(str, arguments)])
        capsys.readouterr()
        with pytest.raises(SystemExit) as end:
            main()
        return Run(end.value.code, *capsys.readouterr())

    return traffic
