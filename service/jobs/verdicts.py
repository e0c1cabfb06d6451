"""Describes outcomes in words."""

from typing import Final

from data.text import plural
from service.jobs.records import NO_DAYS, JobOutcome, Measure
from service.jobs.states import JudgedBy, OutcomeStatus

_LEADS: Final[dict[tuple[OutcomeStatus, JudgedBy | None], str]] = {
    ("waiting", "answer"): "It is too early to tell",
    ("waiting", "rate"): "It is too early to tell",
    ("improved", "answer"): "It helped",
    ("improved", "rate"): "The rate got better, whatever the cause",
    ("unchanged", "answer"): "It changed nothing",
    ("unchanged", "rate"): "The rate did not change significantly",
    ("worse", "rate"): "The rate got worse, whatever the cause",
    ("not_measurable", "answer"): "There have been too few requests since",
    ("not_measurable", "rate"): "It cannot be measured, since too few days or requests are known",
}


def verdict(found: JobOutcome) -> str:
    """Return a measured outcome as one sentence with its numbers."""
    early, late = found.before or NO_DAYS, found.after or NO_DAYS
    if found.judged_by == "answer":
        numbers = f"{share(early)} requests failed in the {plural(early.days, 'day')} before, "
        numbers += f"{share(late)} in the {plural(late.days, 'day')} since"
    else:
        numbers = f"{share(early)} in the {plural(early.days, 'day')} before, "
        numbers += f"{share(late)} in the {plural(late.days, 'day')} since; "
        beside = "there is no other finding to compare it with"
        if found.others:
            before, since = share(found.control_before), share(found.control_after)
            beside = f"for {found.others} other{'s' * (found.others != 1)}, {before} before, {since} since"
        numbers += beside
    if found.interval:
        low, high = found.interval
        numbers += f"; the rate is {low:.2g} to {high:.2g} times what it was"
    left = f"; {plural(found.looks_left, 'check')} left" if found.looks_left else ""
    lead = "The rate got better, and more than for others" if found.judged_by == "rate" and found.resolves else None
    return f"{lead or _LEADS[found.status, found.judged_by]}: {numbers}{left}."


def share(days: Measure | None) -> str:
    """Return the events of a measure, and the visits that they are counted among, as "3 of 10"; "" for None."""
    return f"{days.events:,} of {days.visits:,}" if days else ""
