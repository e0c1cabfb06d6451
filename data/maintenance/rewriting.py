"""Rewriting of live files: what compaction, erasure and reclassification share."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from datetime import date
from itertools import groupby
from typing import Final, NamedTuple, TypeVar

import duckdb

from data.errors import Conflict, LakeDamaged
from data.store.lake import Lake
from data.store.manifest import LandedFile

Part = TypeVar("Part")

Progress = Callable[[int, int], None]
"""Called with the parts done so far and the parts to do."""

MEMORY: Final = "512MB"
"""What an engine may use before it spills into the lake's staging folder."""


class Partition(NamedTuple):
    """The visits of one organization on one UTC day."""

    organization: str
    day: date


def partitions(lake: Lake, organization: str) -> Iterator[tuple[Partition, list[LandedFile]]]:
    """Every day of an organization that has visits, oldest first, with its live files."""
    files = sorted(lake.manifest.live_files(organization), key=lambda file: file.day)
    for day, of_day in groupby(files, lambda file: file.day):
        yield Partition(organization, day), list(of_day)


def readable(lake: Lake, *files: LandedFile) -> list[str]:
    """The paths by which SQL reads live files, by name: with the seed before them, they have every column of today."""
    return [lake.seed_visits, *(lake.verified_path(file) for file in files)]


@contextmanager
def rewriting_engine(lake: Lake) -> Iterator[duckdb.DuckDBPyConnection]:
    """An engine for visits, which hold no addresses. Raises LakeDamaged for what it cannot read or finish."""
    with closing(duckdb.connect()) as engine:
        engine.execute("SET TimeZone = 'UTC'")
        engine.execute("SET memory_limit = $memory", {"memory": MEMORY})
        engine.execute("SET temp_directory = $folder", {"folder": str(lake.staging / "engine")})
        try:
            yield engine
        except duckdb.Error as error:
            raise LakeDamaged(f"visits cannot be read or rewritten: {' '.join(str(error).split())}") from error


def rewrite_each(
    lake: Lake,
    parts: Sequence[Part],
    rewrite: Callable[[Part], None],
    *,
    wait: bool,
    limit: int | None,
    progress: Progress | None,
) -> int:
    """Rewrite one part after the other, at most so many; how many that were.

    Without `wait`, a part is left as it is while another process rewrites. So is one that changed meanwhile or that has
    a damaged file; once the others are done, LakeDamaged is raised for the first damage.
    """
    done, damage = 0, None
    for number, part in enumerate(parts, 1):
        try:
            with lake.rewrite_lock(wait) as has_lock, suppress(Conflict):  # then the next run does it
                if has_lock:
                    rewrite(part)
                    done += 1
        except (LakeDamaged, duckdb.Error) as error:
            damage = damage or error
        if progress:
            progress(number, len(parts))
        if done == limit:
            return done
    if damage:
        raise damage
    return done
