"""Runs the program in this process as a command line would, and returns the result of each run."""

import io
import json
import os
import re
import sys
from typing import Any, NamedTuple

import pytest

from service.commands import main


class Run(NamedTuple):
    """The exit code and the output of a run of the program."""

    code: int
    out: str
    err: str

    @property
    def body(self) -> bytes:
        """Its output on stdout, byte for byte."""
        return self.out.encode("utf-8", "surrogateescape")

    @property
    def json(self) -> Any:
        assert self.code == 0, self.err
        return json.loads(self.out)

    @property
    def answers(self) -> list[Any]:
        """The parsed JSON of each line."""
        return [json.loads(line) for line in self.body.splitlines()]


def called(*arguments: object, stdin: bytes = b"") -> Run:
    """Run `traffic` with these arguments and this process's settings, in this process: a new process takes a second."""
    streams = [io.TextIOWrapper(io.BytesIO(content), "utf-8", newline="") for content in (stdin, b"", b"")]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["traffic", *map(str, arguments)])
        for name, stream in zip(("stdin", "stdout", "stderr"), streams, strict=True):
            patch.setattr(sys, name, stream)
        with pytest.raises(SystemExit) as end:
            main()
    for stream in streams[1:]:
        stream.flush()
    out, err = (stream.buffer.getvalue() for stream in streams[1:])
    return Run(end.value.code, out.decode("utf-8", "surrogateescape"), err.decode())


def run(*arguments: object, stdin: bytes = b"") -> Run:
    """Run `traffic` in this process with these arguments, but without this process's settings."""
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith("TRAFFIC_")]:
            patch.delenv(name)
        return called(*arguments, stdin=stdin)


def refused(run: Run) -> str:
    """Return the only error line of a run that was rejected because of bad input, besides the line in which an import
    names its lake.
    """
    assert (run.code, run.out) == (2, ""), run
    (line,) = [line for line in run.err.splitlines() if not line.startswith("Lake: ")]
    assert re.fullmatch(r"traffic: .{10,}\S", line)
    return line
