"""Rebuilds the manifest from the visit files when it is lost, damaged or older than the files.

Readable contents of the old manifest are kept, since the files do not record all of them. Rollups are recomputed.
Visits that were pending in a lost manifest are lost, because they are not in any file.
"""

import os
import uuid
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow.parquet as pq

from data.disk.files import READ_ERRORS, move_durably, sha256_of, sync
from data.disk.locks import exclusive
from data.errors import BadInput, LakeDamaged
from data.manifest.contents import NewContents, OldManifest, read_old_manifest, write_manifest
from data.manifest.files import LandedFile
from data.manifest.generation import GenerationCopy
from data.manifest.logs import Batch
from data.progress import Progress, ignore_progress
from data.recovery.rebuild_plan import RebuildPlan, missing_files, plan_rebuild
from data.recovery.repetitions import without_repeated
from data.store.footers import PendingRange, VisitFile, merged_batches
from data.store.link_order import newest_links
from data.store.packing import unpack
from data.store.unknown import partition_of


class RebuildResult(NamedTuple):
    """The totals of the new manifest, the damaged files, and where the old manifest is kept."""

    files: int
    visits: int
    pending: int  # visits that are still pending, from the old manifest
    damaged: list[str]
    copy: Path | None  # the copy of the old manifest


class Rebuild:
    """The rebuild of one lake's manifest, with all other programs locked out."""

    def __init__(self, root: Path, progress: Progress = ignore_progress) -> None:
        self.root = root
        self.old = read_old_manifest(root / "manifest.sqlite")  # None if nothing is readable
        self._copy = GenerationCopy(root)
        self._left: OldManifest = self.old or defaultdict(list)
        self._generation = max([self._copy.number(), *(number for (number,) in self._left["generation"])]) + 1
        known = {path.rpartition("/")[2]: bool(is_live) for path, _, is_live in self._left["files"]}
        self.plan: RebuildPlan = plan_rebuild(root, known, progress)

    def run(self, progress: Progress = ignore_progress) -> RebuildResult:
        """Build the new manifest in .staging, then replace the old manifest, keeping a copy."""
        staged = self.root / ".staging" / f"manifest-{uuid.uuid4()}.sqlite"
        damaged = list(self.plan.damaged)
        for repetition in self.plan.repetitions:  # replace the files that repeat visits of older files
            gone = [repetition.file, *repetition.unfinished]
            self.plan.counted = [file for file in self.plan.counted if file not in gone]
            self.plan.replaced += gone
            self.plan.counted.append(without_repeated(repetition, staged.parent))
        try:
            totals = write_manifest(staged, self._contents(damaged, progress))
            sync(staged)
            old = self.root / "manifest.sqlite"
            copy = old.with_name(f"{old.name}.before-rebuild-{datetime.now(UTC):%Y%m%dT%H%M%S%f}")
            for suffix in ("-wal", "-shm"):  # left by a manifest that cannot be opened
                leftover = old.with_name(f"{old.name}{suffix}")
                if leftover.exists():
                    leftover.rename(copy.with_name(f"{copy.name}{suffix}"))
            if old.exists():
                os.link(old, copy)
            sync(self.root)
            move_durably(staged, old)
            self._copy.raise_to(self._generation)
            return RebuildResult(totals.files, totals.visits, totals.pending, damaged, copy if copy.exists() else None)
        finally:
            for path in staged.parent.glob(f"{staged.name}*"):
                path.unlink()

    def _contents(self, damaged: list[str], progress: Progress) -> NewContents:
        """Return the contents of the new manifest; add messages about missing and unreadable files to `damaged`."""
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
        ranges = [(file.footer.organization, part) for file in plan.files for part in file.footer.pending]
        received = [(organization, *part.times) for organization, part in ranges]
        return NewContents(
            old=old,
            generation=self._generation,
            batches=self._batches(),
            files=landed,
            replaced=dead,
            zones=self._zones(old),
            pending=_still_pending(old, ranges),
            received=sorted([*old["received"], *received]),
            last_pending=max([0, *(part.last for _, part in ranges), *(row[0] for row in old["pending"])]),
            links=newest_links(self.root),
        )

    def _checked_file(self, file: VisitFile, sha256: str | None) -> LandedFile:
        """Return the record of a file that counts, after moving it back to visits/ if it is in unknown/.

        If the old manifest does not have its hash, the whole file is read first. Raises LakeDamaged if that fails.
        """
        if sha256 is None:
            try:
                with pq.ParquetFile(file.path, page_checksum_verification=True) as parquet:
                    for _ in parquet.iter_batches():
                        pass
            except READ_ERRORS as error:
                raise LakeDamaged(f"{file.path} cannot be read: {' '.join(str(error).split())}.") from error
        if file.path.is_relative_to(self.root / "unknown"):
            target = self.root / "visits" / file.path.relative_to(self.root / "unknown")
            move_durably(file.path, target)
            file = file._replace(path=target)
        return _record(file, self.root, sha256 or sha256_of(file.path))

    def _batches(self) -> list[tuple[str, Batch]]:
        """Return the imports that the footers record in full, with their organizations."""
        records = [
            (file.footer.organization, batch)
            for file in [*self.plan.counted, *self.plan.replaced]
            for batch in file.footer.batches
        ]
        return [
            (organization, batch)
            for organization in sorted({name for name, _ in records})
            for batch in merged_batches(batch for name, batch in records if name == organization)
            if batch.sha256 and batch.imported_at and batch.size
        ]

    def _zones(self, old: OldManifest) -> list[tuple[str, str]]:
        """Return each organization's zone. Raises LakeDamaged if an organization's visits are in several zones."""
        dated = defaultdict[str, dict[str, str]](dict)
        for organization, zone in old["zones"]:
            dated[organization][zone] = "the old manifest"
        for _, organization, *_, zone in old["pending"]:
            dated[organization][zone] = "pending visits"
        for file in self.plan.counted:
            dated[file.footer.organization][file.footer.zone] = str(file.path)
        for organization, zones in dated.items():
            if len(zones) > 1:
                which = "; ".join(f"{zone}: {where}" for zone, where in sorted(zones.items()))
                raise LakeDamaged(
                    f"visits of {organization} are dated in {len(zones)} time zones ({which}); move the files in "
                    "the wrong zone out of the lake, then rebuild again."
                )
        return [(organization, zone) for organization, zones in sorted(dated.items()) for zone in zones]


def _still_pending(old: OldManifest, ranges: list[tuple[str, PendingRange]]) -> list[tuple[Any, ...]]:
    """Return the rows of pending visits that are not in any file yet or cannot be read.

    `ranges` are the ranges of rows that were moved into files, each with its organization.
    """
    return [
        (key, organization, *rest)
        for key, organization, *rest in old["pending"]
        if not any(name == organization and part.contains(PendingRange(key, key)) for name, part in ranges)
        or not _is_readable(rest[2])
    ]


@contextmanager
def locked_for_rebuild(root: Path) -> Iterator[Path]:
    """Lock all other programs out of a lake and yield its absolute path.

    Raises BadInput if the lake is missing or read-only, and Conflict if another program has it open.
    """
    root = root.absolute()
    if not (root / "visits").is_dir():
        raise BadInput(f"there is no lake at {root}; set TRAFFIC_LAKE to another folder.")
    for path in (root, root / "manifest.sqlite"):
        if path.exists() and not os.access(path, os.W_OK):
            raise BadInput(
                f"{path} cannot be written, and a rebuild replaces the manifest; run it as the owner of the lake, "
                f"or on a copy of {root}."
            )
    with exclusive(root):
        yield root


def _record(file: VisitFile, root: Path, sha256: str) -> LandedFile:
    stat = file.path.stat()
    return LandedFile(
        *partition_of(file.path), file.path.relative_to(root).as_posix(), file.visits, stat.st_size, sha256,
        stat.st_ctime_ns, stat.st_ino, datetime.now(UTC), file.footer.unfinished_of, file.schema_version,
        file.footer.behaviour_version, file.footer.facts,
    )  # fmt: skip


def _is_readable(body: bytes) -> bool:
    """Return whether pending visits can be moved into a file; if not, they stay pending while later visits are
    moved.
    """
    try:
        unpack(body)
    except LakeDamaged:
        return False
    return True
