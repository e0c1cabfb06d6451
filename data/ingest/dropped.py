"""Folders and buckets with complete log objects written by other programs."""

import io
import os
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from stat import S_ISREG
from typing import BinaryIO, Final, Literal, NamedTuple, TypeAlias

from data.buckets.object_errors import TargetUnavailable
from data.buckets.target import Bucket, is_odd, parse_target
from data.errors import BadInput
from data.logs.source import Source
from data.manifest.logs import ObjectVersion

REST_SECONDS: Final = 10
"""Minimum time since a file's last change. Before that, the file may still be growing."""
IN_MEMORY_BYTES: Final = 64 << 20
"""Objects up to this size are downloaded once, into memory. Larger objects are read twice, in pieces."""
_PIECE_BYTES: Final = 8 << 20
_PAGE: Final = 1_000


class DroppedObject(NamedTuple):
    """One version of an object in a folder or bucket."""

    version: ObjectVersion
    size: int
    is_odd: bool  # whether its key is odd (see target.is_odd), so that it is not read


def open_drop(name: str) -> "Drop":
    """Open a folder or s3://bucket/prefix. Raises BadInput if the name is invalid, if the folder does not exist, or,
    for a bucket, if the extra `publish` is not installed.
    """
    return BucketDrop(parse_target(name)) if "://" in name else FolderDrop(Path(name))


class FolderDrop:
    """A folder and its subfolders. Hidden files and symbolic links are ignored."""

    bucket = "file://"
    """The value of `bucket` in the versions of its objects."""

    def __init__(self, folder: Path) -> None:
        """Raises BadInput unless the folder exists."""
        if not folder.is_dir():
            raise BadInput(f"{folder} is not a folder.")
        self._folder = folder.absolute()

    def pages(self) -> Iterator[list[DroppedObject]]:
        """Yield all objects in lists, except files that are empty or were changed in the last REST_SECONDS.

        Raises TargetUnavailable if the folder is missing.
        """
        if not self._folder.is_dir():
            raise TargetUnavailable(f"{self._folder} is no longer a folder; put it back, or stop following it.")
        page: list[DroppedObject] = []
        for folder, below, names in os.walk(self._folder):  # symbolic links are not followed
            below[:] = [name for name in below if not name.startswith(".")]
            for path in (Path(folder, name) for name in names if not name.startswith(".")):
                with suppress(FileNotFoundError):
                    stat = path.lstat()
                    rests = abs(time.time() - stat.st_mtime) >= REST_SECONDS
                    if S_ISREG(stat.st_mode) and stat.st_size and rests:
                        etag = f"{stat.st_mtime_ns}-{stat.st_size}"
                        version = ObjectVersion(self.bucket, str(path), etag)
                        name = path.relative_to(self._folder).as_posix()
                        page.append(DroppedObject(version, stat.st_size, is_odd(name)))
                if len(page) == _PAGE:
                    yield page
                    page = []
        yield page

    def source(self, dropped: DroppedObject) -> Source | None:
        """Return the source of an object; None if it was deleted."""
        path = Path("/", dropped.version.key)
        return path if path.exists() else None


class BucketDrop:
    """The objects under a prefix in a bucket."""

    def __init__(self, name: str) -> None:
        """Raises BadInput if the extra `publish` is not installed."""
        self._store = Bucket(name)
        bucket, _, prefix = name.removeprefix("s3://").partition("/")
        self.bucket = f"s3://{bucket}"
        self._prefix = f"{prefix}/" if prefix else ""

    def pages(self) -> Iterator[list[DroppedObject]]:
        """Yield all non-empty objects, one list for each page of the listing. Raises TargetUnavailable."""
        for page in self._store.pages():
            yield [
                DroppedObject(ObjectVersion(self.bucket, f"{self._prefix}{key}", etag), size, is_odd(key))
                for key, size, etag in page
                if size
            ]

    def source(self, dropped: DroppedObject) -> Source | None:
        """Return the source of an object. Raises TargetUnavailable.

        An object of up to IN_MEMORY_BYTES is downloaded now; if it was deleted, None is returned. A larger object is
        downloaded in pieces each time it is read.
        """
        key = dropped.version.key.removeprefix(self._prefix)
        name = f"{self.bucket}/{dropped.version.key}"
        if dropped.size > IN_MEMORY_BYTES:
            return _Object(name, lambda _: io.BufferedReader(_Pieces(self._store, key, dropped.size), _PIECE_BYTES))
        body = self._store.get(key)
        return None if body is None else _Object(name, lambda _: io.BytesIO(body))


Drop: TypeAlias = FolderDrop | BucketDrop
"""A folder or bucket with log objects."""


class _Object(NamedTuple):
    """An object as a Source."""

    name: str
    open: Callable[[Literal["rb"]], BinaryIO]

    def __str__(self) -> str:
        return self.name


class _Pieces(io.RawIOBase):
    """An object that is downloaded in pieces each time it is read."""

    def __init__(self, store: Bucket, key: str, size: int) -> None:
        self._store, self._key, self._size, self._at = store, key, size, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._at = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        return self._at

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]  # any writable buffer
        wanted = max(0, min(len(buffer), self._size - self._at))
        piece = self._store.get_range(self._key, self._at, wanted) if wanted else b""
        buffer[: len(piece)] = piece
        self._at += len(piece)
        return len(piece)
