"""A session on a Spark Connect server. Imports pyspark, which only the extra `cluster` installs.

The client's own retries and its reattachment to a lost connection are turned off, since they can take minutes.
"""

import logging
import threading
import time
import uuid
import warnings
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any, Final

import grpc
import pyarrow as pa
from pyspark.errors import PySparkException

from queries.cluster_options import ClusterUnavailable
from queries.locked_engine import FilesGone, QueryFailed
from queries.snapshot import ClusterSnapshot

with warnings.catch_warnings():  # pyspark warns about newer versions of pandas, which is not used here
    warnings.simplefilter("ignore", FutureWarning)
    from pyspark.sql.connect.client import DefaultChannelBuilder
    from pyspark.sql.connect.column import Column
    from pyspark.sql.connect.dataframe import DataFrame
    from pyspark.sql.connect.functions import array, coalesce, col, inline, lit, make_dt_interval, struct
    from pyspark.sql.connect.plan import LocalRelation
    from pyspark.sql.connect.proto import SQL, Plan, Relation
    from pyspark.sql.connect.session import SparkSession

logging.getLogger("pyspark.sql.connect.logging").disabled = True  # everything it logs is also raised, or irrelevant

__all__ = [
    "CLIENT_ERRORS", "ClusterSession", "Query", "SessionLost", "as_traffic_error", "coalesce", "col", "lit",
    "make_dt_interval",
]  # fmt: skip

CONNECT_SECONDS: Final = 5.0
"""Time after which a server counts as unavailable if the connection has been neither established nor refused."""
CLOSE_SECONDS: Final = 1.0
INTERRUPT_GRACE_SECONDS: Final = 2.0
"""Maximum time that the cluster has to end an interrupted query before the connection is closed."""
CLIENT_ERRORS: Final = (PySparkException, grpc.RpcError, ValueError, AssertionError)
"""Exceptions raised by the calls of a session: ValueError if its connection was closed during the call, AssertionError
if the server ends an incomplete response without an error, as Sail does if a query is interrupted."""

MAX_MESSAGE: Final = 1_000
"""Maximum number of characters kept from a server's message."""
_GARBLED: Final = "Exception deserializing response"
"""The message of gRPC's INTERNAL error for a response that it cannot parse."""
_LOST: Final = ("INVALID_HANDLE", "NO_ACTIVE_SESSION", "TABLE_OR_VIEW_NOT_FOUND")
_GONE: Final = (
    "PATH_NOT_FOUND", "FILE_NOT_EXIST", "FAILED_READ_FILE", "FileNotFound", "No such file", "not found: /"
)  # fmt: skip
"""Texts in servers' errors about an unknown session or view (_LOST), or about an unreadable file (_GONE)."""

_OPTIONS: Final = [
    ("grpc.use_local_subchannel_pool", 1),  # otherwise a new connection inherits the backoff of a failed one
]


class SessionLost(Exception):
    """The connection broke or garbled a response, or the server no longer knows the session."""


def as_traffic_error(error: Exception) -> Exception:
    """Translate a client error into SessionLost, FilesGone or QueryFailed, with the server's message."""
    message = " ".join(str(error).split("JVM stacktrace")[0].split())[:MAX_MESSAGE]
    condition = (error.getCondition() or "") if isinstance(error, PySparkException) else ""
    if condition.startswith(_LOST) or _status(error) is grpc.StatusCode.UNAVAILABLE or _GARBLED in message:
        return SessionLost(message)
    if any(name in f"{condition} {message}" for name in _GONE):
        return FilesGone(message)
    return QueryFailed(message)


def _status(error: Exception) -> grpc.StatusCode | None:
    """Return the gRPC status of a client error, if it has one."""
    if isinstance(error, grpc.RpcError):
        return error.code()
    status_of = getattr(error, "getGrpcStatusCode", None)
    return status_of() if status_of else None


class _EagerChannel(DefaultChannelBuilder):  # type: ignore[misc]  # from a package that may not be installed
    """Connects immediately or not at all: otherwise objects for a dead server would be kept until the program ends."""

    def toChannel(self) -> grpc.Channel:  # noqa: N802  # as the client calls it
        """Return the connected channel. Raises ClusterUnavailable if no cluster responds."""
        channel = super().toChannel()
        is_settled, states = threading.Event(), []

        def note(state: grpc.ChannelConnectivity) -> None:
            states.append(state)
            if state in {grpc.ChannelConnectivity.READY, grpc.ChannelConnectivity.TRANSIENT_FAILURE}:
                is_settled.set()

        channel.subscribe(note, try_to_connect=True)
        is_settled.wait(CONNECT_SECONDS)
        channel.unsubscribe(note)
        if grpc.ChannelConnectivity.READY not in states:
            channel.close()
            raise ClusterUnavailable(f"no cluster responds at {self.endpoint}; check the cluster and TRAFFIC_ENGINE.")
        return channel


class ClusterSession:
    """A connection with a separate session and separate temporary views on the server, for one thread at a time.

    The methods raise CLIENT_ERRORS.
    """

    def __init__(self, address: str) -> None:
        """Connect to `address`, such as sc://host:15002. Raises ClusterUnavailable."""
        connection = _EagerChannel(address, _OPTIONS)
        self.spark = SparkSession.Builder().channelBuilder(connection).create()
        self.spark.client.set_retry_policies([])
        self.spark.client.disable_reattachable_execute()
        self.views_of: ClusterSnapshot | None = None  # the snapshot of the current views
        self.epoch: int | None = None  # the epoch of the ClusterSources of these views

    def table(self, text: str, arguments: Mapping[str, Any]) -> pa.Table:
        """Return the rows of a SELECT with named parameters.

        The SELECT is sent once, as a plan: `spark.sql(…).toArrow()` would first request its analysis and its schema,
        and the server would analyze it for each request.
        """
        literals = {name: lit(value).to_plan(self.spark.client) for name, value in arguments.items()}
        plan = Plan(root=Relation(sql=SQL(query=text, named_arguments=literals)))
        table: pa.Table = self.spark.client.to_table(plan, {})[0]
        return table

    def read_rows(self, view: str, schema: str, paths: list[str], sent: pa.Table, **columns: Column) -> None:
        """Define a view over Parquet files and over rows sent to the server, with these additional columns.

        Queries that read the view fail if a file is unreadable.
        """
        rows = DataFrame(LocalRelation(sent), self.spark) if len(sent) else self.spark.createDataFrame([], schema)
        if paths:
            reader = self.spark.read.schema(schema)
            for option in ("ignoreMissingFiles", "ignoreCorruptFiles"):  # the server's own settings may turn them on
                reader = reader.option(option, "false")
            stored = reader.parquet(*paths)
            rows = stored.select(*sent.column_names).union(rows) if len(sent) else stored
        (rows.withColumns(columns) if columns else rows).createOrReplaceTempView(view)

    def put_rows(self, view: str, schema: str, rows: Iterable[tuple[Any, ...]]) -> None:
        """Define a view over a few rows, which are sent as literals, since not every server accepts tables."""
        fields = [part.split() for part in schema.split(", ")]
        structs = []
        for row in rows:
            values = (
                lit(value).cast(kind.lower()).alias(name) for value, (name, kind) in zip(row, fields, strict=True)
            )
            structs.append(struct(*values))
        if structs:
            self.spark.range(1).select(inline(array(*structs))).createOrReplaceTempView(view)
        else:
            self.spark.createDataFrame([], schema).createOrReplaceTempView(view)

    def count(self, view: str) -> int:
        """Return the number of rows in a view."""
        return int(self.spark.table(view).count())

    def close(self) -> None:
        """End the session, unless the server takes longer than CLOSE_SECONDS to respond, and close the connection."""
        ending = threading.Thread(target=self._end, daemon=True)
        ending.start()
        ending.join(CLOSE_SECONDS)
        self.disconnect()

    def _end(self) -> None:
        with suppress(*CLIENT_ERRORS):
            self.spark.client.release_session()

    def disconnect(self) -> None:
        """Close the connection immediately, without ending the session; a running call fails."""
        self.spark.client.close()


class Query:
    """A query that runs on a cluster and that the watchdog may interrupt."""

    def __init__(self, cancelled: threading.Event, seconds: float) -> None:
        self.cancelled = cancelled
        self.seconds = seconds  # time limit, enforced by the watchdog
        self.is_interrupted = False
        self.is_given_up = False  # whether the connection was closed because the cluster did not end the query in time
        self._tag = f"traffic-{uuid.uuid4().hex}"
        self._session: ClusterSession | None = None
        self._interrupting: threading.Thread | None = None
        self._given_up_at = 0.0

    def begin(self, session: ClusterSession) -> None:
        """Record the session that runs this query."""
        session.spark.addTag(self._tag)
        self._session = session

    def end(self) -> None:
        """Record that the query has ended."""
        session, self._session = self._session, None
        if session:
            session.spark.removeTag(self._tag)

    def interrupt(self) -> None:
        """Ask the cluster to end the query; if the query is still running after INTERRUPT_GRACE_SECONDS, close the
        connection.

        The watchdog calls this repeatedly until the query has ended; each call returns immediately. A stage that Spark
        is submitting at that moment still runs to completion on the workers, since Spark forgets the tag along with the
        query; no further stage is submitted.
        """
        session = self._session
        if session is None:
            return
        if not self.is_interrupted:
            self._given_up_at = time.monotonic() + INTERRUPT_GRACE_SECONDS
            self.is_interrupted = True
        if time.monotonic() >= self._given_up_at:
            self.is_given_up = True
            session.disconnect()
        elif self._interrupting is None or not self._interrupting.is_alive():
            self._interrupting = threading.Thread(target=self._interrupt, args=[session], daemon=True)
            self._interrupting.start()

    def _interrupt(self, session: ClusterSession) -> None:
        with suppress(*CLIENT_ERRORS):
            session.spark.interruptTag(self._tag)
