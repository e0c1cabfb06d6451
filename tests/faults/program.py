"""Processes of the program that need not load it first: forked, when asked, from one that has loaded it.

Asked for with lines of JSON on stdin, each answered with one on stdout. A forked process runs a function of
workers.py with some words, in a folder of its own, and is held back until it is released.
"""

import atexit
import ctypes
import gc
import json
import os
import sys
from pathlib import Path

import pytest

from tests.faults import chaos, workers
from tests.support.relations import define_once

PR_SET_PTRACER, ANY_PROCESS = 0x59616D61, -1


class Forks:
    """The processes that were started."""

    def __init__(self):
        self._gates = {}  # of those that are held back

    def start(self, function, words, folder, told):
        """Fork a process that works in a folder and writes into a file what it has to say; its id."""
        behind, gate = os.pipe()
        child = os.fork()
        if not child:
            os.close(gate)
            _become(folder, told)
            os.read(behind, 1)
            os.close(behind)
            function_of(function)(*words)
            sys.exit()
        os.close(behind)
        self._gates[child] = gate
        return child

    def release(self, child):
        """Let a process begin."""
        os.close(self._gates.pop(child))

    def runs(self, child):
        """Whether a process has not ended. Until it is waited for, nobody else gets its id."""
        return os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None

    def wait(self, child):
        """How a process ended: its exit code, or a signal's number below zero."""
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def function_of(name):
    return getattr(workers, name, None) or getattr(chaos, name)


def _become(folder, told):
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    for stream in (1, 2):
        os.dup2(os.open(told, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), stream)
    ctypes.CDLL(None).prctl(PR_SET_PTRACER, ctypes.c_ulong(ANY_PROCESS), 0, 0, 0)
    os.chdir(folder)
    os.environ["TMPDIR"] = folder
    sys.dont_write_bytecode = True  # the first run of a test makes the same system calls as the next


def answer_requests():
    gc.collect()
    gc.freeze()  # what is loaded stays: no process that is forked looks at it again, not even at its end,
    atexit.register(os.dup2, os.open(os.devnull, os.O_WRONLY), 2)  # at which libraries complain of what stays
    forks = Forks()
    for line in sys.stdin:
        name, *words = json.loads(line)
        sys.stdout.write(json.dumps(getattr(forks, name)(*words)) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    for folder in sys.argv[1:]:
        define_once(pytest.MonkeyPatch(), Path(folder))
    answer_requests()
