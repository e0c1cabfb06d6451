"""Writes files durably and hashes them. The manifest, not this module, records which files exist."""

import errno
import hashlib
import os
import tempfile
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

NETWORK: Final = frozenset({
    "afs", "beegfs", "ceph", "cifs", "coda", "davfs", "fuse.ceph", "fuse.gcsfuse", "fuse.glusterfs", "fuse.rclone",
    "fuse.s3fs", "fuse.sshfs", "glusterfs", "gpfs", "lustre", "ncpfs", "nfs", "nfs4", "ocfs2", "smb3", "smbfs",
})  # fmt: skip
"""Network file systems, as Linux names them in /proc/self/mountinfo (proc_pid_mountinfo(5))."""

READ_ERRORS: Final = (OSError, ValueError, OverflowError, pa.ArrowException)
"""Exceptions raised when reading a missing or damaged Parquet file; ValueError if a name in it is not UTF-8."""

_SCHEMA_VERSION: Final = "traffic.schema_version"

ROW_GROUP: Final = 20_000
"""The number of rows in a row group of visits."""
_BUFFER_BYTES: Final = 1 << 20
"""Size of the write buffer for Parquet files. Without a buffer, Arrow makes over a hundred writes for a small file."""


class RegisteredFile(NamedTuple):
    """A file as registered in the manifest: the fields that files of every kind have."""

    path: str  # in the lake
    size: int
    sha256: str
    changed_ns: int  # its st_ctime_ns when its bytes were last verified; 0 forces verification
    inode: int  # the inode at that time


def versioned(version: int) -> dict[str, str]:
    """Return the metadata for a Parquet footer that records the schema version of the visits."""
    return {_SCHEMA_VERSION: str(version)}


def version_of(footer: pq.FileMetaData) -> int:
    """Return the schema version in a Parquet footer; 1 if none is recorded."""
    return int((footer.metadata or {}).get(_SCHEMA_VERSION.encode(), b"1"))


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file's bytes, in hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def link_problem(root: Path, path: Path) -> str:
    """Return why a file of the lake at `root` must not be read; "" if it may be read.

    A file must not be read if its path below `root` contains a symbolic link.
    """
    for part in (path, *path.parents):
        if part == root:
            return ""
        if part.is_symlink():
            return f"{part} is a symbolic link, but a lake must be a single folder: replace the link with its target"
    return ""


def has_room(folder: Path) -> bool:
    """Return whether a folder has room for a small file (1 MiB); also true if the test fails for another reason."""
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(bytes(_BUFFER_BYTES))
    except OSError as error:
        return error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
    return True


def identity(path: Path) -> tuple[int, int] | None:
    """Return the device and inode of a file; None if it is missing."""
    try:
        status = path.stat()
    except FileNotFoundError:
        return None
    return status.st_dev, status.st_ino


def check_identity(path: Path, opened: tuple[int, int] | None) -> None:
    """Raise OSError (ESTALE) unless the file at `path` still has the identity `opened`."""
    if identity(path) != opened:
        message = "The lake was moved or replaced while it was open; stop this program and start it again"
        raise OSError(errno.ESTALE, message, str(path))


def write_parquet(
    parts: Iterable[pa.Table],
    schema: pa.Schema,
    path: Path,
    *,
    statistics: Collection[str] = (),
    row_group: int = ROW_GROUP,
    compression: str | dict[str, str] = "zstd",
    metadata: Mapping[str, str] | None = None,
) -> None:
    """Write tables of the same schema into one Parquet file, and sync it.

    `statistics` are the columns that queries use to skip row groups; `metadata` is stored in the footer. Timestamps are
    written without a dictionary, since they rarely repeat. The Arrow schema is not stored, so dictionary columns are
    read back as plain columns.
    """
    repeating = [name for name in schema.names if not pa.types.is_timestamp(schema.field(name).type)]
    with (
        pa.output_stream(path, compression=None, buffer_size=_BUFFER_BYTES) as file,
        pq.ParquetWriter(
            file,
            schema,
            compression=compression,
            use_dictionary=repeating,
            write_statistics=[name for name in schema.names if name in statistics],
            store_schema=False,
            write_page_checksum=True,  # the only checksum that `traffic rebuild` has without a manifest
        ) as writer,
    ):
        for part in parts:
            writer.write_table(_without_unused_values(part), row_group_size=row_group)
        if metadata:
            writer.add_key_value_metadata(metadata)
    sync(path)


def _without_unused_values(table: pa.Table) -> pa.Table:
    """Return the table with its dictionaries reduced to the values of its own rows.

    A slice shares the dictionary of the table it was cut from, and pyarrow writes whole dictionaries. A file would thus
    contain values from rows in other files, which an erasure of those rows would not reach.
    """
    for at, column in enumerate(table.columns):
        if pa.types.is_dictionary(column.type):
            chunks = [
                chunk
                if len(pc.unique(chunk.indices.drop_null())) == len(chunk.dictionary)
                else chunk.dictionary_decode().dictionary_encode().cast(column.type)
                for chunk in column.chunks
            ]
            table = table.set_column(at, table.field(at), pa.chunked_array(chunks, column.type))
    return table


def move_durably(source: Path, target: Path) -> None:
    """Rename a file, creating the target's folders, and sync the new directory entries."""
    make_durably(target.parent)
    source.rename(target)
    sync(target.parent)


def move_into_lake(staged: Path, root: Path, name: str, sha256: str) -> RegisteredFile:
    """Move a staged file with this SHA-256 durably to its path in the lake at `root`; return what to register."""
    move_durably(staged, root / name)
    stat = (root / name).stat()
    return RegisteredFile(name, stat.st_size, sha256, stat.st_ctime_ns, stat.st_ino)


def make_durably(folder: Path) -> None:
    """Create a folder and its parents, and sync their directory entries."""
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    for path in missing:
        sync(path.parent)


def write_bytes_durably(body: bytes, staged: Path, target: Path) -> None:
    """Write bytes to `target` atomically, by way of `staged`: readers see either the old file or the new one."""
    staged.write_bytes(body)
    sync(staged)
    move_durably(staged, target)


def sync(path: Path) -> None:
    """Wait until a file, or the directory entries of a folder, are on disk (fsync)."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def network_file_system(folder: Path, mounts: Path = Path("/proc/self/mountinfo")) -> str | None:
    """Return the type of the network file system that contains a folder; None for a local or unknown file system."""
    device = folder.stat().st_dev
    number = f"{os.major(device)}:{os.minor(device)}"
    try:
        lines = [line.split(" ") for line in mounts.read_text("utf-8", errors="replace").splitlines()]
    except OSError:
        return None  # not Linux
    there = (fields for fields in lines if number in fields[2:3] and "-" in fields[:-1])
    return next((kind for fields in there if (kind := fields[fields.index("-") + 1]) in NETWORK), None)
