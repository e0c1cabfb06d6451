"""Blocking work on behalf of an event loop."""

from collections.abc import Callable
from concurrent.futures import Executor
from typing import TypeVar, TypeVarTuple

Result = TypeVar("Result")
Arguments = TypeVarTuple("Arguments")


async def in_thread(threads: Executor, work: Callable[[*Arguments], Result], *arguments: *Arguments) -> Result:
    """The result of blocking work, done in one of these threads."""
    import asyncio  # noqa: PLC0415  # slow, and commands import this file without an event loop

    return await asyncio.get_running_loop().run_in_executor(threads, work, *arguments)
