"""Blocking work on behalf of an event loop."""

import threading
from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import TypeVar, TypeVarTuple

Result = TypeVar("Result")
Arguments = TypeVarTuple("Arguments")


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
