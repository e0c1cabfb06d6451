"""Makes a new manifest from the visit files, when the old one is lost, damaged or older than they are.

What is left of the old manifest is taken over: it is never worse than what the files record alone. Rollups are counted
again. Visits that were pending in a lost manifest are gone, because they are in no file.
"""

import os
import sqlite3
import uuid
from collections import defaultdict
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, NamedTuple

import pyarrow.parquet as pq
from msgspec.structs import astuple

from data.disk.files import UNREADABLE, move_durably, sha256_of, sync
from data.disk.locks import exclusive
from data.errors import BadInput, LakeDamaged
from data.manifest.clock import format_time
from data.manifest.coverage import note_received
from data.manifest.files import READERS_GRACE, LandedFile
from data.manifest.generation import GenerationCopy
from data.manifest.manifest import Manifest, insert_files
from data.progress import Progress, unseen
from data.recovery.old_manifest import OldManifest, read_old_manifest
from data.recovery.rebuild_plan import RebuildPlan, missing_files, plan_rebuild
from data.recovery.repetitions import without_repeated
from data.store.footers import PendingRange, VisitFile, merged_batches
from data.store.link_files import insert_links, newest_links
from data.store.packing import unpack
from data.store.unknown import partition_of

_BATCH: Final = "INSERT OR IGNORE INTO batches VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
_OBJECT: Final = "INSERT OR IGNORE INTO objects (organization, bucket, key, etag, batch) \
SELECT ?, ?, ?, ?, id FROM batches WHERE organization = ? AND sha256 = ?"


class RebuildResult(NamedTuple):
    """What the new manifest knows."""

    files: int
    visits: int
    pending: int  # visits that were pending in the old manifest, and still are
    damaged: list[str]
    copy: Path | None  # of the old manifest


class Rebuild:
    """The rebuild of one lake's manifest, for which all other programs are locked out."""

    def __init__(self, root: Path, progress: Progress = unseen) -> None:
        self.root = root
        self.old = read_old_manifest(root / "manifest.sqlite")  # what is left of the old manifest; None: nothing
        self._copy = GenerationCopy(root)
        self._left: OldManifest = self.old or defaultdict(list)
        self._generation = max([self._copy.number(), *(number for (number,) in self._left["generation"])]) + 1
        known = {path.rpartition("/")[2]: bool(is_live) for path, _, is_live in self._left["files"]}
        self.plan: RebuildPlan = plan_rebuild(root, known, progress)

    def run(self, progress: Progress = unseen) -> RebuildResult:
        """Build the new manifest beside the old one, then replace it; a copy of the old one is kept."""
        staged = self.root / ".staging" / f"manifest-{uuid.uuid4()}.sqlite"
        damaged = list(self.plan.damaged)
        for repetition in self.plan.repetitions:  # the files that have visits of older ones are replaced
            gone = [repetition.file, *repetition.unfinished]
            self.plan.counted = [file for file in self.plan.counted if file not in gone]
            self.plan.replaced += gone
            self.plan.counted.append(without_repeated(repetition, staged.parent))
        try:
            with closing(Manifest(staged)) as manifest:
                self._fill(manifest, damaged, progress)
                ((files, visits),) = manifest.rows(
                    "SELECT count(*), coalesce(sum(visits), 0) FROM files WHERE deletable_at IS NULL AND visits > 0"
                )
                ((pending,),) = manifest.rows("SELECT coalesce(sum(visits), 0) FROM pending")
            with closing(sqlite3.connect(staged)) as db:
                db.execute("PRAGMA journal_mode = DELETE")  # one file
            sync(staged)
            old = self.root / "manifest.sqlite"
            copy = old.with_name(f"{old.name}.before-rebuild-{datetime.now(UTC):%Y%m%dT%H%M%S%f}")
            for suffix in ("-wal", "-shm"):  # of a manifest that cannot be opened
                leftover = old.with_name(f"{old.name}{suffix}")
                if leftover.exists():
                    leftover.rename(copy.with_name(f"{copy.name}{suffix}"))
            if old.exists():
                os.link(old, copy)
            sync(self.root)
            move_durably(staged, old)
            self._copy.raise_to(self._generation)
            return RebuildResult(files, visits, pending, damaged, copy if copy.exists() else None)
        finally:
            for path in staged.parent.glob(f"{staged.name}*"):
                path.unlink()

    def _fill(self, manifest: Manifest, damaged: list[str], progress: Progress) -> None:
        plan, old = self.plan, self._left
        hashes = {path.rpartition("/")[2]: sha256 for path, sha256, _ in old["files"]}
        size = sum(file.path.stat().st_size for file in plan.counted)
        done, landed = 0, []
        gone = missing_files(self.root, old["files"], plan)
        damaged += [f"{path} is missing; copy it back from a backup, then rebuild again." for path in gone]
        for file in plan.counted:
            try:
                landed.append(self._checked_file(file, hashes.get(file.path.name)))
            except LakeDamaged as error:
                damaged.append(str(error))
            done += (self.root / file.path).stat().st_size if file.path.exists() else 0
            progress(min(done, size), size)
        here = self.root / "visits"
        dead = [_record(file, self.root, "") for file in plan.replaced if file.path.is_relative_to(here)]
        with manifest.transaction() as db:
            self._insert_batches(db, old)
            insert_files(db, [*landed, *dead])
            expiry = format_time(datetime.now(UTC) + READERS_GRACE)
            db.executemany("UPDATE files SET deletable_at = ? WHERE path = ?", [(expiry, file.path) for file in dead])
            organizations = {file.organization for file in [*landed, *dead]}
            epochs = dict.fromkeys(organizations, 0) | dict(old["epochs"])
            db.executemany("INSERT INTO epochs VALUES (?, ?)", [(name, epoch + 1) for name, epoch in epochs.items()])
            db.executemany("INSERT INTO zones VALUES (?, ?)", self._zones(old))
            db.executemany("INSERT INTO last_runs VALUES (?, ?)", old["last_runs"])
            db.executemany("INSERT INTO erasures VALUES (?, ?, ?, ?, ?)", old["erasures"])
            db.executemany("INSERT INTO copies VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", old["copies"])
            db.executemany("INSERT INTO marks VALUES (?, ?)", old["marks"])
            db.executemany("INSERT INTO arrivals VALUES (?, ?, ?, ?, ?)", old["arrivals"])
            db.executemany("INSERT INTO behaviour_off VALUES (?)", old["behaviour_off"])
            self._insert_pending(db, old)
            db.execute("UPDATE generation SET number = ?", [self._generation])
            for organization, links in newest_links(self.root).items():
                insert_links(db, organization, links, datetime.now(UTC))

    def _checked_file(self, file: VisitFile, sha256: str | None) -> LandedFile:
        """Check a file that counts, and move it back if it was moved to unknown/. Raises LakeDamaged."""
        if sha256 is None:
            try:
                with pq.ParquetFile(file.path, page_checksum_verification=True) as parquet:
                    for _ in parquet.iter_batches():
                        pass
            except UNREADABLE as error:
                raise LakeDamaged(f"{file.path} cannot be read: {' '.join(str(error).split())}.") from error
        if file.path.is_relative_to(self.root / "unknown"):
            target = self.root / "visits" / file.path.relative_to(self.root / "unknown")
            move_durably(file.path, target)
            file = file._replace(path=target)
        return _record(file, self.root, sha256 or sha256_of(file.path))

    def _insert_batches(self, db: sqlite3.Connection, old: OldManifest) -> None:
        records = [
            (file.footer.organization, batch)
            for file in [*self.plan.counted, *self.plan.replaced]
            for batch in file.footer.batches
        ]
        objects = list(old["objects"])
        for organization in sorted({name for name, _ in records}):
            for batch in merged_batches(batch for name, batch in records if name == organization):
                if batch.sha256 and batch.imported_at and batch.size:
                    key, *columns, version = astuple(batch)
                    db.execute(_BATCH, [key, organization, *columns])
                    objects += [(organization, *version, organization, batch.sha256)] if version else []
        db.executemany(_BATCH, old["batches"])
        db.executemany(_OBJECT, objects)

    def _zones(self, old: OldManifest) -> list[tuple[str, str]]:
        """The zone of each organization. Raises LakeDamaged if visits that would count are dated in two zones."""
        dated = defaultdict[str, dict[str, str]](dict)
        for organization, zone in old["zones"]:
            dated[organization][zone] = "the old manifest"
        for _, organization, *_, zone in old["pending"]:
            dated[organization][zone] = "visits that wait for their file"
        for file in self.plan.counted:
            dated[file.footer.organization][file.footer.zone] = str(file.path)
        for organization, zones in dated.items():
            if len(zones) > 1:
                which = "; ".join(f"{zone}: {where}" for zone, where in sorted(zones.items()))
                raise LakeDamaged(
                    f"visits of {organization} are dated in {len(zones)} time zones ({which}); move the files of the "
                    "wrong one out of the lake, then rebuild again."
                )
        return [(organization, zone) for organization, zones in sorted(dated.items()) for zone in zones]

    def _insert_pending(self, db: sqlite3.Connection, old: OldManifest) -> None:
        """Take over the pending visits that are in no file, and never number others like earlier ones."""
        ranges = [(file.footer.organization, part) for file in self.plan.files for part in file.footer.pending]
        rows = [
            (key, organization, *rest)
            for key, organization, *rest in old["pending"]
            if not any(name == organization and part.contains(PendingRange(key, key)) for name, part in ranges)
            or not _is_readable(rest[2])
        ]
        db.executemany("INSERT INTO pending VALUES (?, ?, ?, ?, ?, ?)", rows)
        for row in sorted([*old["received"], *((organization, *part.times) for organization, part in ranges)]):
            note_received(db, *row)
        last = max([0, *(part.last for _, part in ranges), *(row[0] for row in old["pending"])])
        db.execute("DELETE FROM sqlite_sequence WHERE name = 'pending'")
        db.execute("INSERT INTO sqlite_sequence (name, seq) VALUES ('pending', ?)", [last])


@contextmanager
def locked_for_rebuild(root: Path) -> Iterator[Path]:
    """Lock all other programs out of a lake; yields its absolute path.

    Raises BadInput without a lake there, Conflict while another program has it open.
    """
    root = root.absolute()
    if not (root / "visits").is_dir():
        raise BadInput(f"no lake at {root}; name another with TRAFFIC_LAKE.")
    with exclusive(root):
        yield root


def _record(file: VisitFile, root: Path, sha256: str) -> LandedFile:
    stat = file.path.stat()
    return LandedFile(
        *partition_of(file.path), file.path.relative_to(root).as_posix(), file.visits, stat.st_size, sha256,
        stat.st_ctime_ns, stat.st_ino, datetime.now(UTC), file.footer.unfinished_of, file.schema_version,
        file.footer.behaviour_version,
    )  # fmt: skip


def _is_readable(body: bytes) -> bool:
    """Whether pending visits could be moved into a file; if not, they wait on while those after them are moved."""
    try:
        unpack(body)
    except LakeDamaged:
        return False
    return True
