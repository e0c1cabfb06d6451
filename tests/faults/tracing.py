"""The program under strace: which system calls it makes, and what becomes of it when one of them kills it or fails."""

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
"""What this program changes a disk with. Of openat only those count that may make a file."""
_LINE = re.compile(r"(\d+) +(\w+)\((.*)")
_ENDED = re.compile(r"(\d+) +<\.\.\. \w+ resumed>(.*)")
_PATH = re.compile(r'<(/[^>]*)>|"(/?[^"]*)"')


class Call(NamedTuple):
    """One system call of a trace."""

    process: int
    name: str
    number: int  # among those of this name and process, from 1, as strace's `when=` counts them
    text: str  # arguments and result

    @property
    def paths(self):
        """The files and folders it names."""
        return [inside or quoted for inside, quoted in _PATH.findall(self.text)]

    @property
    def kind(self):
        """Calls of one kind do the same to the same sort of file."""
        return self.name, *(re.sub(r"[0-9a-f]{8}-[0-9a-f-]+|\d+", "0", path) for path in self.paths[:1])


class Run(NamedTuple):
    """How a process ended, what it had to say, and the calls that were traced."""

    code: int
    told: str
    calls: list[Call]


class Child(NamedTuple):
    """A process that a Program started."""

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
    """Runs functions of workers.py in forked processes, each in a folder of its own. What they say is kept in another.

    Their engines copy the relations, of both kinds, that an engine of this process has defined.
    """

    def __init__(self, folder, forks):
        self._folder, self._forks, self._started = folder, forks, 0
        with opened(folder / "lake", create=True) as lake:
            land(lake, "acme", [visit()])
            RollupBuilder(lake).run()
            Warehouse(lake).close()
        forks.ask({"import": "tests.faults.workers"})

    def start(self, folder, function, *words, held=False):
        """Start a function with some words in a folder."""
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
        """Run a function with some words under strace."""
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
        """Run a function with some words until it has made a call, and stop it there; SIGCONT lets it go on."""
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
    """strace, looking at a process that waits meanwhile, and at every thread it makes."""

    def __init__(self, process, trace, *expressions):
        command = ["strace", "-f", "-o", trace, "-p", str(process), *expressions]
        self._strace = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        self.told = self._strace.stderr.readline()
        self.is_attached = "attached" in self.told

    def wait(self):
        """Look on until the process has ended."""
        self._strace.communicate()

    def detach(self):
        """Look away; the process goes on."""
        self._strace.terminate()
        self._strace.communicate()


@contextmanager
def traced(server, trace, *expressions):
    """strace, looking at a server as long as a with block lasts."""
    tracer = Tracer(server.child.process, trace, *expressions)
    assert tracer.is_attached, tracer.told
    try:
        yield tracer
    finally:
        tracer.detach()


def calls_of(text):
    """Every call of a trace that may change a disk: in the order in which they began, but syncs as they ended."""
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
    """Why system calls cannot be traced here; '' where they can."""
    if not shutil.which("strace"):
        return "strace is missing: apt-get install strace (Debian package strace)"
    with subprocess.Popen(["sleep", "60"]) as process:
        tracer = Tracer(process.pid, os.devnull, "-e", "trace=none")
        process.kill()
        tracer.wait()
    return "" if tracer.is_attached else f"strace (Debian package strace) may not trace here: {tracer.told}"
