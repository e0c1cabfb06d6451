"""The Delta log of one published table: JSON versions, and occasional Parquet checkpoints that list all files.

Implements only the part of Delta needed for a table with a single writer: the log lists files with their row counts.
It has no column statistics, since minima and maxima would preserve erased values.
"""

import io
import json
import re
import uuid
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import count
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from data.buckets.target import ObjectStore
from data.errors import Conflict, TrafficError

ENGINE: Final = "traffic-analytics"
"""The writer of the log, named in each version. Versions from other writers are rejected."""

_TYPES: Final = {
    pa.string(): "string",
    pa.list_(pa.string()): {"type": "array", "elementType": "string", "containsNull": True},
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
_CHECKPOINT_NAME: Final = re.compile(r"(\d{20})\.checkpoint\.parquet")
_LAST_CHECKPOINT: Final = "_last_checkpoint"
_LOG_ERRORS: Final = (ValueError, LookupError, TypeError, AttributeError, StopIteration, OSError, pa.ArrowException)
"""Exceptions that reading a malformed version or checkpoint may raise."""
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
    """A published table was changed by another program."""


class LogOfAnotherLake(ForeignLog):
    """Another lake was published to the same target."""


class PublishedFile(NamedTuple):
    """A file of a published table."""

    path: str  # in the table's folder, such as day=2026-11-20/….parquet
    day: str  # its partition; "" in a table without partitions
    size: int
    rows: int | None

    @property
    def partition(self) -> dict[str, str]:
        """The file's partition, in the log's format."""
        return {"day": self.day} if self.day else {}


class TableChange(NamedTuple):
    """The files that the next version of a table adds and removes."""

    added: Collection[PublishedFile]
    removed: Collection[str]  # paths
    moved: Collection[str] = ()  # the paths of added and removed files in which no value changed, such as in a merge


@dataclass(frozen=True)
class TableState:
    """A version of a table."""

    version: int = -1  # -1 before the log exists
    files: Mapping[str, PublishedFile] = field(default_factory=dict)  # by path
    epoch: int = 0  # the organization's epoch when the version was written
    schema: str = ""  # the columns, in the format of the log
    checkpoint: int = -1  # the version of the last checkpoint
    is_damaged: bool = False  # the checkpoint or _last_checkpoint cannot be read: both must be rewritten


class DeltaLog:
    """The log of one table. Its methods raise TargetUnavailable."""

    def __init__(self, target: ObjectStore, folder: str, schema: pa.Schema, mark: str, *, is_partitioned: bool) -> None:
        """Open the log of the table in `folder`, a folder in the target. `mark` is the id of the lake; "" if unknown.

        With `is_partitioned`, the table is partitioned by the column day.
        """
        self._mark = mark
        self._target = target
        self.folder = folder
        self._log = f"{folder}/_delta_log"
        self._partitions = ["day"] if is_partitioned else []
        self._id = str(uuid.uuid5(uuid.NAMESPACE_URL, f"{target.name}/{folder}"))
        columns = [*schema, pa.field("day", pa.date32())] if is_partitioned else [*schema]
        fields = [{"name": one.name, "type": _TYPES[one.type], "nullable": True, "metadata": {}} for one in columns]
        self._schema = json.dumps({"type": "struct", "fields": fields})

    def read(self) -> TableState:
        """Return the last version. Raises ForeignLog if a version after the last checkpoint is missing or foreign.

        If the checkpoint is missing or damaged, the state comes from the previous checkpoint, from all versions, or
        from the objects in the folder, with unknown row counts.
        """
        keys = [key.rpartition("/")[2] for key in self._target.list(f"{self._log}/")]
        versions = sorted(int(name[1]) for key in keys if (name := _NAME.fullmatch(key)))
        checkpoints = sorted((int(name[1]) for key in keys if (name := _CHECKPOINT_NAME.fullmatch(key))), reverse=True)
        last = self._last_checkpoint()
        is_damaged = last != next(iter(checkpoints), None)  # such as after a kill between the two writes
        for checkpoint in checkpoints:
            try:
                state = self._read_checkpoint(checkpoint)
                break
            except _LOG_ERRORS:
                is_damaged = True
        else:
            state = TableState()
            if is_damaged and versions != [*range(len(versions))]:
                newest = versions[-1] if versions else max([*checkpoints, last or 0]) + 1
                first = next(number for number in count(newest, -1) if number - 1 not in versions)
                state = TableState(first - 1, self._listed_files())
        for version in versions:
            if version > state.version:
                state = self._next_state(state, version, self._target.get(self._key(version)) or b"")
        return replace(state, is_damaged=is_damaged)

    def _last_checkpoint(self) -> int | None:
        """Return the version that _last_checkpoint names; -1 if it is damaged, None if it is missing."""
        body = self._target.get(f"{self._log}/{_LAST_CHECKPOINT}")
        try:
            return None if body is None else int(json.loads(body)["version"])
        except _LOG_ERRORS:
            return -1

    def _read_checkpoint(self, version: int) -> TableState:
        """Return a checkpoint's state as `version - 1`, so that `version` is read too. Raises one of _LOG_ERRORS."""
        body = self._target.get(self._key(version, "checkpoint.parquet")) or b""
        rows = pq.read_table(io.BytesIO(body), columns=["metaData", "add"]).to_pylist(maps_as_pydicts="strict")
        (schema,) = {row["metaData"]["schemaString"] for row in rows if row["metaData"]}
        files = _files_of(row["add"] for row in rows if row["add"])
        return TableState(version - 1, files, 0, schema, version)

    def _listed_files(self) -> dict[str, PublishedFile]:
        """Return all objects in the table's folder, whether or not the log lists them."""
        files = {}
        for key, size in self._target.list(f"{self.folder}/").items():
            path = key.removeprefix(f"{self.folder}/")
            if path.endswith(".parquet") and not path.startswith("_delta_log/"):
                day = path.partition("/")[0].removeprefix("day=") if self._partitions else ""
                files[path] = PublishedFile(path, day, size, None)
        return files

    def is_there(self, state: TableState) -> bool:
        """Return whether the log still has the version of a state that was read or written earlier."""
        return state.version < 0 or self._target.has(self._key(state.version))

    def missing_version_error(self, state: TableState, version: int) -> ForeignLog:
        """Return the exception for a log that has lost a version; `state` is its last remaining version."""
        is_behind = f"ends with version {state.version}, though version {version} was published"
        what = is_behind if state.version >= 0 else "is gone"
        return ForeignLog(f"{self._target.name}/{self._log} {what}: `traffic publish --again` repairs it.")

    def clear(self) -> None:
        """Delete the log; versions start again from 0."""
        self._target.delete(self._target.list(f"{self._log}/"))

    def read_on(self, state: TableState) -> TableState:
        """Apply later versions to an earlier state, up to the first missing version. Raises ForeignLog like `read`."""
        while body := self._target.get(self._key(state.version + 1)):
            state = self._next_state(state, state.version + 1, body)
        return state

    def write(self, state: TableState, change: TableChange, epoch: int, now: datetime) -> TableState:
        """Write the next version. Raises Conflict if another program wrote it, or if the version of `state` is gone."""
        at = round(now.timestamp() * 1_000)
        actions: list[dict[str, Any]] = [
            {"commitInfo": {"timestamp": at, "operation": "WRITE", "engineInfo": ENGINE, "epoch": epoch,
                            "id": str(uuid.uuid4()), "lake": self._mark}}
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
        if not self.is_there(state):
            raise Conflict(f"{self._target.name}/{self._key(state.version)} is gone; try again.")
        key, body = self._key(version), "".join(f"{json.dumps(action)}\n" for action in actions).encode()
        if not self._target.put_if_absent(key, body) and self._target.get(key) != body:  # equal after a retry
            raise Conflict(f"{self._target.name}/{key} was written by another program at the same time; try again.")
        gone, new = set(change.removed), {file.path: file for file in change.added}
        files = {path: file for path, file in state.files.items() if path not in gone} | new
        return TableState(version, files, epoch, self._schema, state.checkpoint)

    def write_checkpoint(self, state: TableState) -> TableState:
        """Write a checkpoint of a version, which makes earlier versions unnecessary; return the new state."""
        rows: list[dict[str, Any]] = [{"protocol": _PROTOCOL}, {"metaData": self._metadata()}]
        rows += [{"add": _add(file, 0, is_change=False)} for file in state.files.values()]
        body = io.BytesIO()
        pq.write_table(pa.Table.from_pylist(rows, _CHECKPOINT), body, compression="zstd")
        self._target.put(self._key(state.version, "checkpoint.parquet"), body.getvalue())
        last = {"version": state.version, "size": len(rows)}
        self._target.put(f"{self._log}/{_LAST_CHECKPOINT}", json.dumps(last).encode())
        return TableState(state.version, state.files, state.epoch, state.schema, state.version)

    def keys(self, state: TableState) -> set[str]:
        """Return the keys of the log's objects that a version needs."""
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

    def _next_state(self, state: TableState, version: int, body: bytes) -> TableState:
        """Return the state after the next version. Raises ForeignLog."""
        name = f"{self._target.name}/{self._key(version)}"
        try:
            actions = [json.loads(line) for line in body.splitlines()]
            info = next(action["commitInfo"] for action in actions if "commitInfo" in action)
            if self._mark and info.get("lake", self._mark) != self._mark:
                raise LogOfAnotherLake(
                    f"{name} belongs to a copy of another lake; choose another target, or delete its content."
                )
            if version == state.version + 1 and info["engineInfo"] == ENGINE:
                return _after(state, version, actions, int(info["epoch"]))
        except _LOG_ERRORS:
            pass
        raise ForeignLog(
            f"{name} was not written by traffic publish, or versions before it are missing: keep other programs from "
            "writing there; `traffic publish --again` writes a new log."
        )


def _after(state: TableState, version: int, actions: Iterable[dict[str, Any]], epoch: int) -> TableState:
    """Return the state after applying a version's actions."""
    files, schema = dict(state.files), state.schema
    for action in actions:
        if "remove" in action:
            files.pop(action["remove"]["path"], None)
        if "metaData" in action:
            schema = action["metaData"]["schemaString"]
    files |= _files_of(action["add"] for action in actions if "add" in action)
    return TableState(version, files, epoch, schema, state.checkpoint)


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
