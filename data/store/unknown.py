"""Unknown files: visit files that are not in the manifest, because of a crash or a lost or outdated manifest.

No query reads them. Except for leftovers from killed merges and expired visits, they are never deleted automatically,
because they may be the only copy of some visits: after a day, they are moved to the folder unknown/. `traffic rebuild`
makes them count or deletes them.
"""

import logging
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Final

from data.disk.files import move_durably
from data.errors import LakeDamaged
from data.local_time import today
from data.manifest.clock import is_recent
from data.store.footers import VisitFile, readable_visit_file
from data.store.lake import Lake
from data.store.landing import atomic_write, write_visits
from data.text import plural
from data.visits import VISITS

_LOG: Final = logging.getLogger(__name__)
MOVED_AFTER: Final = timedelta(days=1)
"""The age at which an unknown file is moved out of visits/."""


def unknown_files(lake: Lake, organization: str = "") -> list[Path]:
    """Return the visit files of one organization, or of all, that are not in the manifest, sorted."""
    pattern = f"organization={organization or '[!_]*'}/day=*/*"
    paths = [path for folder in ("visits", "unknown") for path in (lake.root / folder).glob(pattern)]
    registered = {lake.root / path for path in lake.manifest.files.paths()}
    unknown = sorted(path for path in paths if path not in registered)
    if not unknown:
        return []
    no_moves = nullcontext() if lake.is_read_only else lake.manifest.locked()
    with no_moves:  # no other process moves files during this check
        return [
            path for path in unknown if path.is_file() and not lake.manifest.files.is_registered(_relative(lake, path))
        ]


def partition_of(path: Path) -> tuple[str, date]:
    """Return a visit file's organization and day, from its folders. Raises LakeDamaged."""
    try:
        day = date.fromisoformat(path.parent.name.removeprefix("day="))
    except ValueError:
        raise LakeDamaged(f"{path} is not in a day's folder; move it out of the lake.") from None
    return path.parent.parent.name.removeprefix("organization="), day


def clear_unknown(lake: Lake) -> int:
    """Delete leftovers from killed merges, and move other unknown files that are a day old to unknown/.

    Returns the number of deleted files. Ages are measured by the file system's clock, which may differ from this
    computer's.
    """
    unknown = [path for path in unknown_files(lake) if path.is_relative_to(lake.root / "visits")]
    leftovers = [path for path in unknown if _is_leftover(lake, path)]
    for path in leftovers:
        path.unlink(missing_ok=True)
    clock = lake.staging / f"clock-{uuid.uuid4()}"
    clock.touch()
    try:
        now = _changed_at(clock)
    finally:
        clock.unlink()
    for path in unknown:
        with _unknown_file_locked(lake, path) as is_unknown:
            if is_unknown and not is_recent(_changed_at(path), MOVED_AFTER, now):
                target = lake.root / "unknown" / path.relative_to(lake.root / "visits")
                move_durably(path, target)
                _LOG.warning("%s is not in the manifest and was moved to %s; see `traffic verify`.", path, target)
    return len(leftovers)


def expire_unknown(
    lake: Lake, age: timedelta, now: datetime, dry_run: bool, organization: str = ""
) -> list[tuple[str, date, int]]:
    """Delete the visits in unknown files for days more than `age` ago, of one organization or of all, unless `dry_run`.

    The days are counted in the zone in each file's footer. Returns each file's organization, day and number of visits
    (0 for an unreadable file). The record in the footer is kept, in a file without visits.
    """
    expired = []
    for path in unknown_files(lake, organization):
        owner, day = partition_of(path)
        file = readable_visit_file(path)
        zone = file.footer.zone if file else lake.manifest.organizations.zone(owner)
        if day >= today(zone, now) - age:
            continue
        with nullcontext(True) if dry_run else _unknown_file_locked(lake, path) as is_unknown:
            if not is_unknown:
                continue
            file = readable_visit_file(path)
            if file is None:
                expired.append((owner, day, 0))
                if not dry_run:
                    path.unlink()
            elif file.visits:
                expired.append((owner, day, file.visits))
                if not dry_run:
                    remove_all_visits(lake, file)
    return expired


def remove_all_visits(lake: Lake, file: VisitFile) -> None:
    """Replace an unknown file with a file that has the same record, but no visits."""
    with atomic_write(file.path, lake.staging) as staged:
        write_visits(VISITS.empty_table(), staged, file.footer)


def describe_unknown(path: Path) -> str:
    """Describe an unknown file: its number of visits, or that it cannot be read."""
    file = readable_visit_file(path)
    return plural(file.visits, "visit") if file else "cannot be read"


def discard_unknown(lake: Lake, paths: Iterable[Path]) -> None:
    """Delete unknown files permanently, except those that an import has registered since they were listed."""
    for path in paths:
        with _unknown_file_locked(lake, path) as is_unknown:
            if is_unknown:
                path.unlink()


@contextmanager
def _unknown_file_locked(lake: Lake, path: Path) -> Iterator[bool]:
    """Yield whether a file exists and is still unknown. Inside the context, no other process moves or registers files.

    A repeated import may have written and registered a file with the same name.
    """
    with lake.manifest.exclusive():
        yield path.is_file() and not lake.manifest.files.is_registered(_relative(lake, path))


def _is_leftover(lake: Lake, path: Path) -> bool:
    """Return whether an unknown file is the result of a merge of source files that are live and contain all of its
    visits.
    """
    file = readable_visit_file(path)
    if file is None:
        return False
    organization, day = partition_of(path)
    sources = {_relative(lake, path.with_name(name)) for name in file.footer.replaces}
    live = [one for one in lake.manifest.files.live(organization, day, day) if one.path in sources]
    paths = [lake.root / one.path for one in live]
    return (
        len(live) > 1
        and sum(one.visits for one in live) == file.visits
        and all(map(lake.manifest.files.is_registered, sources))
        and all(there.is_file() and there.stat().st_size == one.size for there, one in zip(paths, live, strict=True))
    )


def _changed_at(path: Path) -> datetime:
    return datetime.fromtimestamp(path.stat().st_mtime, UTC)


def _relative(lake: Lake, path: Path) -> str:
    return path.relative_to(lake.root).as_posix()
