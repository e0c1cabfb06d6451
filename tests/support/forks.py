"""Runs `traffic` in separate processes, forked from a process (forked.py) that has already loaded it: loading takes
most of a second.
"""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

ROOT = Path(__file__).parents[2]
PROGRAM = Path(sys.executable).parent / "traffic"
"""The installed program."""
PAUSE_SECONDS = 0.002


def without_settings():
    """Return the environment of this process, without the program's settings."""
    return {name: value for name, value in os.environ.items() if not name.startswith("TRAFFIC_")}


class Forked:
    """A `traffic` process, with the part of subprocess.Popen's interface that tests use."""

    def __init__(self, forks, pid, stderr=None):
        self.pid, self.stderr, self.returncode = pid, stderr, None
        self._forks = forks

    def poll(self):
        if self.returncode is None:
            self.returncode = self._forks.ask({"ended": self.pid})
        return self.returncode

    def wait(self, timeout=60):
        deadline = time.monotonic() + timeout
        while self.poll() is None:
            if time.monotonic() > deadline:
                raise subprocess.TimeoutExpired("traffic", timeout)
            time.sleep(PAUSE_SECONDS)
        return self.returncode

    def send_signal(self, number):
        if self.poll() is None:  # until its exit is read, no other process gets its id
            os.kill(self.pid, number)

    def terminate(self):
        self.send_signal(signal.SIGTERM)

    def kill(self):
        self.send_signal(signal.SIGKILL)

    def communicate(self, timeout=60):
        """Wait until the process ends; return None and the rest of its stderr."""
        self.wait(timeout)
        with self.stderr:
            return None, self.stderr.read()


class Forks:
    """Starts `traffic`."""

    def __init__(self):
        self._socket, asked = socket.socketpair()
        self._lock = threading.Lock()
        command = [sys.executable, "-m", "tests.support.forked", str(asked.fileno())]
        with asked:
            self._process = subprocess.Popen(
                command, cwd=ROOT, env=without_settings(), stdin=subprocess.DEVNULL, pass_fds=[asked.fileno()]
            )

    def ask(self, question, *descriptors):
        with self._lock:
            socket.send_fds(self._socket, [json.dumps(question, default=str).encode() + b"\n"], descriptors)
            return json.loads(self._socket.recv(100))

    def start(self, *words, before="", settings=None, out=1, err=None):
        """Start a command with these words and settings (environment variables); its process runs the code in `before`
        first.

        By default, its stdout is this process's, and its stderr is a pipe.
        """
        question = {"words": words, "before": before, "environ": without_settings() | (settings or {})}
        if err is not None:
            return Forked(self, self.ask(question, out, err))
        read, write = os.pipe()
        forked = Forked(self, self.ask(question, out, write), os.fdopen(read, encoding="utf-8"))
        os.close(write)
        return forked

    def close(self):
        """End the forking process, together with all processes that are still running."""
        self._socket.close()
        self._process.wait(60)
