"""Blocking work on behalf of an event loop, and the priority of threads: queries let the event loop go first."""

import os
import sys
import threading
from collections.abc import Callable
from concurrent.futures import Executor, Future
from contextlib import suppress
from typing import Final, TypeVar, TypeVarTuple

Result = TypeVar("Result")
Arguments = TypeVarTuple("Arguments")
NICENESS: Final = 5
"""Of threads that query, above the process's own: beside another program's busy thread, one gets a quarter of a core.

With 10 it gets a tenth, and queries on a machine that others keep busy run into their time limit. Only for threads that
hardly hold the interpreter's lock: a thread that holds it while others have the core stops the event loop.
"""


async def in_thread(threads: Executor, work: Callable[[*Arguments], Result], *arguments: *Arguments) -> Result:
    """The result of blocking work, done in one of these threads."""
    import asyncio  # noqa: PLC0415  # slow, and commands import this file without an event loop

    return await asyncio.get_running_loop().run_in_executor(threads, work, *arguments)


async def in_daemon_thread(work: Callable[[*Arguments], Result], *arguments: *Arguments) -> Result:
    """The result of work that blocks and takes no time limit, such as getaddrinfo, done in a thread of its own.

    When the caller is cancelled, the thread is abandoned; neither the event loop nor the process waits for it.
    """
    import asyncio  # noqa: PLC0415  # as above

    result: Future[Result] = Future()
    result.set_running_or_notify_cancel()  # otherwise the caller's cancellation would end it, and the thread fail

    def run() -> None:
        try:
            result.set_result(work(*arguments))
        except Exception as error:  # noqa: BLE001  # it is the caller's
            result.set_exception(error)

    threading.Thread(target=run, name="in-daemon-thread", daemon=True).start()
    return await asyncio.wrap_future(result)


def lower_priority() -> None:
    """Let this thread, and those that it will start, go after others.

    Only Linux has a priority of each thread; a sandbox that forbids the system call keeps them all equal.
    """
    if sys.platform == "linux":
        niceness = os.getpriority(os.PRIO_PROCESS, os.getpid()) + NICENESS
        with suppress(PermissionError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), niceness)
