"""The program in this process, as a command line calls it."""

import io
import sys

import pytest

from service.commands import main
from tests.service.commands.runs import Run


@pytest.fixture
def traffic(monkeypatch, capsys):
    """Runs `traffic` with some arguments; there is nobody to answer its questions."""
    monkeypatch.setattr(sys, "stdin", io.StringIO())

    def traffic(*arguments):
        monkeypatch.setattr(sys, "argv", ["traffic", *map(str, arguments)])
        capsys.readouterr()
        with pytest.raises(SystemExit) as end:
            main()
        return Run(end.value.code, *capsys.readouterr())

    return traffic
