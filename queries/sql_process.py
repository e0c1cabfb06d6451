"""The process that runs users' SQL: own_sql.py starts it, sends it one query after another, and kills it.

Its environment has no secrets, it never opens the manifest, and on Linux its whole memory is limited: DuckDB limits
only its buffers, so a single column of strings may take many times DuckDB's limit.
"""

import os
import pickle
import re
import resource
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Final, NamedTuple

import duckdb
import pyarrow as pa

from data import TrafficError
from data.processes import end_without
from data.store.layout import LakeFolders
from queries.locked_engine import LockedEngine, QueryFailed
from queries.snapshot import Snapshot
from queries.traffic_values import TrafficValue

OUT_OF_MEMORY: Final = 3
"""The exit code of a process that ran out of memory during a query; its engine may be broken."""
BATCH_ROWS: Final = 2_048
"""Number of rows sent at once: the size of DuckDB's vectors."""
_VECTORS_BYTES: Final = 200_000_000
"""Memory that a query may take in addition to the buffers that DuckDB limits: rows in transit, and definitions."""
_DUCKDB_ERRORS: Final = {
    "INTERRUPT Error": duckdb.InterruptException,
    "Out of Memory Error": duckdb.OutOfMemoryException,
}
"""DuckDB's error classes, by the prefix of the message of the OSError that Arrow raises instead."""


@dataclass(frozen=True)
class EngineOptions:
    """The options for a process's engine; see LockedEngine."""

    folders: LakeFolders
    organization: str
    values: list[TrafficValue] | None
    memory_bytes: int
    seconds: float


class OwnQuery(NamedTuple):
    """One SELECT and the snapshot that it reads."""

    text: str
    snapshot: Snapshot
    max_rows: int | None  # maximum number of rows to read; None: all rows
    is_arrow: bool  # whether batches are Arrow streams instead of lists of tuples


def main() -> None:
    """Answer queries from a connection until it is closed; the first argument is the connection's file descriptor.

    The second argument is the process ID of the parent; when the parent ends, so does this process.

    The process sends pickled tuples of a keyword and values: "ready"; then, for each query, "columns" with the column
    names (for lists of tuples only), any number of "rows" with their size in Python (0 for Arrow), and "done". After an
    error, "failed" with the name of the error's class and a message takes the place of the rest.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is meant for the parent process
    connection = Connection(int(sys.argv[1]))
    options: EngineOptions = connection.recv()
    with suppress(EOFError, BrokenPipeError):
        try:
            engine = LockedEngine(
                options.folders, options.organization, options.values, f"{options.memory_bytes}B", options.seconds
            )
        except TrafficError as error:
            _send(connection, "failed", type(error).__name__, str(error))
            return
        threading.Thread(target=end_without, args=(int(sys.argv[2]), engine.delete_spilled), daemon=True).start()
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        with suppress(FileNotFoundError):  # only Linux shows how much memory the process has now
            pages = int(Path("/proc/self/statm").read_text("ascii").split()[0])
            limit = pages * resource.getpagesize() + options.memory_bytes + _VECTORS_BYTES
            resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        _send(connection, "ready")
        while True:
            _answer(engine, connection.recv(), connection)


def _answer(engine: LockedEngine, query: OwnQuery, connection: Connection) -> None:
    try:
        for message in _batches(engine, query):
            _send(connection, *message)
        _send(connection, "done")
    except TrafficError as error:
        if isinstance(error.__cause__, duckdb.OutOfMemoryException):
            engine.close()  # deletes spilled files
            os._exit(OUT_OF_MEMORY)
        _send(connection, "failed", type(error).__name__, str(error))
    except MemoryError:
        os._exit(OUT_OF_MEMORY)
    except (BrokenPipeError, SystemExit):
        raise
    except Exception as error:  # noqa: BLE001  # a value out of Python's range, such as 5,000,000 years
        _send(connection, "failed", QueryFailed.__name__, f"{error}; convert that value to text with ::VARCHAR.")


def _batches(engine: LockedEngine, query: OwnQuery) -> Iterator[tuple[Any, ...]]:
    text, left = query.text, query.max_rows
    with engine.cursor(replace(query.snapshot, traffic_values=engine.traffic_values)) as cursor:
        columns = _check_read_only(cursor, text)
        parameters: dict[str, str] = {}
        converted = [_readable_type(kind, query.is_arrow) for _, kind in columns]
        if converted != [kind for _, kind in columns]:
            casts = ", ".join(f"CAST(#{number} AS {kind})" for number, kind in enumerate(converted, 1))
            text, parameters = f"SELECT {casts} FROM query($sql)", {"sql": text}
        names = [name for name, _ in columns]
        if query.is_arrow:
            with cursor.sql(text, params=parameters).to_arrow_reader(BATCH_ROWS) as reader:
                schema = pa.schema([field.with_name(name) for field, name in zip(reader.schema, names, strict=True)])
                yield "rows", _arrow_stream(schema.empty_table()), 0
                try:
                    for batch in reader:
                        yield "rows", _arrow_stream(pa.RecordBatch.from_arrays(batch.columns, schema=schema)), 0
                except OSError as error:  # Arrow's, for an error of DuckDB in the middle of the rows
                    kind, _, _ = str(error).partition(":")
                    raise _DUCKDB_ERRORS.get(kind, duckdb.Error)(str(error)) from error
            return
        result = cursor.execute(text, parameters)
        yield "columns", names
        while rows := result.fetchmany(BATCH_ROWS if left is None else min(BATCH_ROWS, left)):
            yield "rows", rows, _bytes_of(rows)
            left = None if left is None else left - len(rows)


def _readable_type(kind: str, is_arrow: bool) -> str:
    """Return the type to cast a column to, so that Python or Arrow can represent its values."""
    return _FOREIGN_TYPE.sub(lambda found: (_IN_ARROW if is_arrow else _IN_PYTHON).get(found[0], found[0]), kind)


def _bytes_of(value: object) -> int:
    """Return the number of bytes that rows occupy in Python, assuming that no two values share an object."""
    match value:
        case dict():
            return sys.getsizeof(value) + sum(map(_bytes_of, value)) + sum(map(_bytes_of, value.values()))
        case list() | tuple():
            return sys.getsizeof(value) + sum(map(_bytes_of, value))
    return sys.getsizeof(value)


def _send(connection: Connection, *message: object) -> None:
    connection.send_bytes(pickle.dumps(message, protocol=5))


def _arrow_stream(batch: "pa.RecordBatch | pa.Table") -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as stream:
        stream.write(batch)
    return bytes(sink.getvalue())


def _check_read_only(cursor: duckdb.DuckDBPyConnection, sql: str) -> list[tuple[str, str]]:
    """Check that `sql` is one SELECT that only reads; return its columns and their types.

    Raises QueryFailed if it is not a single SELECT or calls a forbidden function, and duckdb.Error if DuckDB rejects
    it.

    The statement type is not enough: since DuckDB 2.0 a WITH clause may contain COPY, INSERT, UPDATE or DELETE, but not
    inside query(); and some functions in DuckDB 1.5 write logs and profiles to any path despite the lock-down.
    """
    if [statement.type for statement in cursor.extract_statements(sql)] != [duckdb.StatementType.SELECT]:
        raise QueryFailed("it must be a single SELECT statement.")
    ((tree,),) = cursor.execute("SELECT json_serialize_sql($sql)", {"sql": sql}).fetchall()
    forbidden = sorted({name.lower() for name in _FUNCTION_CALL.findall(tree)} & _FORBIDDEN_FUNCTIONS)
    if forbidden:
        raise QueryFailed(f"it may not call {forbidden[0]}.")
    try:
        described = cursor.execute("DESCRIBE FROM query($sql)", {"sql": sql}).fetchall()
    except duckdb.Error:
        if _WRITING_NODE not in tree:
            cursor.execute(f"EXPLAIN {sql}")  # runs nothing: raises the same error, but quotes a line of `sql`
        raise
    return [(name, kind) for name, kind, *_ in described]


_FOREIGN_TYPE: Final = re.compile(
    r"""
    "(?:[^"]|"")*" | '(?:[^']|'')*'  # the name of a field or a value of an ENUM, not a type
    | \b(?: TIMESTAMP\ WITH\ TIME\ ZONE | TIME\ WITH\ TIME\ ZONE | UHUGEINT | BIGNUM | BIT | VARIANT )\b
    """,
    re.VERBOSE,
)
_IN_PYTHON: Final = {"TIMESTAMP WITH TIME ZONE": "TIMESTAMP", "VARIANT": "JSON"}
"""Times with a zone become times in UTC, since DuckDB needs pytz for times with a zone, and pytz is not installed. A
VARIANT may contain such times.
"""
_IN_ARROW: Final = {"VARIANT": "JSON", **dict.fromkeys(("TIME WITH TIME ZONE", "UHUGEINT", "BIGNUM", "BIT"), "VARCHAR")}
"""Types that Arrow would misrepresent: as bytes, as a time without its zone, or as a number that overflows."""
_WRITING_NODE: Final = "_QUERY_NODE"  # the type of COPY, INSERT, UPDATE and DELETE in a WITH clause
_FUNCTION_CALL: Final = re.compile(r'"function_name":"([^"]*)"')
_FORBIDDEN_FUNCTIONS: Final = frozenset(
    ("enable_logging", "disable_logging", "enable_profiling", "disable_profiling", "truncate_duckdb_logs", "write_log",
     "query", "query_table", "json_execute_serialized_sql")  # the last three run SQL from a string
)  # fmt: skip
