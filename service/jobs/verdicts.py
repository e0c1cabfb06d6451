"""What an outcome says, in words."""

from datetime import datetime
from typing import Final

from service.jobs.outcome import MeasuredOutcome
from service.jobs.rates import Period
from service.jobs.records import JobOutcome, Measure
from service.jobs.states import JudgedBy, OutcomeStatus


def verdict(found: MeasuredOutcome) -> str:
    """What an outcome says, in one sentence with its numbers."""
    before, after = _share(found.before), _share(found.after)
    if found.judged_by == "answer":
        numbers = f"{before} requests were answered wrongly in the {found.before.days} days before, "
        numbers += f"{after} in the {found.after.days} days since"
    else:
        numbers = f"{before} on {found.before.days} days before, {after} on {found.after.days} days since; "
        beside = "there was no other finding to compare it with"
        if found.control:
            early, late = map(_share, found.control)
            beside = f"of {found.others} other{'s' * (found.others != 1)}, {early} before, {late} since"
        numbers += beside
    if found.interval:
        low, high = found.interval
        numbers += f"; the rate is {low:.2g} to {high:.2g} times what it was"
    left = f"; looks left: {found.looks_left}" if found.looks_left else ""
    lead = "The rate got better, more than that of others" if found.judged_by == "rate" and found.resolves else None
    return f"{lead or _LEADS[found.status, found.judged_by]}: {numbers}{left}."


def outcome_record(measured: MeasuredOutcome, now: datetime) -> JobOutcome:
    """An outcome as it is stored with its job."""
    early, late = (Measure(*one) for one in measured.control) if measured.control else (None, None)
    return JobOutcome(
        status=measured.status,
        before=Measure(*measured.before),
        after=Measure(*measured.after),
        probability=measured.probability,
        checked_at=now.replace(microsecond=0),
        until=measured.until,
        judged_by=measured.judged_by,
        interval=list(measured.interval) if measured.interval else None,
        looks_left=measured.looks_left,
        others=measured.others if measured.judged_by == "rate" else None,
        control_before=early,
        control_after=late,
        resolves=measured.resolves,
        verdict=verdict(measured),
    )


_LEADS: Final[dict[tuple[OutcomeStatus, JudgedBy], str]] = {
    ("waiting", "answer"): "It is too early to tell",
    ("waiting", "rate"): "It is too early to tell",
    ("improved", "answer"): "It helped",
    ("improved", "rate"): "The rate got better, whatever the cause",
    ("unchanged", "answer"): "It changed nothing",
    ("unchanged", "rate"): "The rate changed no more than such rates do by themselves",
    ("worse", "rate"): "The rate got worse, whatever the cause",
    ("not_measurable", "answer"): "There were too few requests since",
    ("not_measurable", "rate"): "It cannot be measured, since too few days or requests are known",
}


def _share(found: Period) -> str:
    return f"{found.events:,} of {found.visits:,}"
