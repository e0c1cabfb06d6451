"""The detectors that find jobs, each with its SQL file, its texts and its remedy.

To add a detector, add `jobs/<type>.sql`, `jobs/<type>.measure.sql` and one row here. Its thresholds are in its SQL.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final, Literal

from queries import fields as f
from queries.catalog import Entry, template
from queries.fields import Field, as_nullable
from queries.prelude import sql_text

FOLDER: Final = "folder"
"""A name in `JobKind.cause` that means the first folder of the path instead of a column."""


@dataclass(frozen=True, kw_only=True)
class JobKind:
    """One type of job: the subject, the texts, and the measure of the outcome."""

    type: str
    subject: tuple[str, ...]  # the columns that name the subject of a job
    title: str
    """The title of a job. {where} is replaced by the job's link or domain, and {domain} by its domain."""
    summary: str  # one or two sentences; may also contain {days} and sums of its findings' columns
    action_id: str
    action_label: str
    implementation_type: Literal["patch", "edge_page", "manual"] = "patch"
    """The default type of implementations."""
    more_is_better: bool = False  # whether more events in its measure are better; otherwise fewer are
    counts_refusals: bool = False
    """Whether every event in the measure is a request that got a wrong answer: a refusal, a missing page or a secret.
    If so, the answers alone show when the problem is gone."""
    closes_by_rate: bool = False
    """True if a lower rate may close its jobs. Set this only if fewer events are better and benchmarks/README.md shows
    that rates seldom fall without a remedy."""
    untrusted: tuple[str, ...] = ()  # the columns with untrusted text
    urgency: Literal["secret", "error", "chance"] = "error"
    """The order of jobs: exposed secrets, then errors and attacks, then possible improvements."""
    cause: tuple[str, ...] = ()
    """The columns that are equal in all findings with the same cause, which become one job; FOLDER is the first folder
    of the path. Without such columns, each finding has a separate cause."""
    sql: str = ""  # the name of the SQL file; "": the type

    @cached_property
    def measure(self) -> Entry:
        """The entry that counts the events and visits of each subject by day, to compare days; days without visits have
        no row.
        """
        name = f"jobs/{self.sql or self.type}.measure"
        return Entry(name, "rows", (f.SUBJECT_NUMBER, f.ON_DAY, f.EVENTS, f.VISITS))

    @property
    def many(self) -> str:
        """The plural noun for subjects with the same cause, such as paths."""
        return f"{self.subject[-1].replace('ai_source', 'product').replace('short_code', 'link')}s"

    def cause_of(self, subject: Mapping[str, str | None]) -> dict[str, str | None]:
        """Return the values that name the cause of a finding, by column. A path outside all folders is a separate
        cause.
        """
        path = subject.get("path") or ""
        first, _, rest = path.removeprefix("/").partition("/")
        if not self.cause or (FOLDER in self.cause and not rest):
            return dict(subject)
        return {name: f"/{first}/" if name == FOLDER else subject[name] for name in self.cause}


@dataclass(frozen=True, kw_only=True)
class Detector(JobKind):
    """Finds jobs of one type. Its SQL returns a row for each finding, one per subject, in order of importance."""

    fields: tuple[Field, ...]  # the columns of a finding, after its domain
    fetches: str = "agent_fetches"  # the column that counts requests, for a finding's weight; "": none
    people: str | None = None  # the column that counts people; each person weighs as much as ten requests
    compares_days: bool = False
    """Whether it compares days with each other, so that a missing log would look like a drop in visits."""
    only: tuple[str, bool] | None = None
    """If two types share an SQL file, the column and the value that select this type's rows; None: all rows."""

    @cached_property
    def entry(self) -> Entry:
        """The entry that answers with one row for each finding."""
        return Entry(f"jobs/{self.sql or self.type}", "rows", (as_nullable(f.DOMAIN), *self.fields))

    @cached_property
    def reasons(self) -> tuple[str, ...]:
        """The reasons in its SQL for leaving out a subject, in order."""
        sql = template(self.entry.name)
        shared = sql_text("prelude/7_jobs") if "erring_paths" in sql else ""
        return tuple(dict.fromkeys(_REASON.findall(shared + sql)))


_REASON: Final = re.compile(r"meets\('([^']+)'")
_SHORT_CODE: Final = as_nullable(f.SHORT_CODE)
_SEEN: Final = (f.DAYS_SEEN, f.FIRST_SEEN, f.LAST_SEEN)
_WHO: Final = (f.AUDIENCE, f.VISITORS, f.TOP_AGENT, f.TOP_SHARE)
_DETAILS: Final = (*_WHO, f.TOP_PATHS, *_SEEN)
_IN_FOLDER: Final = ("domain", FOLDER)
_PATH_TEXT: Final = ("path", "short_code")
_WHO_TEXT: Final = ("top_agent", "top_paths")
_REQUESTED_BY_AI: Final = (
    "From {days}, it was requested by AI products ({agent_fetches}) and by people whom they sent ({ai_referrals}); "
)

_BROKEN_LINK: Final = Detector(
    type="broken_link", subject=("domain", "path"), cause=_IN_FOLDER, untrusted=(*_PATH_TEXT, "top_agent"),
    fields=(f.PATH, _SHORT_CODE, f.IS_INVENTED, f.AGENT_FETCHES, f.AI_REFERRALS, f.VERIFIED, *_WHO, *_SEEN),
    title="AI products hit a missing page on {where}",
    summary=_REQUESTED_BY_AI + "each got 404 or 410, and no later request on these days succeeded.",
    action_id="add_redirect", action_label="Redirect the path to a page that exists",
    people="ai_referrals", sql="broken_link", only=("is_invented", False), counts_refusals=True,
)  # fmt: skip

_EXPOSED_PATH: Final = Detector(
    type="exposed_path", subject=("domain", "path"), cause=_IN_FOLDER, untrusted=("path", *_WHO_TEXT),
    fields=(
        f.PATH, f.IS_CATCH_ALL, f.ANSWERED, f.PROBES, f.PROBED_PATHS, f.ANSWER_SIZE, f.TOP_PATHS, *_WHO, *_SEEN,
    ),
    title="Secret file exposed on {where}",
    summary="From {days}, scanners made {probes} requests for content that must stay private; {answered} got a "
    "status of 200 to 299. Check what the path shows, and replace every secret in it.",
    action_id="hide_path", action_label="Block the path, and replace the secrets in it", urgency="secret",
    fetches="answered", sql="exposed_path", only=("is_catch_all", False), counts_refusals=True,
)  # fmt: skip

_ALL: Final = (
    _BROKEN_LINK,
    replace(
        _BROKEN_LINK,
        type="invented_link",
        cause=(),  # each address has its own target
        title="AI products send people to a made-up page on {where}",
        summary=_REQUESTED_BY_AI + "no request on these days got a status below 400. The address was probably made up.",
        only=("is_invented", True),
    ),
    Detector(
        type="ai_attention_gap", subject=("domain", "short_code"), untrusted=("short_code", "top_agent"),
        fields=(f.SHORT_CODE, f.AGENT_FETCHES, f.AI_REFERRALS, f.EXPECTED_REFERRALS, *_WHO),
        title="Read by assistants, but no referrals: {where}",
        summary="From {days}, assistants fetched it {agent_fetches} times; people whom they sent: {ai_referrals}."
        " At the average rates of all links, at least five were expected.",
        action_id="improve_page", action_label="Improve the page that assistants read",
        implementation_type="edge_page", people="ai_referrals", more_is_better=True, urgency="chance",
    ),
    Detector(
        type="blocked_agent", subject=("domain", "agent"), cause=("domain",), untrusted=("agent",),
        fields=(
            f.AGENT, as_nullable(f.OPERATOR), as_nullable(f.AI_SOURCE), f.AGENT_FETCHES, f.REFUSED, f.ASKED_TO_PAY,
            f.PERCENTAGE, f.STATUSES, f.VERIFIED, f.AUDIENCE, f.VISITORS, *_SEEN,
        ),
        title="AI agent refused on {domain}",
        summary="From {days}, {refused} of {agent_fetches} requests were refused, {asked_to_pay} of them with a "
        "demand for payment (402).",
        action_id="allow_agent", action_label="Allow the agent",
        fetches="refused", counts_refusals=True,
    ),
    Detector(
        type="impersonated_agent", subject=("domain", "agent"), cause=("domain",), untrusted=("agent",),
        fields=(f.AGENT, f.VISITS, f.PROBES, f.REFUSED, f.AUDIENCE, f.VISITORS, *_SEEN),
        title="AI agent impersonated on {domain}",
        summary="From {days}, {visits} requests named an AI agent, but came from outside its operator's published "
        "addresses.",
        action_id="block_agent", action_label="Block visits under the agent's name from other addresses",
        fetches="visits",
    ),
    Detector(
        type="server_errors", subject=("domain", "path"), cause=_IN_FOLDER, untrusted=(*_PATH_TEXT, *_WHO_TEXT),
        fields=(f.PATH_TEMPLATE, _SHORT_CODE, f.VISITS, f.ERRORS, f.PERCENTAGE, f.PEOPLE, *_DETAILS),
        title="Server errors on {where}",
        summary="From {days}, {errors} of {visits} requests by people and AI products got a status of 500 or above.",
        action_id="fix_error", action_label="Fix the server errors",
        implementation_type="manual", fetches="errors", closes_by_rate=True,
    ),
    Detector(
        type="search_errors", subject=("domain",), untrusted=_WHO_TEXT,
        fields=(f.VISITS, f.ERRORS, f.PERCENTAGE, *_DETAILS),
        title="Search crawlers get server errors on {domain}",
        summary="From {days}, {errors} of {visits} requests by search crawlers got a status of 500 or above. Search "
        "engines crawl such a site less often, and drop pages that keep failing.",
        action_id="fix_error", action_label="Fix the server errors",
        implementation_type="manual", fetches="errors",
    ),
    Detector(
        type="error_days", subject=("domain",), untrusted=_WHO_TEXT,
        fields=(f.VISITS, f.ERRORS, f.PERCENTAGE, f.PEOPLE, *_DETAILS),
        title="Days with many errors on {domain}",
        summary="From {days}, there were one or two days on which at least a fifth of all requests got a status of 500 "
        "or above: {errors} of {visits} on those days, {people} of them by people. Search crawlers do not count.",
        action_id="fix_error", action_label="Find out why requests failed on these days",
        implementation_type="manual", fetches="errors",
    ),
    Detector(
        type="crawler_file", subject=("domain", "path"), cause=("domain",), untrusted=("path", "top_agent"),
        fields=(f.PATH, f.VISITS, *_WHO, *_SEEN),
        title="Crawlers find no robots.txt or sitemap.xml on {domain}",
        summary="From {days}, search and AI crawlers asked for it {visits} times and never got it. Without a "
        "robots.txt they may read everything; without a sitemap.xml they find pages only through links.",
        action_id="publish_file", action_label="Publish the file",
        fetches="visits", counts_refusals=True, urgency="chance",
    ),
    Detector(
        type="dead_path", subject=("domain", "path"), cause=_IN_FOLDER, untrusted=(*_PATH_TEXT, *_WHO_TEXT),
        fields=(f.PATH_TEMPLATE, _SHORT_CODE, f.VISITS, f.MISSING, f.PERCENTAGE, f.REFERRED, *_DETAILS),
        title="People hit a missing page on {where}",
        summary="From {days}, {missing} of {visits} requests by people got 404 or 410; {referred} of these followed a "
        "link.",
        action_id="add_redirect", action_label="Redirect the path to a page that exists",
        fetches="missing", counts_refusals=True,
    ),
    Detector(
        type="refused_people", subject=("domain", "path"), cause=_IN_FOLDER, untrusted=(*_PATH_TEXT, *_WHO_TEXT),
        fields=(f.PATH_TEMPLATE, _SHORT_CODE, f.VISITS, f.REFUSED_PEOPLE, f.PERCENTAGE, f.STATUSES, *_DETAILS),
        title="People refused on {where}",
        summary="From {days}, {refused} of {visits} requests by people who got a page of the site on the same day were "
        "answered with 403 or 429, or abandoned (499). A firewall, rate limit or missing permission may be the cause.",
        action_id="allow_people", action_label="Find out what refuses people",
        implementation_type="manual", fetches="refused", counts_refusals=True,
    ),
    _EXPOSED_PATH,
    replace(
        _EXPOSED_PATH,
        type="catch_all",
        title="Requests for missing pages succeed on {domain}",
        summary="From {days}, vulnerability scanners got {answered} answers of one size with a status of 200 to 299 "
        "for {paths} paths that are unlikely to exist: a catch-all page. Answer 404 so that missing pages are noticed.",
        action_id="answer_404", action_label="Answer 404 for missing pages", urgency="chance",
        only=("is_catch_all", True),
    ),
    Detector(
        type="crawler_inside", subject=("domain",), untrusted=_WHO_TEXT,
        fields=(f.ANSWERED, f.PROBED_PATHS, *_DETAILS),
        title="Crawlers get admin pages on {domain}",
        summary="From {days}, search and AI crawlers got {answered} answers with a status of 200 to 299 for {paths} "
        "paths that are in an admin area, delete something or sign out. No link may delete anything; a Disallow in "
        "robots.txt is only a request.",
        action_id="require_sign_in", action_label="Require a sign-in, and delete by POST only",
        implementation_type="manual", fetches="answered", counts_refusals=True, urgency="secret",
    ),
    Detector(
        type="flood", subject=("domain", "agent"), untrusted=("agent",),
        fields=(f.AGENT, f.VISITS, f.WHOLE, f.PERCENTAGE, f.FAILED, f.REFERRED, f.VISITORS, *_SEEN),
        title="Flood of requests by one agent or browser on {domain}",
        summary="From {days}, it made {visits} of {whole} requests on its busiest days; {refused_or_failed} of these "
        "were refused or failed.",
        action_id="limit_flood", action_label="Limit its rate of requests, or block it",
        fetches="visits",
    ),
    Detector(
        type="login_attack", subject=("domain", "path"), cause=("domain",), untrusted=("path", "top_agent"),
        fields=(f.PATH, f.VISITS, *_WHO, *_SEEN),
        title="Login attacked on {domain}",
        summary="From {days}, programs or single visitors tried to log in {visits} times, on days with at least "
        "100 attempts. Limit how often an address may try, or block the login from outside.",
        action_id="limit_logins", action_label="Limit login attempts per address, or block the login from outside",
        implementation_type="manual", fetches="visits",
    ),
    Detector(
        type="referral_drop", subject=("domain", "short_code", "ai_source"), cause=("domain", "ai_source"),
        untrusted=("short_code", "top_agent"),
        fields=(
            f.SHORT_CODE, f.AI_SOURCE, f.REFERRALS_BEFORE, f.AI_REFERRALS, f.LOST_REFERRALS, f.PROBABILITY, *_WHO,
            f.LAST_SEEN,
        ),
        title="Fewer people sent by an AI product: {where}",
        summary="People whom it sent in the last 14 days of {days}: {ai_referrals}; in the 14 days before: "
        "{referrals_before}.",
        action_id="look_at_page", action_label="Check what changed on the page",
        implementation_type="manual", fetches="", people="lost_referrals", more_is_better=True, compares_days=True,
        urgency="chance",
    ),
    Detector(
        type="training_without_return", subject=("domain", "operator"), cause=("domain",), untrusted=("top_agent",),
        fields=(f.OPERATOR, f.TRAINING_FETCHES, f.VISITS, f.PERCENTAGE, f.VERIFIED, *_WHO, *_SEEN),
        title="Training crawler without referrals on {domain}",
        summary="From {days}, it made {training_fetches} requests; its operator's products sent no people.",
        action_id="limit_agent", action_label="Limit the operator's training crawlers", urgency="chance",
        fetches="training_fetches",
    ),
)  # fmt: skip

DETECTORS: Final[dict[str, Detector]] = {detector.type: detector for detector in _ALL}
"""Every detector, by the type of job that it finds."""

CRAWLER_PLAN: Final = JobKind(
    type="crawler_plan", subject=("domain", "agent"), untrusted=("agent",),
    title="Keep AI crawlers out: {operators}",
    summary="From {days}, they made {agent_fetches} requests and were sent {bytes_sent} bytes. Visits by people whom "
    "their operators' products sent: {people_at_risk}.",
    action_id="block_crawlers", action_label="Publish the file that keeps them out", urgency="chance",
)  # fmt: skip
"""The type of jobs that editors create from plans to block crawlers. `agent` lists the crawlers' names, separated by
commas."""

JOB_KINDS: Final[dict[str, JobKind]] = {**DETECTORS, CRAWLER_PLAN.type: CRAWLER_PLAN}
"""Every type of job that has a measurable outcome."""
