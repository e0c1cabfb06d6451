"""Compares cases without a server: whole processes in pairs, from the start of a command to its end."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

import pyarrow.parquet as pq

from benchmarks.importing import Ran
from benchmarks.made import DAYS, LAST_DAY, ORGANIZATION
from benchmarks.operations import classified_by_older_rules, lose_manifest
from benchmarks.paired.ratios import Comparison
from benchmarks.paired.trial import Side, Trial

_KEPT_DAYS: Final = 45
_ERASED: Final = "Deleting the files in"
"""Part of the line that a command prints once erased visits no longer count, before it waits for running queries."""


def importing(trial: Trial) -> Iterator[Comparison]:
    """Compare importing the log into a new lake and judging its days."""
    yield from trial.compare_programs("import", lambda side: side.import_log(side.fresh("imported"), trial.log))


def judging(trial: Trial) -> Iterator[Comparison]:
    """Compare the work after a second log has landed: merging, judging and counting days with two files each."""
    first, second = trial.halves()

    def judge(side: Side, _: int) -> dict[str, float]:
        ran = side.import_log(side.copy_of(side.lake(first)), second)
        return {"merge and judge days": ran.seconds - ran.seconds_until("imported from")}

    yield from trial.compare("judging", "s", judge)


def operations(trial: Trial) -> Iterator[Comparison]:
    """Compare an operator's commands on a lake. Each command that changes the lake runs on a new copy."""
    older = {side.name: _of_older_rules(side, trial.log) for side in trial.sides}

    def on_copy(*words: str, until: str = "") -> Callable[[Side], Ran]:
        return lambda side: side.run(side.copy_of(side.lake(trial.log)), *words, until=until)

    def rebuilt(side: Side) -> Ran:
        lake = side.copy_of(side.lake(trial.log))
        lose_manifest(lake)
        return side.run(lake, "rebuild", "--yes")

    erasure = ("erase", "--org", ORGANIZATION, "--short-code", first_path(trial.log).strip("/"), "--yes")
    kept = (datetime.now(UTC).date() - LAST_DAY).days + _KEPT_DAYS
    retention = ("retain", "--days", str(kept), "--yes", "--trust-clock")
    ways: dict[str, Callable[[Side], Ran]] = {
        "verify": lambda side: side.run(side.lake(trial.log), "verify"),
        "backup": lambda side: side.run(side.lake(trial.log), "backup", str(side.fresh("backup"))),
        "erase a link": on_copy(*erasure, until=_ERASED),
        f"retain {_KEPT_DAYS} of {DAYS} days": on_copy(*retention, until=_ERASED),
        "rebuild a lost manifest": rebuilt,
        "reclassify all": lambda side: side.run(side.copy_of(older[side.name]), "reclassify"),
    }
    for name, way in ways.items():
        yield from trial.compare_programs(name, way)


def dashboard(trial: Trial) -> Iterator[Comparison]:
    """Compare printing the dashboard of all days."""
    words = ("query", "dashboard", "--org", ORGANIZATION, "--format", "json", *_days(DAYS))
    yield from trial.compare_programs("query the dashboard", lambda side: side.run(side.lake(trial.log), *words))


def first_path(log: Path) -> str:
    """Return the path of the first request, which is for a link."""
    with log.open(encoding="utf-8") as lines:
        return next(lines).split('"')[1].split()[1].partition("?")[0]


def _days(number: int) -> tuple[str, ...]:
    """Return the options for this many days, up to the last day."""
    return ("--start-date", str(LAST_DAY - timedelta(number - 1)), "--end-date", str(LAST_DAY))


def _of_older_rules(side: Side, log: Path) -> Path:
    """Return a lake with all visits marked as classified by unknown rules."""
    root = side.home / "lake-older"
    if not root.exists():
        side.copy_of(side.lake(log)).rename(root)
        for path in (root / "visits" / f"organization={ORGANIZATION}").rglob("*.parquet"):
            visits = pq.read_table(path, partitioning=None)
            path.unlink()
            pq.write_table(classified_by_older_rules(visits), path)
        lose_manifest(root)
        side.run(root, "rebuild", "--yes")
    return root
