"""The record in a visit file's footer: everything needed to rebuild a lost manifest from the files alone."""

from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Final, NamedTuple

import msgspec
import pyarrow.parquet as pq
from msgspec.structs import replace

from data.disk.files import READ_ERRORS, version_of, versioned
from data.errors import LakeDamaged
from data.local_time import DEFAULT_ZONE
from data.manifest.coverage import is_pause, span
from data.manifest.files import LandedFile
from data.manifest.logs import Batch
from data.manifest.pending import session_of
from data.store.lake import Lake
from data.visits import SCHEMA_VERSION

_KEY: Final = "traffic.file"


class PendingRange(msgspec.Struct, frozen=True, array_like=True):
    """Pending visits that were moved into files: the ids of the first and the last row, in one session."""

    first: int
    last: int
    first_at: str = ""  # when these rows were received
    last_at: str = ""

    @property
    def times(self) -> tuple[str, str]:
        """The times when the first and the last of the rows were received."""
        return self.first_at, self.last_at

    def contains(self, other: "PendingRange") -> bool:
        """Return whether this range contains all rows of another."""
        return self.first <= other.first and other.last <= self.last


class Footer(msgspec.Struct, frozen=True, omit_defaults=True):
    """The record in a visit file's footer."""

    organization: str
    day: date
    written_at: datetime
    batches: tuple[Batch, ...] = ()  # the batches that contributed to the file
    pending: tuple[PendingRange, ...] = ()
    replaces: tuple[str, ...] = ()  # the names of the files that this file replaces; a name is never reused
    unfinished_of: int | None = None
    zone: str = DEFAULT_ZONE  # the time zone of the day
    behaviour_version: int = 0  # as in LandedFile
    facts: int = 0  # as in LandedFile

    @property
    def metadata(self) -> dict[str, str]:
        """The record and the visits' schema version, as key-value metadata for a Parquet file."""
        return {**versioned(SCHEMA_VERSION), _KEY: msgspec.json.encode(self).decode()}


class VisitFile(NamedTuple):
    """A visit file on disk, described by its footer."""

    path: Path
    visits: int
    schema_version: int
    footer: Footer


def read_visit_file(path: Path) -> VisitFile:
    """Read the footer of a visit file. Raises LakeDamaged if it cannot be read."""
    try:
        parquet = pq.read_metadata(path)
        record = (parquet.metadata or {}).get(_KEY.encode())
        if record is None:
            raise ValueError("its footer has no record, so this program did not write it")
        return VisitFile(path, parquet.num_rows, version_of(parquet), msgspec.json.decode(record, type=Footer))
    except (*READ_ERRORS, msgspec.MsgspecError) as error:
        raise LakeDamaged(f"{path} cannot be read: {' '.join(str(error).split())}.") from error


def readable_visit_file(path: Path) -> VisitFile | None:
    """Read the footer of a visit file as read_visit_file does; return None if it cannot be read."""
    with suppress(LakeDamaged):
        return read_visit_file(path)
    return None


def footer_of(
    organization: str,
    day: date,
    batches: Iterable[Batch] = (),
    *,
    pending: Iterable[PendingRange] = (),
    replaces: Collection[str] = (),
    unfinished_of: int | None = None,
    zone: str = DEFAULT_ZONE,
) -> Footer:
    """Return the footer for a file that is being written."""
    names = tuple(sorted({Path(path).name for path in replaces}))
    written_at = datetime.now(UTC)
    return Footer(organization, day, written_at, merged_batches(batches), tuple(pending), names, unfinished_of, zone)


def replacing_footer(lake: Lake, files: Sequence[LandedFile], removals: Sequence[LandedFile] = ()) -> Footer:
    """Return the footer for a file that replaces live files of one organization, with the day of the last of these
    files.

    `removals` are files that record earlier removals, which the new record includes. Files with an unreadable footer
    are ignored.
    """
    removed, kept = (
        [there.footer for file in some if (there := readable_visit_file(lake.root / file.path))]
        for some in (removals, files)
    )
    footers = [*removed, *kept]
    batches = merged_batches(batch for footer in footers for batch in footer.batches)
    registered = lake.manifest.logs.batches_by_id(batch.id for batch in batches)
    # these are still on disk; deleting one does not break a chain of replacements
    dead = {Path(file.path).name for file in lake.manifest.files.dead(files[-1].organization)}
    earlier = [name for footer in removed for name in footer.replaces]
    earlier += [name for footer in footers for name in footer.replaces if name in dead]
    return footer_of(
        files[-1].organization,
        files[-1].day,
        [*batches, *registered],  # registered batches may have grown since
        pending=merged_ranges(part for footer in footers for part in footer.pending),
        replaces=[*(file.path for file in (*files, *removals)), *earlier],
        unfinished_of=files[-1].unfinished_of if len(files) == 1 else None,
        zone=lake.manifest.organizations.zone(files[-1].organization),
    )


def merged_batches(records: Iterable[Batch]) -> tuple[Batch, ...]:
    """Merge the records of each batch: keep the record with the longest content, preferably of a finished import, and
    the earliest and latest times of all records.
    """
    merged: dict[int, Batch] = {}
    for record in records:
        other = merged.get(record.id, record)
        longest = max(other, record, key=lambda one: (bool(one.imported_at), one.size, one.whole_size, one.visits))
        first_at, last_at = span((other.first_at, other.last_at), (record.first_at, record.last_at))
        version = other.object or record.object
        merged[record.id] = replace(longest, first_at=first_at, last_at=last_at, object=version)
    return tuple(merged[key] for key in sorted(merged))


def merged_ranges(ranges: Iterable[PendingRange]) -> tuple[PendingRange, ...]:
    """Join the ranges of pending rows of each session.

    Rows leave the table oldest first, so the rows between two ranges have also been moved. Ranges with a long pause
    between them stay separate, as intervals in `received` do.
    """
    merged: list[PendingRange] = []
    for part in sorted(ranges, key=lambda part: (part.first, part.last)):
        last = merged[-1] if merged else None
        if last and session_of(last.last) == session_of(part.first) and not is_pause(last.last_at, part.first_at):
            merged[-1] = PendingRange(last.first, max(last.last, part.last), *span(last.times, part.times))
        else:
            merged.append(part)
    return tuple(merged)
