"""Runs the detectors on an organization's visits to find jobs, and measures the subjects of jobs."""

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from typing import Any, Final

from queries import fields as f
from queries.catalog import Entry
from queries.detectors import DETECTORS, Detector, JobKind
from queries.engine import Engine
from queries.fields import as_nullable
from queries.scope import Scope
from queries.snapshot import Snapshot
from queries.warehouse import Result

DETECTED_DAYS: Final = 28
_WEEKS: Final = DETECTED_DAYS // 7
_WEIGHT_OF_PERSON: Final = 10
REDIRECTED: Final = Entry("jobs/redirected.measure", "rows", (f.SUBJECT_NUMBER, f.ON_DAY, f.VISITS, f.FIRST_SEEN))
GUESSES: Final = Entry("jobs/guesses", "rows", (f.PATH, as_nullable(f.TARGET_URL), f.VISITS, f.SIMILARITY))
_SUBJECT_COLUMNS: Final = tuple(dict.fromkeys(name for one in DETECTORS.values() for name in one.subject))


@dataclass(frozen=True)
class Finding:
    """A problem with one subject, found by a detector."""

    type: str
    organization: str
    subject: dict[str, str | None]  # the values that identify it, by column
    row: dict[str, Any]
    """The row of the detector's answer, ready for JSON: times are strings in UTC with Z, in whole seconds."""
    weight: float  # average requests per week; each person counts as ten requests


def days_before(as_of: date) -> tuple[date, date]:
    """Return the first and the last of the 28 complete days before the day `as_of`."""
    return as_of - timedelta(days=DETECTED_DAYS), as_of - timedelta(days=1)


def detect(
    engine: Engine,
    detector: Detector,
    organization: str,
    as_of: date,
    cancelled: threading.Event | None = None,
    *,
    explain: Sequence[str] = (),
    shared: Snapshot | None = None,
) -> list[Finding]:
    """Return the findings in the 28 complete days before `as_of`: at most 100, in the order of the detector's SQL.

    Days that have not been judged are left out, unless behaviour is switched off. `cancelled` is passed to
    `Engine.answer`. With `explain`, only conditions with these reasons must be met; with ("",), none must be met, so
    that everything that the detector considers becomes a finding. A cluster ignores `explain`. `shared` is the
    snapshot that `share_detected` returned for these days.

    Raises the exceptions of `Engine.answer` and, unless `shared` is given, of `live_files`.
    """
    snapshot = shared or engine.snapshot(_detected_scope(organization, as_of))
    asked = replace(snapshot, explain=explain) if explain else snapshot
    rows = _as_rows(engine.answer(detector.entry, asked, cancelled))
    if detector.only:
        column, value = detector.only
        rows = [row for row in rows if row[column] is value]
    found = []
    for row in rows:
        fetches = row[detector.fetches] if detector.fetches else 0
        people = row[detector.people] if detector.people else 0
        weight = (fetches + _WEIGHT_OF_PERSON * people) / _WEEKS
        shown = {
            name: f"{value.replace(microsecond=0).isoformat()}Z" if isinstance(value, datetime) else value
            for name, value in row.items()
        }
        subject = {name: row[name] for name in detector.subject}
        found.append(Finding(detector.type, organization, subject, shown, weight))
    return found


def left_out(
    engine: Engine, detector: Detector, organization: str, as_of: date, shared: Snapshot | None = None
) -> list[tuple[Finding, str]]:
    """Return the subjects that a detector considers but leaves out, in the order of its SQL, each with the reason.

    The reason names the first unmet condition. At most 100 subjects are considered. Not
    supported on a cluster. Raises the exceptions of `detect`.
    """
    asked: list[str] = [""]
    considered = left = detect(engine, detector, organization, as_of, explain=asked, shared=shared)
    reasons: dict[int, str] = {}
    for reason in detector.reasons:
        asked.append(reason)
        met = [one.subject for one in detect(engine, detector, organization, as_of, explain=asked, shared=shared)]
        reasons |= {id(one): reason for one in left if one.subject not in met}
        left = [one for one in left if one.subject in met]
    return [(one, reasons[id(one)]) for one in considered if id(one) in reasons]


def share_detected(
    engine: Engine, organization: str, as_of: date, cancelled: threading.Event | None = None
) -> Snapshot | None:
    """Read the visits for all detectors once, and return a snapshot that keeps them; None if there are none or too
    many, or if a cluster reads them.

    Use the snapshot for a single run of all detectors, since it would still contain visits that are erased later.
    Raises the exceptions of `detect`.
    """
    snapshot = engine.snapshot(_detected_scope(organization, as_of))
    shared = engine.with_shared_visits(snapshot, [one.entry for one in DETECTORS.values()], cancelled)
    return shared if shared.in_memory else None


def measure_all(  # noqa: PLR0917  # called in this order everywhere
    engine: Engine,
    kind: JobKind,
    organization: str,
    subjects: Sequence[Mapping[str, str | None]],
    start: date,
    end: date,
    cancelled: threading.Event | None = None,
) -> list[list[tuple[date, int, int]]]:
    """Return, for each subject, its days with visits from `start` to `end` (inclusive), each with the numbers of events
    and visits.

    The visits are read once. The subjects come from findings; `cancelled` is passed to `Engine.answer`. Raises
    ValueError if a subject does not have the columns of this kind's subjects, and the exceptions of `detect`.
    """
    for one in subjects:
        if set(one) != set(kind.subject):
            raise ValueError(f"the subject of {kind.type} has {', '.join(kind.subject)}, not {', '.join(one)}.")
    counts: list[list[tuple[date, int, int]]] = [[] for _ in subjects]
    for row in _about(engine, kind.measure, organization, subjects, (start, end), cancelled):
        counts[row["number"]].append((row["day"], row["events"], row["visits"]))
    return counts


def redirected_days(
    engine: Engine,
    organization: str,
    subject: Mapping[str, str | None],
    days: tuple[date, date],
    cancelled: threading.Event | None = None,
) -> list[tuple[date, int, datetime]]:
    """Return the days on which requests for a subject's path were redirected, or answered as a link, each with the
    number of such requests and the time of the first.

    Raises the exceptions of `detect`.
    """
    rows = _about(engine, REDIRECTED, organization, [subject], days, cancelled)
    return [(row["day"], row["visits"], row["first_seen"]) for row in rows]


def guess_targets(
    engine: Engine, organization: str, subject: Mapping[str, str | None], as_of: date
) -> list[dict[str, Any]]:
    """Return up to three links and paths that clients may have meant when they requested a subject's path.

    They are rows of GUESSES. Each path that is not a link had at least three requests with a status below 400 or
    without a status in the 28 days before `as_of`. Raises the exceptions of `detect`.
    """
    return _about(engine, GUESSES, organization, [subject], days_before(as_of), None)


def _detected_scope(organization: str, as_of: date) -> Scope:
    return Scope(organization, *days_before(as_of), only_judged=True)


def _about(  # noqa: PLR0917  # as measure_all
    engine: Engine,
    entry: Entry,
    organization: str,
    subjects: Sequence[Mapping[str, str | None]],
    days: tuple[date, date],
    cancelled: threading.Event | None,
) -> list[dict[str, Any]]:
    """Return the rows of an entry that joins the relation `subject`, for these subjects and days."""
    domains = {one.get("domain") for one in subjects}
    scope = Scope(organization, *days, domain=domains.pop() if len(domains) == 1 else None)
    bound = [
        {"number": number, **{name: one.get(name) for name in _SUBJECT_COLUMNS}} for number, one in enumerate(subjects)
    ]
    return _as_rows(engine.answer(entry, replace(engine.snapshot(scope), subjects=bound), cancelled))


def _as_rows(answer: Result) -> list[dict[str, Any]]:
    return answer if isinstance(answer, list) else [answer]
