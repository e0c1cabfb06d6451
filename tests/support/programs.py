"""Runs other projects' programs on free ports of this machine, and adapts their files to other paths and ports."""

import re
import socket
import subprocess
import time
from contextlib import contextmanager
from pathlib import Path

DEPLOY = Path(__file__).parents[2] / "service/deploy"


def checked(*command, **how):
    """Run a program, which must succeed; return its output on stdout and stderr."""
    done = subprocess.run(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False, **how)
    assert done.returncode == 0, done.stdout
    return done.stdout


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as free:
        return free.getsockname()[1]


def moved(text, places):
    """Return text with other names for paths, hosts and ports: each whole word in `places` is replaced by its value."""
    words = "|".join(re.escape(word) for word in sorted(places, key=len, reverse=True))
    return re.sub(rf"(?<![\w/.])({words})(?![\w])", lambda found: str(places[found[1]]), text)


@contextmanager
def running(command, is_ready, output, **how):
    """Run a process while in this context, which begins when the process is ready. Its output goes to a file."""
    with output.open("ab") as file, subprocess.Popen(command, stdout=file, stderr=file, **how) as process:
        try:
            wait_until(is_ready, process, output)
            yield process
        finally:
            process.terminate()


def wait_until(is_ready, process, output):
    """Wait until a running process makes a condition true. Fail if the process ends first, or after a minute."""
    for _ in range(6_000):
        if is_ready():
            return
        assert process.poll() is None, output.read_text()
        time.sleep(0.01)
    raise AssertionError(output.read_text())


def accepts(port):
    """Return whether a program listens on a port of the loopback interface."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
