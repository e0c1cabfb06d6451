"""Jobs that an editor writes by hand."""

from dataclasses import replace
from datetime import datetime
from typing import Final

from data import BadInput
from data.hosts import check_host
from service.jobs.findings import blank_job
from service.jobs.records import Actor, Job
from service.jobs.texts import check_line, check_text, is_short_code

MANUAL: Final = "manual"
"""The type of jobs that are written by hand."""
MAX_TITLE_LENGTH: Final = 200
MAX_SUMMARY_LENGTH: Final = 2_000


def manual_job(
    organization: str,
    title: str,
    summary: str,
    actor: Actor,
    now: datetime,
    *,
    domain: str | None = None,
    short_code: str | None = None,
) -> Job:
    """Return a new job with this title and summary, unchanged. Raises TooLarge or BadInput."""
    if short_code is not None and not is_short_code(short_code):
        raise BadInput("short_code must be 1 to 64 characters from A-Z, a-z, 0-9, _ and -.")
    return replace(
        blank_job(organization, MANUAL, check_line("title", title, MAX_TITLE_LENGTH), now),
        priority="medium",
        domain=None if domain is None else check_host(domain, "domain"),
        short_code=short_code,
        summary=check_text("summary", summary, MAX_SUMMARY_LENGTH),
        action_id="carry_out",
        action_label="Do what the summary says",
        implementation_type="manual",
        written_by=actor.name,
    )
