"""The engines that rewrite visits: interruptible DuckDB connections with a memory limit, which spill into the lake."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Final

import duckdb

from data.errors import Conflict, LakeDamaged
from data.store.lake import Lake
from data.store.layout import spill_folder

MIN_MEMORY: Final = 192 << 20
"""DuckDB's lowest memory limit in bytes. Beyond its memory limit, DuckDB spills into the lake's staging folder.

With this limit, merging and counting a day of five million visits takes at most 501 MB for the whole process; with a
limit of 160 MB it takes 479 MB, with 256 MB it takes 564 MB, and with 512 MB it takes 806 MB.
"""
MEMORY_PER_VISIT: Final = 32
"""Bytes of memory for each visit that is rewritten or counted at a time, if the total exceeds MIN_MEMORY: each spilled
part still needs memory. A day of 15 million visits was merged with 384 MB, but not with 256 MB."""


@contextmanager
def rewriting_engine(staging: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """Yield a DuckDB connection that may spill to disk, since visits contain no IP addresses. DuckDB's errors are
    raised as LakeDamaged.
    """
    with closing(duckdb.connect()) as engine:
        engine.execute("SET TimeZone = 'UTC'")
        limit_memory(engine)
        folder, has_closed = spill_folder(staging, engine)
        try:
            engine.execute("SET temp_directory = $folder", {"folder": folder})
            yield engine
        except duckdb.Error as error:
            raise LakeDamaged(f"visits cannot be read or rewritten: {' '.join(str(error).split())}") from error
        finally:
            engine.close()
            has_closed()


def limit_memory(engine: duckdb.DuckDBPyConnection, visits: int = 0) -> None:
    """Set the memory limit that a rewriting engine needs to rewrite this many visits at a time."""
    engine.execute("SET memory_limit = $bytes", {"bytes": f"{max(MIN_MEMORY, visits * MEMORY_PER_VISIT)}B"})


def until_memory_suffices(rewrite: Callable[[int], None], sizes: Sequence[int]) -> None:
    """Call `rewrite` with the first size, then with the next size each time a rewriting engine runs out of memory.

    Visits with long values from clients, such as user agents, may need a hundred times as much memory as others.
    """
    for size in sizes:
        try:
            rewrite(size)
        except (duckdb.OutOfMemoryException, OSError) as error:  # OSError: from Arrow, which reads DuckDB's results
            if "Out of Memory" not in str(error) or size == sizes[-1]:
                raise
        else:
            return


def run_side_by_side(rewrites: Sequence[Callable[[], None]]) -> None:
    """Call each function in a separate thread. All of them finish before an error is raised; any other error takes
    precedence over a Conflict.
    """
    if len(rewrites) == 1:  # in this thread, so that Ctrl-C interrupts it
        rewrites[0]()
        return
    with ThreadPoolExecutor(len(rewrites)) as pool:
        running = [pool.submit(rewrite) for rewrite in rewrites]
    errors = [error for done in running if (error := done.exception())]
    for error in sorted(errors, key=lambda error: isinstance(error, Conflict)):
        raise error


class InterruptibleEngine:
    """The rewriting engine of a maintenance task, which another thread may interrupt.

    It may be opened several times: each opening yields a separate engine, and all of them are interrupted together.
    """

    def __init__(self, lake: Lake) -> None:
        self._lake = lake
        self._connections: list[duckdb.DuckDBPyConnection] = []

    @contextmanager
    def open(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """Yield a rewriting_engine with one thread, which leaves the other cores to queries."""
        with rewriting_engine(self._lake.staging) as connection:
            connection.execute("SET threads = 1")
            self._connections.append(connection)
            try:
                yield connection
            finally:
                self._connections.remove(connection)

    def interrupt(self) -> None:
        """Cancel any running queries from another thread; they end with LakeDamaged."""
        for connection in [*self._connections]:
            with suppress(duckdb.Error):  # the connection was just closed
                connection.interrupt()
