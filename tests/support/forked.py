"""The process that tests.support.forks has fork `traffic`.

It has loaded the program, and started no thread. It is asked on a socket, and ends when that is closed.
"""

import atexit
import gc
import importlib
import json
import os
import signal
import socket
import sys

import service.app.application
import service.commands
import service.program
import service.server.run
from data.rules.classifier import shared_classifier
from data.rules.lake_tables import SHIPPED
from tests.support.sockets import read_until


def load():
    """Load the rules, and all else that is the same for every process."""
    for module in ("data.ingest.importer", "data.tasks.reclassification"):  # commands import them when they run
        importlib.import_module(module)
    shared_classifier(SHIPPED)
    gc.collect()
    gc.freeze()  # what is loaded stays: no process that is forked looks at it again, not even at its end,
    atexit.register(os.dup2, os.open(os.devnull, os.O_WRONLY), 2)  # at which libraries complain of what stays


def answer(asked):
    """Answer until the questions end; return in each forked process, with what it was forked for."""
    running = set()
    while True:
        message, descriptors, _, _ = socket.recv_fds(asked, 1 << 16, 2)
        if not message:
            break
        message = read_until(asked, lambda read: read.endswith(b"\n"), message)
        question = json.loads(message)
        if "ended" in question:
            pid, status = os.waitpid(question["ended"], os.WNOHANG)
            running.discard(pid)
            told = os.waitstatus_to_exitcode(status) if pid else None
        elif "import" in question:
            importlib.import_module(question["import"])
            gc.freeze()
            told = None
        elif told := os.fork():
            running.add(told)
        else:
            for stream, descriptor in enumerate(descriptors, 1):
                os.dup2(descriptor, stream)
        for descriptor in descriptors:
            os.close(descriptor)
        if told == 0 and "words" in question:
            return question
        asked.send(json.dumps(told).encode())
    for pid in running:
        os.kill(pid, signal.SIGKILL)
    return None


if __name__ == "__main__":
    load()
    with socket.socket(fileno=int(sys.argv[1])) as asking:
        asked = answer(asking)
    if asked:
        os.environ.clear()
        os.environ.update(asked["environ"])
        exec(asked["before"], {})
        sys.argv = ["traffic", *asked["words"]]
        service.program.main()
