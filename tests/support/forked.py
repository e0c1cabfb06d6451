"""The process from which tests.support.forks forks `traffic`.

It has loaded the program and started no thread. It receives requests on a socket, and ends when the socket is closed.
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
    """Load the rules, and everything else that all processes share."""
    for module in ("data.ingest.importer", "data.tasks.reclassification"):  # commands import them when they run
        importlib.import_module(module)
    shared_classifier(SHIPPED)
    gc.collect()
    gc.freeze()  # loaded objects stay: forked processes do not collect them, not even at exit,
    atexit.register(os.dup2, os.open(os.devnull, os.O_WRONLY), 2)  # when libraries complain about leftovers


def answer(asked):
    """Answer requests until the socket is closed, then kill the forked processes and return None; in each forked
    process, return its request."""
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
