"""The detectors of jobs: what each finds, in which SQL file, and what one may do about it.

To add a detector, add `jobs/<type>.sql`, `jobs/<type>.measure.sql` and one row here. Its thresholds are in its SQL.
"""

from dataclasses import dataclass
from typing import Final, Literal

from queries import fields as f
from queries.catalog import Entry
from queries.fields import Field, as_nullable


@dataclass(frozen=True)
class Detector:
    """Finds jobs of one type. The rows of its SQL are its findings, the heaviest first, one for each subject."""

    type: str
    entry: Entry
    measure: Entry
    """Rows day, events and visits of one subject: whether it got better. Days without visits have no row."""
    subject: tuple[str, ...]
    """The columns that name the subject of a finding."""
    untrusted: tuple[str, ...]
    """The columns with text that strangers wrote."""
    action_id: str
    action_label: str
    implementation_type: Literal["patch", "edge_page", "manual"]
    """The default type of its implementations."""
    fetches: str = "agent_fetches"
    """The column that counts requests, for the weight of a finding."""
    people: str | None = None
    """The column that counts people; each weighs as much as ten requests."""
    more_is_better: bool = False
    """Whether the events of its measure are wanted; otherwise they are to become fewer."""
    is_invented: bool | None = None
    """Which rows of a SQL file of two types are its own, by their column of this name; None: all rows."""


def _detector(
    job_type: str,
    subject: tuple[str, ...],
    action: tuple[str, str],
    implementation_type: Literal["patch", "edge_page", "manual"],
    *fields: Field,
    untrusted: tuple[str, ...] = (),
    fetches: str = "agent_fetches",
    people: str | None = None,
    more_is_better: bool = False,
    sql: str = "",
    is_invented: bool | None = None,
) -> Detector:
    name = f"jobs/{sql or job_type}"
    return Detector(
        job_type,
        Entry(name, "rows", (_DOMAIN, *fields)),
        Entry(f"{name}.measure", "rows", (f.ON_DAY, f.EVENTS, f.VISITS)),
        subject,
        untrusted,
        *action,
        implementation_type,
        fetches,
        people,
        more_is_better,
        is_invented,
    )


_DOMAIN: Final = as_nullable(f.DOMAIN)
_SHORT_CODE: Final = as_nullable(f.SHORT_CODE)
_SEEN: Final = (f.DAYS_SEEN, f.FIRST_SEEN, f.LAST_SEEN)
_LINK_FIELDS: Final = (
    f.PATH, _SHORT_CODE, f.IS_INVENTED, f.AGENT_FETCHES, f.AI_REFERRALS, f.VERIFIED, *_SEEN
)  # fmt: skip
_PATH_TEXT: Final = ("path", "short_code")
_REDIRECT: Final = ("add_redirect", "Redirect the path to a page that exists")

_ALL: Final = (
    _detector(
        "broken_link", ("domain", "path"), _REDIRECT, "patch", *_LINK_FIELDS,
        untrusted=_PATH_TEXT, people="ai_referrals", is_invented=False,
    ),
    _detector(
        "invented_link", ("domain", "path"), _REDIRECT, "patch", *_LINK_FIELDS,
        untrusted=_PATH_TEXT, people="ai_referrals", sql="broken_link", is_invented=True,
    ),
    _detector(
        "ai_attention_gap", ("domain", "short_code"),
        ("improve_page", "Improve the page that assistants read"), "edge_page",
        f.SHORT_CODE, f.AGENT_FETCHES, f.AI_REFERRALS, f.EXPECTED_REFERRALS,
        untrusted=("short_code",), people="ai_referrals", more_is_better=True,
    ),
    _detector(
        "blocked_agent", ("domain", "agent"), ("allow_agent", "Let the agent in"), "patch",
        f.AGENT, as_nullable(f.OPERATOR), as_nullable(f.AI_SOURCE), f.AGENT_FETCHES, f.REFUSED, f.PERCENTAGE,
        f.STATUSES, f.VERIFIED, *_SEEN,
        untrusted=("agent",), fetches="refused",
    ),
    _detector(
        "impersonated_agent", ("domain", "agent"),
        ("block_agent", "Refuse visits under the agent's name from other addresses"), "patch",
        f.AGENT, f.VISITS, f.PROBES, f.REFUSED, *_SEEN,
        untrusted=("agent",), fetches="visits",
    ),
    _detector(
        "server_errors", ("domain", "path"), ("fix_error", "Repair what answers with an error"), "manual",
        f.PATH, _SHORT_CODE, f.VISITS, f.ERRORS, f.PERCENTAGE, f.PEOPLE, *_SEEN,
        untrusted=_PATH_TEXT, fetches="errors",
    ),
    _detector(
        "referral_drop", ("domain", "short_code", "ai_source"),
        ("look_at_page", "Look at what changed on the page"), "manual",
        f.SHORT_CODE, f.AI_SOURCE, f.REFERRALS_BEFORE, f.AI_REFERRALS, f.LOST_REFERRALS, f.PROBABILITY, f.LAST_SEEN,
        untrusted=("short_code",), fetches="", people="lost_referrals", more_is_better=True,
    ),
    _detector(
        "training_without_return", ("domain", "operator"),
        ("limit_agent", "Limit the operator's training crawlers"), "patch",
        f.OPERATOR, f.TRAINING_FETCHES, f.VISITS, f.PERCENTAGE, f.VERIFIED, *_SEEN,
        fetches="training_fetches",
    ),
)  # fmt: skip

DETECTORS: Final[dict[str, Detector]] = {detector.type: detector for detector in _ALL}
"""Every detector, by the type of the jobs that it finds."""
