"""Files as a lake keeps them: written durably, hashed, on a local disk. Which files there are is not known here."""

import hashlib
import os
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

NETWORK: Final = frozenset({
    "afs", "beegfs", "ceph", "cifs", "coda", "davfs", "fuse.ceph", "fuse.gcsfuse", "fuse.glusterfs", "fuse.rclone",
    "fuse.s3fs", "fuse.sshfs", "glusterfs", "gpfs", "lustre", "ncpfs", "nfs", "nfs4", "ocfs2", "smb3", "smbfs",
})  # fmt: skip
"""File systems of other machines, as Linux names them in /proc/self/mountinfo (proc_pid_mountinfo(5))."""


_SCHEMA_VERSION: Final = "traffic.schema_version"


def versioned(version: int) -> dict[str, str]:
    """What the footer of a file says of the schema version of its visits."""
    return {_SCHEMA_VERSION: str(version)}


def version_of(footer: pq.FileMetaData) -> int:
    """The schema version of the visits in a file; without a word of it, it is 1."""
    return int((footer.metadata or {}).get(_SCHEMA_VERSION.encode(), b"1"))


def sha256_of(path: Path) -> str:
    """The SHA-256 of a file's bytes, in hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def write_parquet(
    parts: Iterable[pa.Table],
    schema: pa.Schema,
    path: Path,
    *,
    statistics: Collection[str] = (),
    row_group: int = 20_000,
    metadata: Mapping[str, str] | None = None,
) -> None:
    """Write tables of one schema one after the other, and wait until they are on the disk.

    `statistics` are the columns by which queries leave out row groups; `metadata` is kept in the footer.
    What is a dictionary in the schema is read as what it holds. Times hardly repeat: a dictionary only takes longer.
    """
    repeating = [name for name in schema.names if not pa.types.is_timestamp(schema.field(name).type)]
    with pq.ParquetWriter(
        path,
        schema,
        compression="zstd",
        use_dictionary=repeating,
        write_statistics=[name for name in schema.names if name in statistics],
        store_schema=False,
    ) as writer:
        for part in parts:
            writer.write_table(part, row_group_size=row_group)
        if metadata:
            writer.add_key_value_metadata(metadata)
    sync(path)


def move_durably(source: Path, target: Path) -> None:
    """Rename a file and wait until its new name, and every folder made for it, is on the disk."""
    make_durably(target.parent)
    source.rename(target)
    sync(target.parent)


def make_durably(folder: Path) -> None:
    """Make a folder, and those above it, and wait until their names are on the disk."""
    missing = [one for one in (folder, *folder.parents) if not one.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    for one in missing:
        sync(one.parent)


def write_bytes_durably(body: bytes, staged: Path, target: Path) -> None:
    """Replace `target` by bytes as a whole: readers see the old file or the new one."""
    staged.write_bytes(body)
    sync(staged)
    move_durably(staged, target)


def write_durably(table: pa.Table, staged: Path, target: Path, metadata: Mapping[str, str] | None = None) -> None:
    """Replace `target` by a table as a whole: readers see the old file or the new one."""
    write_parquet([table], table.schema, staged, metadata=metadata)
    move_durably(staged, target)


def sync(path: Path) -> None:
    """Wait until a file, or the names in a folder, are on the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def network_file_system(folder: Path, mounts: Path = Path("/proc/self/mountinfo")) -> str | None:
    """The network file system that a folder lies on; None for a local disk, and where nobody can tell."""
    device = folder.stat().st_dev
    try:
        lines = mounts.read_text("utf-8", errors="replace").splitlines()
    except OSError:
        return None  # not Linux
    return next((kind for kind in map(_kind, lines, [device] * len(lines)) if kind in NETWORK), None)


def _kind(mount: str, device: int) -> str:
    """The file system of a mount, when it is that of the device."""
    words = mount.split(" ")
    is_it = len(words) > 2 and words[2] == f"{os.major(device)}:{os.minor(device)}"
    return words[words.index("-") + 1] if is_it and "-" in words[:-1] else ""
