"""Which versions of log objects, in buckets and drop folders, were read, and what landed their contents."""

import json
from bisect import bisect
from collections.abc import Mapping, Sequence
from itertools import accumulate, repeat
from typing import Final

from data.manifest.batches import Batch, ObjectVersion, batch_of, insert_objects
from data.manifest.manifest import Manifest

BEGINNINGS: Final = (*range(64, 4_096, 64), *accumulate(repeat(4_096, 64), lambda length, _: length * 5 // 4))
"""Lengths of beginnings that are kept of an object's content, in bytes: short lines differ within the first steps."""
_DIGITS: Final = 8  # of the SHA-256 of each, in hexadecimal


def note_beginnings(manifest: Manifest, batch: int, prefixes: Mapping[int, str]) -> None:
    """Record the SHA-256 of the beginnings of the content that a batch landed, by their lengths."""
    hashes = "".join(prefixes[length][:_DIGITS] for length in BEGINNINGS if length in prefixes)
    with manifest.transaction() as db:
        db.execute("INSERT OR REPLACE INTO beginnings VALUES (?, ?)", [batch, bytes.fromhex(hashes)])


def batch_beginning_with(
    manifest: Manifest, batches: Sequence[Batch], size: int, prefixes: Mapping[int, str]
) -> Batch | None:
    """The batch whose content was longer and begins with this one, as far as its beginnings say; None if none does."""
    count = bisect(BEGINNINGS, size)
    for batch in batches if count else ():
        if batch.size > size:
            for (hashes,) in manifest.rows("SELECT hashes FROM beginnings WHERE batch = ?", [batch.id]):
                if hashes.hex()[_DIGITS * (count - 1) : _DIGITS * count] == prefixes[BEGINNINGS[count - 1]][:_DIGITS]:
                    return batch
    return None


def known_versions(manifest: Manifest, organization: str, bucket: str, keys: Sequence[str]) -> set[ObjectVersion]:
    """Those versions of some objects of a bucket that were read for an organization."""
    rows = manifest.rows(
        "SELECT bucket, key, etag FROM objects WHERE organization = ? AND bucket = ? "
        "AND key IN (SELECT value FROM json_each(?))",
        [organization, bucket, json.dumps(keys)],
    )
    return {ObjectVersion(*row) for row in rows}


def batches_of_key(manifest: Manifest, organization: str, version: ObjectVersion) -> list[Batch]:
    """What landed the contents of all versions of an object."""
    rows = manifest.rows(
        "SELECT * FROM batches "
        "WHERE id IN (SELECT batch FROM objects WHERE organization = ? AND bucket = ? AND key = ?)",
        [organization, version.bucket, version.key],
    )
    return [batch_of(row) for row in rows]


def batches_of_content(manifest: Manifest, organization: str, sha256: str, size: int) -> list[Batch]:
    """What landed a whole content, whatever it was read from."""
    content = [organization, sha256, size]
    rows = manifest.rows("SELECT * FROM batches WHERE organization = ? AND sha256 = ? AND bytes = ?", content)
    return [batch_of(row) for row in rows]


def note_objects(manifest: Manifest, organization: str, read: Sequence[tuple[ObjectVersion, int]]) -> None:
    """Record objects whose contents had landed before, with the batches that landed them."""
    if read:
        with manifest.transaction() as db:
            insert_objects(db, organization, read)


def belongs_to_object(manifest: Manifest, batch: int) -> bool:
    """Whether a batch landed the content of an object: others are compared with it, so it must stay what it is."""
    return bool(manifest.rows("SELECT 1 FROM objects WHERE batch = ? LIMIT 1", [batch]))
