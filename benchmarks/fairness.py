"""Measures fairness: response times without and with a busy or hostile neighbour, and messages while hooks hang."""

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from queue import SimpleQueue
from typing import Final

from benchmarks.attacks import attacks
from benchmarks.figures import Figure, figure
from benchmarks.neighbours import neighbours
from benchmarks.servers import server
from benchmarks.worlds import Setting
from data import Lake
from service.core.clock import to_text, utc_now
from service.core.control_database import ControlDatabase
from service.core.setting_values import parse_networks
from service.hooks.registry import MAX_HOOKS, Hooks
from service.jobs.manual import manual_job
from service.jobs.records import COMMAND_LINE
from service.jobs.states import APPROVE_FIX
from service.jobs.store import Jobs

HOSTILE: Final = 8
"""Number of hostile organizations, each with MAX_HOOKS jobs and as many hooks to a receiver that never responds."""
PAUSES: Final = (0, 2, 3, 3, 3, 3, 3, 3)
"""Seconds before each message of the ninth organization: in total more than the 15 seconds an attempt may take."""
UNDER_WAY: Final = 64
_LOOPBACK: Final = "127.0.0.0/8"


def fairness(setting: Setting) -> Iterator[Figure]:
    """Yield all figures of the case."""
    yield from neighbours(setting)
    yield from attacks(setting)
    yield from _messages(setting)


def _messages(setting: Setting) -> Iterator[Figure]:
    """Measure the time from the approval of a ninth organization's job to its message, while others' hooks hang."""
    lake = Lake(setting.scratch / "fairness", create=True)
    with (
        closing(lake.manifest),
        closing(ControlDatabase(lake)) as control,
        socket.create_server(("127.0.0.1", 0), backlog=1_000) as silent,
        socket.create_server(("127.0.0.1", 0)) as listening,
    ):
        hooks, jobs = Hooks(control, parse_networks(_LOOPBACK)), Jobs(control)
        for number in range(HOSTILE):
            for name in range(MAX_HOOKS):
                hooks.create(f"hostile{number}", f"hook {name}", _url(silent))
            for _ in range(MAX_HOOKS):
                _approve(jobs, f"hostile{number}")
        hooks.create("ninth", "hook", _url(listening))
        arrivals: SimpleQueue[float] = SimpleQueue()
        threading.Thread(target=_receive, args=(listening, arrivals), daemon=True).start()
        with server(lake.root, TRAFFIC_HOOK_NETWORKS=_LOOPBACK):
            _wait_until(lambda: _under_way(control) >= UNDER_WAY)
            taken = []
            for pause in PAUSES:
                time.sleep(pause)
                begun = time.monotonic()
                _approve(jobs, "ninth")
                taken.append(arrivals.get(timeout=60) - begun)
    yield figure("a ninth's message while eight hang", "s", taken)
    yield figure("a ninth's message while eight hang, slowest", "s", [max(taken)])


def _url(listener: socket.socket) -> str:
    return f"http://127.0.0.1:{listener.getsockname()[1]}/"


def _approve(jobs: Jobs, organization: str) -> None:
    now = utc_now()
    job = jobs.create(manual_job(organization, "job", "Do it.", COMMAND_LINE, now), COMMAND_LINE, now)
    jobs.act(organization, job.id, APPROVE_FIX, COMMAND_LINE, now)


def _receive(listener: socket.socket, arrivals: "SimpleQueue[float]") -> None:
    """Receive messages, and record when each one arrived."""
    while True:
        connection, _ = listener.accept()
        with connection:
            connection.recv(65_536)
            arrivals.put(time.monotonic())
            connection.sendall(b"HTTP/1.1 204 No Content\r\n\r\n")


def _under_way(control: ControlDatabase) -> int:
    rows = control.rows("SELECT count(*) FROM deliveries WHERE claimed_until > ?", [to_text(utc_now())])
    return int(rows[0][0])


def _wait_until(is_so: Callable[[], bool]) -> None:
    """Wait until the condition holds. Raises TimeoutError after a minute."""
    given_up_at = time.monotonic() + 60
    while not is_so():
        if time.monotonic() > given_up_at:
            raise TimeoutError(f"fewer than {UNDER_WAY} attempts were under way after a minute")
        time.sleep(0.05)
