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
"""Niceness of query threads, in addition to the niceness of the process: on a core shared with another program's busy
thread, a query thread gets a quarter of the time.

With 10, it would get a tenth, and queries on a busy machine would exceed their time limit. Use it only for threads
that rarely hold the interpreter's lock: a thread that holds it while other threads have the core stops the event loop.
"""


async def in_thread(threads: Executor, work: Callable[[*Arguments], Result], *arguments: *Arguments) -> Result:
    """Run blocking work in one of these threads; return its result."""
    import asyncio  # noqa: PLC0415  # slow, and commands import this file without an event loop

    return await asyncio.get_running_loop().run_in_executor(threads, work, *arguments)


async def in_daemon_thread(work: Callable[[*Arguments], Result], *arguments: *Arguments) -> Result:
    """Run blocking work that has no timeout, such as getaddrinfo, in a separate thread; return its result.

    When the caller is cancelled, the thread is abandoned; neither the event loop nor the process waits for it.
    """
    import asyncio  # noqa: PLC0415  # as above

    result: Future[Result] = Future()
    result.set_running_or_notify_cancel()  # otherwise the caller could cancel it, and the thread would fail

    def run() -> None:
        try:
            result.set_result(work(*arguments))
        except Exception as error:  # noqa: BLE001  # raised in the caller
            result.set_exception(error)

    threading.Thread(target=run, name="in-daemon-thread", daemon=True).start()
    return await asyncio.wrap_future(result)


def lower_priority() -> None:
    """Lower the priority of this thread and the threads that it will start.

    Only Linux has a priority per thread; in a sandbox that forbids the system call, all threads keep the same priority.
    """
    if sys.platform == "linux":
        niceness = os.getpriority(os.PRIO_PROCESS, os.getpid()) + NICENESS
        with suppress(PermissionError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), niceness)
