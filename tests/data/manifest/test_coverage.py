"""A day is covered if logs and reported visits leave at most 12 hours of it missing."""

from datetime import UTC, date, datetime
from pathlib import Path

import pytest

from data import Lake
from data.ingest.importer import Importer, Options
from data.store.pending import enqueue, flush_all
from data.tasks.compaction import Compactor
from tests.faults.lakes import line
from tests.support.lakes import rebuilt
from tests.support.visits import packed, visit

LATER = datetime(2026, 2, 1, tzinfo=UTC)
JANUARY = date(2026, 1, 1), date(2026, 1, 31)


def imported(lake: Lake, log: Path, *moments: datetime, domain: str = "go.example") -> None:
    """Import a log of visits at these times, or an existing log that has grown by these visits."""
    with log.open("a") as lines:
        lines.writelines(line(f"/{moment:%d%H}", when=moment) for moment in moments)
    Importer(lake, lambda: LATER).run(log, Options("acme", domain))


def reported(lake: Lake, *moments: datetime) -> None:
    """Report a visit at each of these times, and move the visits into files together."""
    for moment in moments:
        enqueue(lake.manifest, [("acme", packed([visit(visited_at=moment.replace(tzinfo=None))]))], moment)
    flush_all(lake)


def covered(lake: Lake, domain: str = "go.example") -> list[int]:
    """Merge the files for each day; return the covered days in January."""
    Compactor(lake, lambda: LATER).run()
    return [day.day for day in sorted(lake.manifest.coverage.covered_days("acme", domain, *JANUARY))]


def at(day: int, hour: int = 0) -> datetime:
    return datetime(2026, 1, day, hour, tzinfo=UTC)


@pytest.mark.parametrize(
    ("logs", "days"),
    [
        ([("a", at(3, 11), at(9, 13))], [3, 4, 5, 6, 7, 8, 9]),  # from the first visit to the last, however quiet
        ([("a", at(3, 13), at(5, 11))], [4]),  # more than half of days 3 and 5 is missing
        ([("a", at(3), at(4, 23)), ("b", at(5, 10), at(6, 23)), ("c", at(9), at(10, 23))], [3, 4, 5, 6, 9, 10]),
        ([("a", at(3), at(4, 23)), ("a", at(8)), ("a", at(9, 13))], [3, 4, 5, 6, 7, 8, 9]),  # a grown log
    ],
)
def test_logs_cover_their_days_and_short_pauses_but_not_gaps(lake, tmp_path, logs, days):
    for name, *moments in logs:
        imported(lake, tmp_path / name, *moments)
    assert covered(lake) == days


def test_a_log_covers_its_domain_and_all_domains_together(lake, tmp_path):
    imported(lake, tmp_path / "a.log", at(3), at(4, 13))
    imported(lake, tmp_path / "b.log", at(3), at(6, 13), domain="other.example")
    assert (covered(lake), covered(lake, "other.example"), covered(lake, "")) == ([3, 4], [3, 4, 5, 6], [3, 4, 5, 6])


def test_reported_visits_cover_their_days_but_not_long_pauses(lake):
    reported(lake, at(3), at(3, 11))  # and nothing more for 13 hours
    reported(lake, *(at(day, hour) for day in (4, 5) for hour in (0, 12)))
    reported(lake, at(9), at(9, 12))
    assert covered(lake) == [4, 5, 9]


@pytest.mark.parametrize("is_lost", [True, False])
def test_coverage_survives_a_rebuild(lake, tmp_path, is_lost):
    imported(lake, tmp_path / "a.log", at(3), at(4, 23))
    imported(lake, tmp_path / "a.log", at(8))
    reported(lake, at(10), at(10, 12))
    reported(lake, at(12), at(12, 12))
    before = covered(lake)
    assert before == [3, 4, 5, 6, 7, 10, 12]
    with rebuilt(lake, is_lost=is_lost) as again:
        assert covered(again) == before
