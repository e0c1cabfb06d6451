"""The versions of log objects read from buckets and drop folders, and the batches with their contents."""

import json
from bisect import bisect
from collections.abc import Mapping, Sequence
from itertools import accumulate, repeat
from typing import Final

from data.manifest.database import Database
from data.manifest.logs import Batch, ObjectVersion, batch_of, insert_objects

BEGINNINGS: Final = (*range(64, 4_096, 64), *accumulate(repeat(4_096, 64), lambda length, _: length * 5 // 4))
"""Lengths in bytes of the recorded prefixes of an object's content. Short lengths are close together, to tell short
logs apart.
"""
_DIGITS: Final = 8  # hexadecimal digits of each SHA-256 that are kept


class Objects:
    """The log objects that were read."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def note_beginnings(self, batch: int, prefixes: Mapping[int, str]) -> None:
        """Record hashes of the beginnings of a batch's content: the first digits of the SHA-256 for each length.

        `prefixes` maps the lengths of the prefixes to their SHA-256.
        """
        hashes = "".join(prefixes[length][:_DIGITS] for length in BEGINNINGS if length in prefixes)
        with self._database.transaction() as db:
            db.execute("INSERT OR REPLACE INTO beginnings VALUES (?, ?)", [batch, bytes.fromhex(hashes)])

    def batch_beginning_with(self, batches: Sequence[Batch], size: int, prefixes: Mapping[int, str]) -> Batch | None:
        """Return a batch with longer content that, by its recorded prefixes, begins with this content; None if there is
        none.
        """
        count = bisect(BEGINNINGS, size)
        for batch in batches if count else ():
            if batch.size > size:
                for (hashes,) in self._database.rows("SELECT hashes FROM beginnings WHERE batch = ?", [batch.id]):
                    if (
                        hashes.hex()[_DIGITS * (count - 1) : _DIGITS * count]
                        == prefixes[BEGINNINGS[count - 1]][:_DIGITS]
                    ):
                        return batch
        return None

    def known_versions(self, organization: str, bucket: str, keys: Sequence[str]) -> set[ObjectVersion]:
        """Return the versions of these keys in a bucket that were read for an organization."""
        rows = self._database.rows(
            "SELECT bucket, key, etag FROM objects WHERE organization = ? AND bucket = ? "
            "AND key IN (SELECT value FROM json_each(?))",
            [organization, bucket, json.dumps(keys)],
        )
        return {ObjectVersion(*row) for row in rows}

    def batches_of_key(self, organization: str, version: ObjectVersion) -> list[Batch]:
        """Return the batches that landed the contents of all versions of an object."""
        rows = self._database.rows(
            "SELECT * FROM batches "
            "WHERE id IN (SELECT batch FROM objects WHERE organization = ? AND bucket = ? AND key = ?)",
            [organization, version.bucket, version.key],
        )
        return [batch_of(row) for row in rows]

    def batches_of_content(self, organization: str, sha256: str, size: int) -> list[Batch]:
        """Return the batches that landed exactly this content, from any source."""
        content = [organization, sha256, size]
        rows = self._database.rows("SELECT * FROM batches WHERE organization = ? AND sha256 = ? AND bytes = ?", content)
        return [batch_of(row) for row in rows]

    def note(self, organization: str, read: Sequence[tuple[ObjectVersion, int]]) -> None:
        """Record objects with contents that had already landed, and the batches that landed the contents."""
        if read:
            with self._database.transaction() as db:
                insert_objects(db, organization, read)

    def has_batch(self, batch: int) -> bool:
        """Return whether a batch landed an object's content. Other objects are compared with that content, so the batch
        must not be extended.
        """
        return bool(self._database.rows("SELECT 1 FROM objects WHERE batch = ? LIMIT 1", [batch]))
