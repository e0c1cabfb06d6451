"""Runs the program under strace, which records its system calls and kills it or makes a call fail."""

import json
import os
import re
import shutil
import signal
import subprocess
import time
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import NamedTuple

from queries import RollupBuilder, Warehouse
from tests.support.forks import PAUSE_SECONDS, Forked
from tests.support.lakes import opened
from tests.support.visits import land, visit

CALLS = ("openat", "write", "pwrite64", "fsync", "fdatasync", "rename", "unlink", "mkdir", "ftruncate")
"""The system calls with which the program changes a disk; openat counts only if it may create a file."""
_LINE = re.compile(r"(\d+) +(\w+)\((.*)")
_ENDED = re.compile(r"(\d+) +<\.\.\. \w+ resumed>(.*)")
_PATH = re.compile(r'<(/[^>]*)>|"(/?[^"]*)"')


class Call(NamedTuple):
    """A system call in a trace."""

    process: int
    name: str
    number: int  # number among calls of this name and process, from 1, like strace's `when=`
    text: str  # arguments and result

    @property
    def paths(self):
        """The files and folders in its arguments."""
        return [inside or quoted for inside, quoted in _PATH.findall(self.text)]

    @property
    def kind(self):
        """The name, and the path of the first file without its ids and numbers: equal for calls of the same kind."""
        return self.name, *(re.sub(r"[0-9a-f]{8}-[0-9a-f-]+|\d+", "0", path) for path in self.paths[:1])


class Run(NamedTuple):
    """A process that has ended: its exit code, its output, and its traced calls."""

    code: int
    told: str
    calls: list[Call]


class Child(NamedTuple):
    """A process that Program has started."""

    forked: Forked
    told: Path
    gate: int

    @property
    def process(self):
        return self.forked.pid

    def release(self):
        os.close(self.gate)

    def runs(self):
        return self.forked.poll() is None

    def kill(self, number=signal.SIGKILL):
        self.forked.send_signal(number)

    def wait(self):
        return Run(self.forked.wait(600), self.told.read_text(errors="replace"), [])


class Program:
    """Runs functions from workers.py in forked processes, each in a given folder, and keeps their output in its own
    folder.

    The engines of these processes copy the relations that an engine in this process has defined.
    """

    def __init__(self, folder, forks):
        self._folder, self._forks, self._started = folder, forks, 0
        with opened(folder / "lake", create=True) as lake:
            land(lake, "acme", [visit()])
            RollupBuilder(lake).run()
            Warehouse(lake).close()
        forks.ask({"import": "tests.faults.workers"})

    def start(self, folder, function, *words, held=False):
        """Start a function with these arguments in a folder; while it is `held`, it waits for release()."""
        self._started += 1
        told = self._folder / f"told-{self._started}"
        begin = json.dumps([str(folder), function, words], default=str)
        before = f"import json; from tests.faults import workers; workers.begin(*json.loads({begin!r}))"
        behind, gate = os.pipe()
        with told.open("ab", buffering=0) as out:
            child = Child(self._forks.start(before=before, out=out.fileno(), err=behind), told, gate)
        os.close(behind)
        if not held:
            child.release()
        return child

    def run(self, folder, function, *words):
        return self.start(folder, function, *words).wait()

    def trace(self, folder, function, *words, calls=CALLS, options=("-y",)):
        """Run a function with these arguments under strace; return its result with its calls."""
        child = self.start(folder, function, *words, held=True)
        trace = child.told.with_suffix(".trace")
        tracer = Tracer(child.process, trace, "-e", f"trace={','.join(calls)}", *options)
        assert tracer.is_attached, tracer.told
        child.release()
        run = child.wait()
        tracer.wait()
        return run._replace(calls=list(calls_of(trace.read_text(errors="replace"))))

    @contextmanager
    def stopped(self, folder, call, function, *words):
        """Run a function with these arguments, and stop it at a call; SIGCONT continues it. It is killed after this
        context."""
        child = self.start(folder, function, *words, held=True)
        trace = child.told.with_suffix(".trace")
        inject = f"inject={call.name}:signal=STOP:when={call.number}"
        tracer = Tracer(child.process, trace, "-e", f"trace={call.name}", "-e", inject)
        assert tracer.is_attached, tracer.told
        child.release()
        try:
            while "stopped by SIGSTOP" not in trace.read_text(errors="replace"):
                assert child.runs(), child.told.read_text()
                time.sleep(PAUSE_SECONDS)
            yield child
        finally:
            child.kill()
            tracer.wait()


class Tracer:
    """strace, attached to a process and to every thread that the process starts."""

    def __init__(self, process, trace, *expressions):
        command = ["strace", "-f", "-o", trace, "-p", str(process), *expressions]
        self._strace = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        self.told = self._strace.stderr.readline()
        self.is_attached = "attached" in self.told

    def wait(self):
        """Wait until the process has ended."""
        self._strace.communicate()

    def detach(self):
        """Detach strace; the process continues."""
        self._strace.terminate()
        self._strace.communicate()


@contextmanager
def traced(server, trace, *expressions):
    """Trace a server with strace while in this context."""
    tracer = Tracer(server.child.process, trace, *expressions)
    assert tracer.is_attached, tracer.told
    try:
        yield tracer
    finally:
        tracer.detach()


def calls_of(text):
    """Yield the calls in a trace, except openat calls that cannot create a file, in the order in which they began.
    Syncs are placed where they ended."""
    numbers, begun = {}, {}
    for line in text.splitlines():
        found, ended = _LINE.match(line), _ENDED.match(line)
        if found:
            process, name, rest = int(found[1]), found[2], found[3]
            number = numbers[process, name] = numbers.get((process, name), 0) + 1
            call = Call(process, name, number, rest)
            if name in ("fsync", "fdatasync") and rest.endswith("<unfinished ...>"):
                begun[process] = call
            elif name != "openat" or "O_CREAT" in rest:
                yield call
        elif ended and int(ended[1]) in begun:
            call = begun.pop(int(ended[1]))
            yield call._replace(text=call.text + ended[2])


@cache
def why_not():
    """Return why system calls cannot be traced on this machine, or "" if they can."""
    if not shutil.which("strace"):
        return "strace is missing: apt-get install strace (Debian package strace)"
    with subprocess.Popen(["sleep", "60"]) as process:
        tracer = Tracer(process.pid, os.devnull, "-e", "trace=none")
        process.kill()
        tracer.wait()
    return "" if tracer.is_attached else f"strace (Debian package strace) may not trace here: {tracer.told}"
