"""The Delta log of one published table: JSON versions, and now and then a checkpoint of all files in Parquet.

Only what a table needs that is appended to and rewritten by one program is here: the log names files and how many rows
each has. It holds no minima and maxima, which would keep what was erased.
"""

import io
import json
import re
import uuid
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from data.errors import Conflict, TrafficError
from data.store.target import ObjectStore

ENGINE: Final = "traffic-analytics"
"""The writer of the log, named in each version. A version by any other writer is refused."""

_TYPES: Final = {
    pa.string(): "string",
    pa.int16(): "short",
    pa.int64(): "long",
    pa.bool_(): "boolean",
    pa.timestamp("us"): "timestamp_ntz",
    pa.date32(): "date",
}
_PROTOCOL: Final = {
    "minReaderVersion": 3,
    "minWriterVersion": 7,
    "readerFeatures": ["timestampNtz"],  # times are UTC, whatever the time zone of a reader's session
    "writerFeatures": ["timestampNtz"],
}
_NAME: Final = re.compile(r"(\d{20})\.json")
_LAST_CHECKPOINT: Final = "_last_checkpoint"
_UNREADABLE: Final = (ValueError, LookupError, TypeError, AttributeError, StopIteration)
"""What reading garbage as a version raises."""
_TEXTS: Final = pa.map_(pa.string(), pa.string())
_CHECKPOINT: Final = pa.schema([
    ("protocol", pa.struct([
        ("minReaderVersion", pa.int32()), ("minWriterVersion", pa.int32()),
        ("readerFeatures", pa.list_(pa.string())), ("writerFeatures", pa.list_(pa.string())),
    ])),
    ("metaData", pa.struct([
        ("id", pa.string()), ("format", pa.struct([("provider", pa.string()), ("options", _TEXTS)])),
        ("schemaString", pa.string()), ("partitionColumns", pa.list_(pa.string())), ("configuration", _TEXTS),
        ("createdTime", pa.int64()),
    ])),
    ("add", pa.struct([
        ("path", pa.string()), ("partitionValues", _TEXTS), ("size", pa.int64()), ("modificationTime", pa.int64()),
        ("dataChange", pa.bool_()), ("stats", pa.string()),
    ])),
])  # fmt: skip


class ForeignLog(TrafficError):
    """Another program has written into a published table."""


class PublishedFile(NamedTuple):
    """A file of a published table."""

    path: str  # in the table's folder, such as day=2026-11-20/….parquet
    day: str  # its partition; "" in a table without any
    size: int
    rows: int | None

    @property
    def partition(self) -> dict[str, str]:
        """Its partition as the log writes it."""
        return {"day": self.day} if self.day else {}


class TableChange(NamedTuple):
    """What the next version of a table has and has not."""

    added: Collection[PublishedFile]
    removed: Collection[str]  # paths
    moved: Collection[str] = ()  # the paths of added and removed files in which no value changed, as after a merge


@dataclass(frozen=True)
class TableState:
    """A version of a table."""

    version: int = -1  # -1 before the log exists
    files: Mapping[str, PublishedFile] = field(default_factory=dict)  # by path
    epoch: int = 0  # that of the organization when the version was written
    schema: str = ""  # the columns, as the log writes them
    checkpoint: int = -1  # the version of the last checkpoint


class DeltaLog:
    """The log of one table. Its methods raise TargetUnavailable."""

    def __init__(self, target: ObjectStore, folder: str, schema: pa.Schema, *, is_partitioned: bool) -> None:
        """`folder` is the table's in the target. With `is_partitioned`, the partition of a file is its column day."""
        self._target = target
        self.folder = folder
        self._log = f"{folder}/_delta_log"
        self._partitions = ["day"] if is_partitioned else []
        self._id = str(uuid.uuid5(uuid.NAMESPACE_URL, f"{target.name}/{folder}"))
        columns = [*schema, pa.field("day", pa.date32())] if is_partitioned else [*schema]
        fields = [{"name": one.name, "type": _TYPES[one.type], "nullable": True, "metadata": {}} for one in columns]
        self._schema = json.dumps({"type": "struct", "fields": fields})

    def read(self) -> TableState:
        """The last version. Raises ForeignLog if any version since the last checkpoint was written by others."""
        last = self._target.get(f"{self._log}/{_LAST_CHECKPOINT}")
        checkpoint = json.loads(last)["version"] if last else -1
        names = (_NAME.fullmatch(key.rpartition("/")[2]) for key in self._target.list(f"{self._log}/"))
        versions = sorted(int(name[1]) for name in names if name and int(name[1]) >= checkpoint)
        state = TableState()
        if checkpoint >= 0:
            body = self._target.get(self._key(checkpoint, "checkpoint.parquet")) or b""
            rows = pq.read_table(io.BytesIO(body), columns=["metaData", "add"]).to_pylist(maps_as_pydicts="strict")
            (schema,) = {row["metaData"]["schemaString"] for row in rows if row["metaData"]}
            files = _files_of(row["add"] for row in rows if row["add"])
            state = TableState(checkpoint - 1, files, 0, schema, checkpoint)
        for version in versions:
            state = self._applied(state, version, self._target.get(self._key(version)) or b"")
        return state

    def read_on(self, state: TableState) -> TableState:
        """The last version of those that follow an earlier one and are still there. Raises ForeignLog like `read`."""
        while body := self._target.get(self._key(state.version + 1)):
            state = self._applied(state, state.version + 1, body)
        return state

    def write(self, state: TableState, change: TableChange, epoch: int, now: datetime) -> TableState:
        """Write the next version. Raises Conflict if another program has written it."""
        at = round(now.timestamp() * 1_000)
        actions: list[dict[str, Any]] = [
            {"commitInfo": {"timestamp": at, "operation": "WRITE", "engineInfo": ENGINE, "epoch": epoch,
                            "id": str(uuid.uuid4())}}
        ]  # fmt: skip
        if state.version < 0:
            actions.append({"protocol": _PROTOCOL})
        if state.schema != self._schema:
            actions.append({"metaData": self._metadata()})
        for path in change.removed:
            file = state.files[path]
            actions.append({
                "remove": {"path": path, "deletionTimestamp": at, "dataChange": path not in change.moved,
                           "extendedFileMetadata": True, "partitionValues": file.partition, "size": file.size}
            })  # fmt: skip
        actions += [{"add": _add(file, at, is_change=file.path not in change.moved)} for file in change.added]
        version = state.version + 1
        key, body = self._key(version), "".join(f"{json.dumps(action)}\n" for action in actions).encode()
        if not self._target.put_if_absent(key, body) and self._target.get(key) != body:  # a retry may meet its own
            raise Conflict(f"{self._target.name}/{key} was written by another program meanwhile; try again.")
        gone, new = set(change.removed), {file.path: file for file in change.added}
        files = {path: file for path, file in state.files.items() if path not in gone} | new
        return TableState(version, files, epoch, self._schema, state.checkpoint)

    def write_checkpoint(self, state: TableState) -> TableState:
        """Write a checkpoint of a version, so that no earlier one is needed any more."""
        rows: list[dict[str, Any]] = [{"protocol": _PROTOCOL}, {"metaData": self._metadata()}]
        rows += [{"add": _add(file, 0, is_change=False)} for file in state.files.values()]
        body = io.BytesIO()
        pq.write_table(pa.Table.from_pylist(rows, _CHECKPOINT), body, compression="zstd")
        self._target.put(self._key(state.version, "checkpoint.parquet"), body.getvalue())
        last = {"version": state.version, "size": len(rows)}
        self._target.put(f"{self._log}/{_LAST_CHECKPOINT}", json.dumps(last).encode())
        return TableState(state.version, state.files, state.epoch, state.schema, state.version)

    def keys(self, state: TableState) -> set[str]:
        """The objects of the log that a version needs."""
        versions = {self._key(version) for version in range(max(state.checkpoint, 0), state.version + 1)}
        if state.checkpoint < 0:
            return versions
        return {*versions, self._key(state.checkpoint, "checkpoint.parquet"), f"{self._log}/{_LAST_CHECKPOINT}"}

    def _key(self, version: int, kind: str = "json") -> str:
        return f"{self._log}/{version:020}.{kind}"

    def _metadata(self) -> dict[str, Any]:
        return {
            "id": self._id, "format": {"provider": "parquet", "options": {}}, "schemaString": self._schema,
            "partitionColumns": self._partitions, "configuration": {}, "createdTime": 0,
        }  # fmt: skip

    def _applied(self, state: TableState, version: int, body: bytes) -> TableState:
        try:
            if version == state.version + 1:
                return _after(state, version, body)
        except _UNREADABLE:
            pass
        raise ForeignLog(
            f"{self._target.name}/{self._key(version)} was not written by `traffic publish`, or versions before it are "
            "missing: keep other programs from writing there, delete the folder of this table, and publish again."
        )


def _after(state: TableState, version: int, body: bytes) -> TableState:
    """The state after the version that follows it. Raises one of _UNREADABLE if that is by another program."""
    actions = [json.loads(line) for line in body.splitlines()]
    info = next(action["commitInfo"] for action in actions if "commitInfo" in action)
    if info["engineInfo"] != ENGINE:
        raise ValueError("written by another program")
    files = dict(state.files)
    for action in actions:
        if "remove" in action:
            files.pop(action["remove"]["path"], None)
    files |= _files_of(action["add"] for action in actions if "add" in action)
    schema = next((action["metaData"]["schemaString"] for action in actions if "metaData" in action), state.schema)
    return TableState(version, files, int(info["epoch"]), schema, state.checkpoint)


def _add(file: PublishedFile, at: int, *, is_change: bool) -> dict[str, Any]:
    stats = {} if file.rows is None else {"stats": json.dumps({"numRecords": file.rows})}
    return {
        "path": file.path, "partitionValues": file.partition, "size": file.size, "modificationTime": at,
        "dataChange": is_change, **stats,
    }  # fmt: skip


def _files_of(adds: Iterable[dict[str, Any]]) -> dict[str, PublishedFile]:
    files = {}
    for add in adds:
        rows = json.loads(add["stats"])["numRecords"] if add.get("stats") else None
        files[add["path"]] = PublishedFile(add["path"], add["partitionValues"].get("day", ""), add["size"], rows)
    return files
