"""Replaces live files: acquires the locks of a policy, and stages, hashes, moves and registers the new files.

Tasks produce the new contents; their policies describe how else they differ (data/manifest/policies.py).
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from datetime import date, datetime, timedelta
from functools import reduce
from itertools import groupby
from operator import or_
from pathlib import Path
from typing import NamedTuple, TypeVar

import duckdb
from msgspec.structs import replace

from data.disk.files import sha256_of
from data.errors import Conflict, LakeDamaged
from data.manifest.files import LandedFile
from data.manifest.policies import Policy
from data.progress import Progress
from data.store.footers import Footer, replacing_footer
from data.store.lake import Lake
from data.store.landing import StagedFile, discard, new_path, prepare_move, write_visits
from data.visits import VISITS

Part = TypeVar("Part")


class Partition(NamedTuple):
    """The visits of one organization on one day in the organization's zone."""

    organization: str
    day: date


def partitions(lake: Lake, organization: str) -> Iterator[tuple[Partition, list[LandedFile]]]:
    """Yield the partitions of an organization, oldest first, each with its live files."""
    files = sorted(lake.manifest.files.live(organization), key=lambda file: file.day)
    for day, group in groupby(files, lambda file: file.day):
        yield Partition(organization, day), list(group)


def readable(lake: Lake, *files: LandedFile) -> list[str]:
    """Return the paths for `read_parquet(…, union_by_name := TRUE)`: the seed, which adds columns that the files lack,
    then the live files.

    Each file is hashed; otherwise, rewriting would give bit rot a valid checksum. Raises LakeDamaged.
    """
    paths = [lake.verified_path(file) for file in files]
    for path, file in zip(paths, files, strict=True):
        if sha256_of(Path(path)) != file.sha256:
            lake.recheck(file)
    return [lake.seed_visits, *paths]


class Rewrite:
    """The files of one organization that are being rewritten, and their replacements."""

    def __init__(self, lake: Lake) -> None:
        self._lake = lake
        self.replaced: list[LandedFile] = []
        self.staged: list[StagedFile] = []
        self._removed: list[LandedFile] = []

    def stage(self, files: Sequence[LandedFile], visits: int, behaviour_version: int = 0) -> tuple[Path, Footer]:
        """Plan to replace the files of a day with one file of this many visits; `commit` replaces them.

        Returns the path and the footer for writing it. `behaviour_version` is the version of the file's signals.
        """
        first = files[0]
        staged = StagedFile(new_path(self._lake), first.organization, first.day, visits, first.unfinished_of)
        facts = reduce(or_, (file.facts for file in files))
        self.staged.append(staged._replace(behaviour_version=behaviour_version, facts=facts))
        self.replaced += files
        footer = replacing_footer(self._lake, files)
        return staged.path, replace(footer, behaviour_version=behaviour_version, facts=facts)

    def remove(self, files: Sequence[LandedFile]) -> None:
        """Remove files without a replacement."""
        self.replaced += files
        self._removed += files

    def commit(self, policy: Policy, now: datetime, grace: timedelta) -> list[LandedFile]:
        """Make the new files live and the old files dead, to be deleted after `grace`; return the new files."""
        if not self.replaced:
            return []
        earlier = self._stage_removal_record() if self._removed else []
        move = prepare_move(self._lake, self.staged)
        return self._lake.manifest.replace([*self.replaced, *earlier], move, policy, now, grace)

    def _stage_removal_record(self) -> list[LandedFile]:
        """Write a file without visits that records the removal of live files.

        Returns the earlier records that it includes and replaces. If the manifest is lost, the record shows that the
        logs of the removed visits were imported, and that the visits must stay removed.
        """
        earlier = self._lake.manifest.files.removal_records(self._removed[0].organization)
        footer = replacing_footer(self._lake, self._removed, earlier)
        self.staged.append(StagedFile(new_path(self._lake), footer.organization, footer.day, 0))
        write_visits(VISITS.empty_table(), self.staged[-1].path, replace(footer, unfinished_of=None))
        return earlier


def rewrite(
    lake: Lake,
    organization: str,
    policy: Policy,
    produce: Callable[[Rewrite], None],
    *,
    now: Callable[[], datetime],
    grace: timedelta,
) -> list[LandedFile]:
    """Replace live files of an organization atomically with the files that `produce` stages; return the new files.

    `produce` runs under the locks of the policy, so it must itself list the files to rewrite. The old files are deleted
    after `grace`. If the rewrite fails or is killed, the old files stay live. Raises Conflict if a file was replaced in
    the meantime, and the exceptions of `produce`.
    """
    work = Rewrite(lake)
    try:
        with ExitStack() as locks:
            if policy.waiting == "imports and rewriters":
                locks.enter_context(lake.import_lock())
            if policy.waiting != "as its caller decides":
                locks.enter_context(lake.rewrite_lock(organization=organization))
            produce(work)
            return work.commit(policy, now(), grace)
    finally:
        discard(lake, work.staged)


def rewrite_each(
    lake: Lake,
    queue: list[Part],
    organization_of: Callable[[Part], str],
    rewrite: Callable[[Part], None],
    *,
    wait: bool,
    limit: int | None,
    progress: Progress,
) -> int:
    """Pop parts from a queue and rewrite them one by one, at most `limit`; return the number of parts rewritten.

    Each part belongs to one organization. Parts that have changed or have a damaged file are skipped; without `wait`,
    so are parts of organizations with files that another program is rewriting. If the queue is empty before
    `limit` is reached, the first LakeDamaged or duckdb.Error is raised.
    """
    done, number, damage = 0, 0, None
    while queue:
        part, number = queue.pop(0), number + 1
        try:
            with lake.rewrite_lock(wait, organization_of(part)) as has_lock, suppress(Conflict):  # left to the next run
                if has_lock:
                    rewrite(part)
                    done += 1
        except (LakeDamaged, duckdb.Error) as error:
            damage = damage or error
        progress(number, number + len(queue))
        if done == limit:
            return done
    if damage:
        raise damage
    return done
