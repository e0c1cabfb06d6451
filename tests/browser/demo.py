"""A running `traffic demo`."""

import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

from tests.support.forks import PROGRAM


@contextmanager
def demo(*options: str) -> Iterator[str]:
    """Run `traffic demo` on a free port, and yield the sign-in link that it prints."""
    command = [PROGRAM, "demo", "--port", "0", *options]
    with subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True) as process:
        try:
            messages = iter(process.stderr.readline, "")  # type: ignore[union-attr]  # it is a pipe
            yield next(found[1] for line in messages if (found := re.search(r"Dashboard: (\S+)", line)))
        finally:
            process.terminate()
