"""Functions for rewriting live files, shared by compaction, erasure, reclassification and rollups."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager, suppress
from datetime import date, datetime, timedelta
from itertools import groupby
from pathlib import Path
from typing import Final, Literal, NamedTuple, TypeVar

import duckdb
from msgspec.structs import replace

from data.disk.files import sha256_of
from data.errors import Conflict, LakeDamaged
from data.manifest.files import LandedFile, Replacement
from data.progress import Progress
from data.store.footers import Footer, replacing_footer
from data.store.lake import Lake
from data.store.landing import Staged, discard, new_path, publisher, write_visits
from data.store.layout import spill_folder
from data.visits import VISITS

Part = TypeVar("Part")
MIN_MEMORY: Final = 192 << 20
"""DuckDB's memory limit in bytes, above which it spills into the lake's staging folder.

Five million visits of a day are merged and counted in a process of 501 MB at most; with 160 MB it is 479, with 256 MB
564 and with 512 MB 806 MB.
"""
MEMORY_PER_VISIT: Final = 32
"""Bytes of that limit for each visit that is rewritten or counted at once, where that is more: what spills still
needs memory for each part that it spilled. A day of 15 million visits was merged with 384 MB, and not with 256 MB."""


class Partition(NamedTuple):
    """The visits of one organization on one UTC day."""

    organization: str
    day: date


def partitions(lake: Lake, organization: str) -> Iterator[tuple[Partition, list[LandedFile]]]:
    """The partitions of an organization, oldest first, each with its live files."""
    files = sorted(lake.manifest.files.live(organization), key=lambda file: file.day)
    for day, group in groupby(files, lambda file: file.day):
        yield Partition(organization, day), list(group)


def readable(lake: Lake, *files: LandedFile) -> list[str]:
    """The paths of live files for `read_parquet(…, union_by_name := TRUE)`. The seed adds columns that they lack.

    Each is hashed: what is written from bytes that a disk changed would have a valid checksum. Raises LakeDamaged.
    """
    paths = [lake.verified_path(file) for file in files]
    for path, file in zip(paths, files, strict=True):
        if sha256_of(Path(path)) != file.sha256:
            lake.recheck(file)
    return [lake.seed_visits, *paths]


class Policy(NamedTuple):
    """How a task replaces files, beside what it writes into the new ones."""

    locks: Literal["others", "rewriters", "none"]
    """Who waits meanwhile: all that land or rewrite visits, only others that rewrite them, or the task sees to it."""
    changes_answers: bool
    """Whether answers and rollups that were computed from the old files are out of date."""
    judges: bool = False
    """Whether visits get signals: answers are out of date then, but rollups of other days are not."""
    erases: bool = False
    """Whether visits are gone: copies have to follow, and the rest of an unfinished last line must not land."""


MERGING: Final = Policy("none", changes_answers=False)
JUDGING: Final = Policy("none", changes_answers=False, judges=True)
RECLASSIFYING: Final = Policy("others", changes_answers=True)
RETAINING: Final = Policy("rewriters", changes_answers=True, erases=True)
ERASING: Final = Policy("others", changes_answers=True, erases=True)


class Rewrite:
    """The files of one organization that are being rewritten, and those that replace them."""

    def __init__(self, lake: Lake) -> None:
        self._lake = lake
        self.replaced: list[LandedFile] = []
        self.staged: list[Staged] = []
        self._removed: list[LandedFile] = []

    def stage(self, files: Sequence[LandedFile], visits: int, behaviour_version: int = 0) -> tuple[Path, Footer]:
        """Replace files of a day by one with so many visits; return where it is to be written, and with which footer.

        `behaviour_version` is that by which its visits were judged.
        """
        first = files[0]
        staged = Staged(new_path(self._lake), first.organization, first.day, visits, first.unfinished_of)
        self.staged.append(staged._replace(behaviour_version=behaviour_version))
        self.replaced += files
        return staged.path, replace(replacing_footer(self._lake, files), behaviour_version=behaviour_version)

    def remove(self, files: Sequence[LandedFile]) -> None:
        """Replace files by nothing."""
        self.replaced += files
        self._removed += files

    def commit(self, policy: Policy, now: datetime, grace: timedelta) -> list[LandedFile]:
        """Make the new files live and the old ones dead, which are deleted after `grace`; return the new ones."""
        if not self.replaced:
            return []
        earlier: list[LandedFile] = []
        if policy.erases:
            self._skip_rest()
        if self._removed:
            earlier = self._stage_removal_record()
        replacement = Replacement(
            [*self.replaced, *earlier],
            deletable_at=now + grace,
            changes_answers=policy.changes_answers,
            judges=policy.judges,
            erased_at=now if policy.erases else None,
        )
        return self._lake.manifest.replace(replacement, publisher(self._lake, self.staged))

    def _skip_rest(self) -> None:
        """Skip the rest of unfinished last lines whose visits are removed; otherwise the next import would add them.

        A line that an import has read to its end meanwhile has no live file any more.
        """
        stay = {file.unfinished_of for file in self.staged} | {None}
        lines = [(file.unfinished_of, file.path) for file in self.replaced if file.unfinished_of not in stay]
        if lines:
            self._lake.manifest.logs.skip_rest(lines)

    def _stage_removal_record(self) -> list[LandedFile]:
        """Write a file without visits, which records that live files are removed.

        Returns the earlier records that it includes and replaces. It keeps the logs of the removed visits imported, and
        the visits removed, if the manifest is lost.
        """
        earlier = self._lake.manifest.files.removal_records(self._removed[0].organization)
        footer = replacing_footer(self._lake, self._removed, earlier)
        self.staged.append(Staged(new_path(self._lake), footer.organization, footer.day, 0))
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
    """Replace live files of an organization at once, by what `produce` stages and removes; return the new files.

    `produce` runs under the locks of the policy, so it lists the files itself. Whatever fails or is killed, the old
    files stay live. Raises Conflict when one of them was replaced meanwhile, and what `produce` raises.
    """
    work = Rewrite(lake)
    try:
        with ExitStack() as locks:
            if policy.locks == "others":
                locks.enter_context(lake.write_lock())
            if policy.locks != "none":
                locks.enter_context(lake.rewrite_lock(organization=organization))
            produce(work)
            return work.commit(policy, now(), grace)
    finally:
        discard(lake, work.staged)


@contextmanager
def rewriting_engine(staging: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """A DuckDB connection that may spill to disk (visits contain no IP addresses). DuckDB errors become LakeDamaged."""
    with closing(duckdb.connect()) as engine:
        engine.execute("SET TimeZone = 'UTC'")
        limit_memory(engine)
        folder, has_closed = spill_folder(staging, engine)
        try:
            engine.execute("SET temp_directory = $folder", {"folder": folder})
            yield engine
        except duckdb.Error as error:
            raise LakeDamaged(f"visits cannot be read or rewritten: {' '.join(str(error).split())}") from error
        finally:
            engine.close()
            has_closed()


def limit_memory(engine: duckdb.DuckDBPyConnection, visits: int = 0) -> None:
    """Set the memory limit of a rewriting engine to what it needs to rewrite so many visits at once."""
    engine.execute("SET memory_limit = $bytes", {"bytes": f"{max(MIN_MEMORY, visits * MEMORY_PER_VISIT)}B"})


def until_memory_suffices(rewrite: Callable[[int], None], sizes: Sequence[int]) -> None:
    """Call `rewrite` with the first size; with the next one if a rewriting engine ran out of memory, and so on.

    Visits with long texts of clients, such as user agents, may need a hundred times the memory of others.
    """
    for size in sizes:
        try:
            rewrite(size)
        except (duckdb.OutOfMemoryException, OSError) as error:  # OSError: from Arrow, which reads DuckDB's results
            if "Out of Memory" not in str(error) or size == sizes[-1]:
                raise
        else:
            return


def run_side_by_side(rewrites: Sequence[Callable[[], None]]) -> None:
    """Call each in a thread of its own. All are tried before an error is raised, other errors before a Conflict."""
    if len(rewrites) == 1:  # in this thread, in which Ctrl-C interrupts it
        rewrites[0]()
        return
    with ThreadPoolExecutor(len(rewrites)) as pool:
        running = [pool.submit(rewrite) for rewrite in rewrites]
    errors = [error for done in running if (error := done.exception())]
    for error in sorted(errors, key=lambda error: isinstance(error, Conflict)):
        raise error


class InterruptibleEngine:
    """The rewriting engine of a task of maintenance, open while the task runs, which another thread may interrupt.

    It may be opened several times: each is an engine of its own, and all are interrupted.
    """

    def __init__(self, lake: Lake) -> None:
        self._lake = lake
        self._connections: list[duckdb.DuckDBPyConnection] = []

    @contextmanager
    def open(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """A rewriting_engine of one thread: the other cores are left to queries."""
        with rewriting_engine(self._lake.staging) as connection:
            connection.execute("SET threads = 1")
            self._connections.append(connection)
            try:
                yield connection
            finally:
                self._connections.remove(connection)

    def interrupt(self) -> None:
        """Cancel the queries that run, from another thread: they end with LakeDamaged. Otherwise does nothing."""
        for connection in [*self._connections]:
            with suppress(duckdb.Error):  # the connection may have just been closed
                connection.interrupt()


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
    """Rewrite the parts of a queue, which leave it, one by one, `limit` at most; return how many were rewritten.

    Each is of one organization. Parts are skipped that have changed meanwhile or have a damaged file, and without
    `wait` also while others rewrite files of the organization. After the others are done, LakeDamaged is raised for
    the first damaged file.
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
