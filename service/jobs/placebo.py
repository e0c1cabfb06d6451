"""Estimates, from an organization's own visits, how many outcomes are false alarms, by judging findings as if they had
been repaired.

Nothing was done on the made-up days of repair, so each "improved" and "worse" is a false alarm, or a fix that no job
records.
"""

from collections import Counter
from datetime import UTC, datetime, time, timedelta
from typing import Final

from data.progress import Progress
from queries import DETECTORS, days_before
from service.jobs.detection import Detection
from service.jobs.findings import causes_of
from service.jobs.outcome import DAYS_BEFORE, LAST_DAY
from service.jobs.redirects import ADD_REDIRECT
from service.jobs.subjects import ShippedJob

EVERY: Final = timedelta(days=7)
"""Interval between the made-up days of repair."""
SHIPPED: Final = "shipped_by_log"
"""Extra outcome: causes with redirects that the log would report as shipped."""
MAX_CAUSES: Final = 20
"""Maximum number of causes per detector and day; the heaviest are judged."""


def placebo(detection: Detection, progress: Progress) -> dict[str, Counter[str]]:
    """Count causes by type and outcome, without the subjects that `read_touched` returns.

    `progress` counts the made-up days. Raises the same exceptions as `detect` and `measure_all`.
    """
    span = detection.lake.manifest.statistics.stored_span(detection.organization)
    found = {kind: Counter[str]() for kind in DETECTORS}
    if span.first_day is None or span.last_day is None:
        return found
    first, last = span.first_day + timedelta(days=DAYS_BEFORE), span.last_day - timedelta(days=LAST_DAY)
    days = [first + number * EVERY for number in range((last - first) // EVERY + 1)]
    for number, day in enumerate(days):
        progress(number, len(days))
        shipped_at = datetime.combine(day, time(12), UTC)
        for kind, detector in DETECTORS.items():
            findings = detection.untouched(kind, day)
            later = shipped_at + timedelta(days=LAST_DAY + 1)
            for cause in causes_of(detector, findings, days_before(day))[:MAX_CAUSES]:
                subjects = [finding.subject for finding in cause.findings]
                job = ShippedJob("", kind, subjects, shipped_at, shipped_at, shipped_at)
                found[kind][detection.measure_outcome(job, findings, later).status] += 1
                if detector.action_id == ADD_REDIRECT:
                    found[kind][SHIPPED] += all(
                        detection.shipped_by_log(subject, shipped_at, later) for subject in subjects
                    )
    return found
