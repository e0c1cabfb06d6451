"""What a run of the program leaves to look at."""

import json
import re
from typing import Any, NamedTuple


class Run(NamedTuple):
    """How a run of the program ended, and what it wrote."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        assert self.code == 0, self.err
        return json.loads(self.out)


def refused(run: Run) -> str:
    """The one line of a run that ended as one with a bad argument must."""
    assert (run.code, run.out) == (2, ""), run
    (line,) = run.err.splitlines()
    assert re.fullmatch(r"traffic: .{10,}", line)
    return line
