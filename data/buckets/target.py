"""The targets that a lake is published to: a folder, or a bucket in S3 or a compatible store.

A target stores objects by key, such as `acme/visits/_delta_log/00000000000000000000.json`. An object appears
completely or not at all.
"""

import os
import re
import shutil
import threading
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from datetime import timedelta
from pathlib import Path
from typing import Any, Final, TypeAlias

from data.buckets.object_errors import TargetUnavailable
from data.buckets.s3_requests import ListedObject, S3Requests
from data.disk.files import make_durably, sync
from data.errors import BadInput

_BUCKET: Final = re.compile(r"s3://(?P<bucket>[a-z0-9][a-z0-9.-]{1,61}[a-z0-9])(/(?P<prefix>[^?#]*))?")
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")
_TIMEOUT: Final = timedelta(seconds=30)
"""Time-out of a request. If it expires, the store counts as unreachable."""
_SINGLE_PUT_BYTES: Final = 64_000_000
_SMALL_BYTES: Final = 8_000_000
_LARGE_PUTS: Final = threading.Lock()
"""Lock held during each upload of more than _SMALL_BYTES: a single-part upload keeps the whole object in memory."""
_ABORTS: Final = 4
_DELETED_AT_ONCE: Final = 1_000
PARTIAL: Final = ".partial-"
"""Prefix of the names of incomplete files in a folder, including files left by killed writers."""


def is_odd(key: str) -> bool:
    """Return whether a key is rejected because it has empty segments, `.`, `..` or control characters."""
    return not {"", ".", ".."}.isdisjoint(key.split("/")) or bool(_CONTROL.search(key))


def parse_target(text: str) -> str:
    """Return the absolute folder or the normalized s3://bucket/prefix; "" for "". Raises BadInput for any other URL."""
    if not re.match(r"\w+:/", text):  # otherwise s3:/x would be a folder called `s3:`
        return str(Path(text).absolute()) if text else ""
    if not (match := _BUCKET.fullmatch(text)):
        raise BadInput(f"{text!r} is not a target; write a folder or a bucket like s3://bucket/prefix.")
    prefix = (match["prefix"] or "").rstrip("/")
    if prefix and is_odd(prefix):
        raise BadInput(
            f"{text!r} is not a target: no part of a prefix may be empty, `.` or `..`, or have control characters; "
            "write a folder or a bucket like s3://bucket/prefix."
        )
    return f"s3://{match['bucket']}/{prefix}".rstrip("/")


def open_target(name: str) -> "ObjectStore":
    """Return the target with this name, even if it is unreachable. Raises BadInput for a bucket if the extra `publish`
    is not installed.
    """
    return Bucket(name) if name.startswith("s3://") else Folder(name)


class Folder:
    """A folder in a file system. Its methods raise TargetUnavailable if the file system fails."""

    late: Final = timedelta(0)
    """The longest time between the exit of a writer and the appearance of its last object."""

    def __init__(self, name: str) -> None:
        self.name = name  # the target as written in settings
        self._root = Path(name)

    def put(self, key: str, body: bytes | Path) -> str | None:
        """Create or replace an object. Returns its version if the target keeps earlier versions; otherwise None."""
        with self._errors(), self._temporary_file(key, body) as partial:
            partial.rename(self._root / key)
        return None

    def put_if_absent(self, key: str, body: bytes) -> bool:
        """Create an object unless the key exists. Returns whether it was created."""
        with self._errors(), self._temporary_file(key, body) as partial:
            try:
                (self._root / key).hardlink_to(partial)
            except FileExistsError:
                return False
        return True

    def has(self, key: str) -> bool:
        """Return whether an object with this key exists."""
        with self._errors():
            return (self._root / key).is_file()

    def get(self, key: str) -> bytes | None:
        """Return the bytes of an object; None if it does not exist."""
        with self._errors(), suppress(FileNotFoundError):
            return (self._root / key).read_bytes()
        return None

    def delete(self, keys: Iterable[str]) -> None:
        """Delete objects; missing objects are ignored."""
        with self._errors():
            for key in keys:
                (self._root / key).unlink(missing_ok=True)

    def list(self, prefix: str) -> dict[str, int]:
        """Return the keys under a prefix (a folder that ends with /, or ""), with the size of each object in bytes."""
        with self._errors():
            files = [path for path in (self._root / prefix).rglob("*") if path.is_file()]
            return {path.relative_to(self._root).as_posix(): path.stat().st_size for path in files}

    def versions_problem(self) -> str | None:
        """Return why deleted objects would remain as earlier versions; "" if they would not, None if it is unknown."""
        return ""

    def unfinished_uploads(self) -> tuple[str, ...]:
        """Return the keys of unfinished uploads with parts that the target still stores."""
        return ()

    def abort_uploads(self) -> None:
        """Delete the parts of unfinished uploads."""

    @contextmanager
    def _temporary_file(self, key: str, body: bytes | Path) -> Iterator[Path]:
        """Yield a synced temporary file with these bytes in the folder of the object; remove it at the end."""
        folder = (self._root / key).parent
        make_durably(folder)
        partial = folder / f"{PARTIAL}{uuid.uuid4().hex}"
        try:
            if isinstance(body, Path):
                shutil.copyfile(body, partial)
            else:
                partial.write_bytes(body)
            sync(partial)
            yield partial
            sync(folder)
        finally:
            partial.unlink(missing_ok=True)

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """Convert file system errors to TargetUnavailable, except FileNotFoundError for a file outside the target."""
        try:
            yield
        except OSError as error:
            if isinstance(error, FileNotFoundError) and self.name not in str(error.filename):
                raise
            raise TargetUnavailable(f"{self.name} cannot be used: {error.strerror or error}.") from error


class Bucket:
    """The objects under a prefix in a bucket. Credentials, region and endpoint come from the usual AWS variables."""

    late: Final = timedelta(minutes=15)
    """See Folder. A later request is rejected, since its signature has expired by then:
    https://docs.aws.amazon.com/AmazonS3/latest/API/RESTAuthentication.html#RESTAuthenticationTimeStamp"""

    def __init__(self, name: str) -> None:
        """Raises BadInput if the extra `publish` is not installed."""
        try:
            import obstore  # noqa: PLC0415  # only the extra installs it
            from obstore.store import S3Store  # noqa: PLC0415
        except ImportError as error:
            raise BadInput(
                "a bucket needs the package obstore: in a clone, run `uv sync --extra publish`; for an installed "
                "program, `pip install --require-hashes -r traffic-requirements-publish.txt`."
            ) from error
        self.name = name
        self._client: Any = obstore
        bucket, _, prefix = name.removeprefix("s3://").partition("/")
        endpoint = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")
        options: dict[str, Any] = {
            "client_options": {"timeout": _TIMEOUT, "connect_timeout": _TIMEOUT / 6, "allow_http": True},
            "retry_config": {"max_retries": 3, "retry_timeout": _TIMEOUT},
            **({"endpoint": endpoint} if endpoint else {}),
        }
        self._requests = S3Requests(name, obstore, options, _TIMEOUT)
        with self._errors():
            self._store: Any = S3Store(bucket, prefix=prefix or None, **options)

    def put(self, key: str, body: bytes | Path) -> str | None:
        """See Folder. Only objects over 64 MB are uploaded in parts, which would remain if this program were killed."""
        size = len(body) if isinstance(body, bytes) else body.stat().st_size
        turn = _LARGE_PUTS if size > _SMALL_BYTES else nullcontext()
        with turn, nullcontext(body) if isinstance(body, bytes) else body.open("rb") as content, self._errors(key):
            put = self._client.put(self._store, key, content, use_multipart=size > _SINGLE_PUT_BYTES)
            version: str | None = put["version"]
            return version

    def put_if_absent(self, key: str, body: bytes) -> bool:
        """See Folder."""
        with self._errors(key):
            try:
                self._client.put(self._store, key, body, mode="create")
            except self._client.exceptions.AlreadyExistsError:
                return False
            return True

    def has(self, key: str) -> bool:
        """See Folder."""
        with self._errors(key):
            try:
                self._client.head(self._store, key)
            except FileNotFoundError:
                return False
            return True

    def get(self, key: str) -> bytes | None:
        """See Folder."""
        with self._errors(key):
            try:
                return bytes(self._client.get(self._store, key).bytes())
            except FileNotFoundError as error:
                if "NoSuchBucket" in str(error):
                    raise
                return None

    def get_range(self, key: str, start: int, length: int) -> bytes:
        """Return `length` bytes of an object, which must be long enough. Raises TargetUnavailable if it is missing."""
        with self._errors(key):
            return bytes(self._client.get_range(self._store, key, start=start, length=length))

    def pages(self) -> Iterator[list[ListedObject]]:
        """Yield all objects, page by page, including objects with odd keys (is_odd). Raises TargetUnavailable."""
        return self._requests.pages()

    def delete(self, keys: Iterable[str]) -> None:
        """See Folder."""
        wanted = list(keys)
        for first in range(0, len(wanted), _DELETED_AT_ONCE):
            with self._errors():
                self._client.delete(self._store, wanted[first : first + _DELETED_AT_ONCE])

    def list(self, prefix: str) -> dict[str, int]:
        """See Folder."""
        return {found.key: found.size for page in self._requests.pages(prefix) for found in page}

    def versions_problem(self) -> str | None:
        """See Folder."""
        status = self._requests.versioning()
        if status == "Enabled":
            return "it keeps earlier versions of objects"
        if status == "Suspended" and next(self._requests.earlier_versions(), None) is not None:
            return "it has earlier versions of objects, from before its versioning was suspended"
        return status and ""

    def unfinished_uploads(self) -> tuple[str, ...]:
        """See Folder."""
        return tuple(upload.key for upload in self._requests.uploads())

    def abort_uploads(self) -> None:
        """See Folder."""
        for _ in range(_ABORTS):  # a part that is still being sent may arrive after the first abort
            uploads = [upload for upload in self._requests.uploads() if not is_odd(upload.key)]
            for upload in uploads:
                self._requests.abort(upload)
            if not uploads:
                return
        raise TargetUnavailable(f"{self.name} cannot be used: it keeps parts of aborted uploads; choose another store.")

    @contextmanager
    def _errors(self, key: str = "") -> Iterator[None]:
        """Convert errors from the store to TargetUnavailable; `key` is the requested object."""
        try:
            yield
        except (self._client.exceptions.BaseError, OSError) as error:
            raise self._requests.problem(str(error), key) from None


ObjectStore: TypeAlias = Folder | Bucket
"""A store of objects by key."""
