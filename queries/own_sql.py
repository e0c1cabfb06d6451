"""Runs the SELECTs of users and other programs on the data of one organization.

All SQL that is not part of this package (from a command, a notebook, an assistant's tool) runs here.
"""

import io
import os
import pickle
import re
import subprocess
import sys
import threading
import time
from contextlib import suppress
from difflib import get_close_matches
from multiprocessing.connection import Pipe
from subprocess import DEVNULL
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from data import BadInput, Lake, check_organization
from data.processes import python_path
from data.store.layout import LakeFolders, delete_abandoned
from data.text import bytes_of_memory
from queries.locked_engine import QUERY_TIMEOUT_SECONDS, EngineLost, FilesGone, OutOfMemory, QueryFailed, QueryTimeout
from queries.prelude import public_names
from queries.scope import Scope
from queries.snapshot import take_snapshot
from queries.sql_process import OUT_OF_MEMORY, EngineOptions, OwnQuery
from queries.traffic_values import TrafficValue

if TYPE_CHECKING:
    import pyarrow as pa

OWN_SQL_MEMORY: Final = "300MB"
_START_SECONDS: Final = 60.0
_KILLED_AFTER: Final = 1.0
"""Seconds after a query's time limit at which its process is killed, if the engine could not stop the query."""


class Rows(NamedTuple):
    """The rows returned by a query."""

    columns: list[str]
    rows: list[tuple[Any, ...]]
    is_truncated: bool  # whether there were more rows than requested


class OwnSql:
    """Runs one organization's SELECTs on the relations of the prelude, one at a time.

    The SELECTs run in a separate process. Its engine can only open that organization's folders, so a query that names
    another organization's files cannot read them. Safe to use from several threads.
    """

    def __init__(
        self,
        lake: Lake,
        organization: str,
        values: list[TrafficValue] | None = None,
        memory: str = OWN_SQL_MEMORY,
        seconds: float = QUERY_TIMEOUT_SECONDS,
    ) -> None:
        """Start the process. `memory` (such as "300MB") limits the engine and, separately, the rows; `seconds` limits
        each query.

        Raises BadInput for an invalid organization name.
        """
        check_organization(organization)
        self._lake = lake
        self._memory = memory
        folders = LakeFolders(lake.root, lake.seeds)
        self._options = EngineOptions(folders, organization, values, bytes_of_memory(memory), seconds)
        self._lock = threading.Lock()
        self._process = _Process(self._options, memory)

    def sql(self, text: str, scope: Scope, max_rows: int | None = None) -> Rows:
        """Return the rows of one SELECT; the relations contain the visits of the scope. At most `max_rows` are
        returned.

        Raises QueryTimeout; QueryFailed if it is not a single SELECT, would write, reads other files, needs too much
        memory, or fails otherwise; ValueError for the scope of another organization; and the exceptions of
        take_snapshot. Times with a zone are returned in UTC.
        """
        columns, *batches = self._answer(text, scope, None if max_rows is None else max_rows + 1)
        rows = [row for batch in batches for row in batch]
        return Rows(columns, rows[:max_rows], max_rows is not None and len(rows) > max_rows)

    def table(self, text: str, scope: Scope) -> "pa.Table":
        """Return all rows of one SELECT as an Arrow table. Raises the exceptions of `sql`."""
        import pyarrow as pa  # noqa: PLC0415  # slow

        streams = self._answer(text, scope, is_arrow=True)
        return pa.concat_tables([pa.ipc.open_stream(stream).read_all() for stream in streams])

    def close(self) -> None:
        """End the process."""
        with self._lock:
            self._process.kill()

    def _answer(self, text: str, scope: Scope, max_rows: int | None = None, is_arrow: bool = False) -> list[Any]:
        if scope.organization != self._options.organization:
            raise ValueError(
                f"this engine reads the files of {self._options.organization}, not of {scope.organization}."
            )
        query = OwnQuery(text, take_snapshot(self._lake, scope), max_rows, is_arrow)
        with self._lock:
            if not self._process.is_running:
                self._process = _Process(self._options, self._memory)
            return self._process.answer(query)


class _Process:
    """A process that runs sql_process.py; it is killed if it exceeds its time or size limit."""

    def __init__(self, options: EngineOptions, memory: str) -> None:
        self._options, self._memory = options, memory
        self._is_ready = False
        self._connection, theirs = Pipe()
        with theirs:
            self._child = subprocess.Popen(  # noqa: S603  # this Python, and our own text
                [sys.executable, "-P", "-c", _PROGRAM, str(theirs.fileno()), str(os.getpid())],
                cwd="/", env=_ENVIRONMENT | {"PYTHONPATH": python_path()}, pass_fds=[theirs.fileno()],
                stdin=DEVNULL, stdout=DEVNULL, stderr=DEVNULL,
            )  # fmt: skip
        self.pid = self._child.pid
        with suppress(ConnectionError):  # it has ended already: the first query reports it
            self._connection.send(options)

    @property
    def is_running(self) -> bool:
        """Whether the process accepts queries."""
        return self._child.poll() is None

    def answer(self, query: OwnQuery) -> list[Any]:
        """Return the columns and the batches of rows, or all Arrow streams. Raises the exceptions of OwnSql.sql."""
        try:
            batches, failure = self._exchange(query)
        except (EOFError, ConnectionError):
            self.kill()
            is_sure = self._child.returncode == OUT_OF_MEMORY
            ended = "it needs more memory" if is_sure else "its process ended, probably because it needed more memory"
            raise QueryFailed(f"{ended} than {self._memory}: {_REMEDY}") from None
        except BaseException:
            self.kill()
            raise
        if failure:
            name, message = failure
            raise _ERRORS[name](_UNKNOWN_TABLE.sub(_suggest, message))
        return batches

    def kill(self) -> None:
        """End the process, and delete its engine's spilled files."""
        self._child.kill()
        self._child.wait()
        self._connection.close()
        delete_abandoned(self._options.folders.staging)

    def _exchange(self, query: OwnQuery) -> tuple[list[Any], list[str]]:
        """Return the batches that the process sends for a query; if the query failed, also the error's class and
        message.
        """
        batches: list[Any] = []
        left = self._options.memory_bytes
        if not self._is_ready:
            kind, values, _ = self._receive(time.monotonic() + _START_SECONDS, left)
            if kind == "failed":
                return [], values
            self._is_ready = True
        self._connection.send(query)
        deadline = time.monotonic() + self._options.seconds + _KILLED_AFTER
        while True:
            kind, values, size = self._receive(deadline, left)
            if kind in ("done", "failed"):
                return batches, values
            batches.append(values[0])
            left -= size

    def _receive(self, deadline: float, most: int) -> tuple[str, list[Any], int]:
        """Return one message: its keyword, its values, and their approximate size in bytes.

        Raises EOFError if the process has ended, QueryTimeout after the deadline, and QueryFailed for more than `most`
        bytes.
        """
        if not self._connection.poll(max(deadline - time.monotonic(), 0)):
            raise QueryTimeout(f"the query ran longer than {self._options.seconds:g} seconds and was stopped.")
        message = self._connection.recv_bytes()
        kind, *values = PlainUnpickler(io.BytesIO(message)).load()
        size = max(len(message), values[1]) if kind == "rows" else len(message)
        if size > most:
            raise QueryFailed(f"its rows take more than {self._memory}: {_REMEDY}")
        return kind, values, size


class PlainUnpickler(pickle.Unpickler):
    """Unpickles SQL values only, so that no code can run."""

    def find_class(self, module: str, name: str) -> Any:  # noqa: ANN401  # as Unpickler
        """Return the class of an SQL value. Raises UnpicklingError for other classes."""
        if (module, name) not in _SQL_VALUES:
            raise pickle.UnpicklingError(f"{module}.{name} is not an SQL value")
        return super().find_class(module, name)


def _suggest(unknown: re.Match[str]) -> str:
    """Return DuckDB's message about an unknown table, but suggest the most similar public relation, or visits_in_scope
    if none is similar.
    """
    (nearest, *_) = [*get_close_matches(unknown[2], public_names(), 1, 0.7), "visits_in_scope"]
    return f'{unknown[1]} Did you mean "{nearest}"?'


_UNKNOWN_TABLE: Final = re.compile(r'^(Catalog Error: Table with name (\S+) does not exist!) Did you mean "[^"]*"\?')
_PROGRAM: Final = "from queries.sql_process import main; main()"
_ENVIRONMENT: Final = {
    "MALLOC_ARENA_MAX": "2",  # otherwise each thread reserves 64 MB of address space
    "ARROW_DEFAULT_MEMORY_POOL": "system",
}
"""The whole environment of the process except for the module path: it contains no secrets."""
_REMEDY: Final = "read fewer columns, rows or days, or shorter strings."
_ERRORS: Final = {
    one.__name__: one for one in (QueryFailed, QueryTimeout, OutOfMemory, FilesGone, EngineLost, BadInput)
}
_SQL_VALUES: Final = {
    *(("datetime", name) for name in ("date", "datetime", "time", "timedelta", "timezone")),
    ("decimal", "Decimal"),
    ("uuid", "UUID"),
}
