"""The page of addresses that AI products made up, each with its job and a button that claims it as a link."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final

from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import Response

from queries import DETECTORS, ENTRIES, Finding
from service.core.http.errors import InvalidBody
from service.core.pages.forms import editors_form
from service.core.pages.markup import joined
from service.dashboard.content import Page, check_paths
from service.dashboard.context import DashboardContext
from service.dashboard.panel_kinds import WithJobs
from service.dashboard.run_it_yourself import commands
from service.dashboard.tables import Row
from service.jobs.findings import Cause, fingerprint_of, new_job
from service.jobs.records import Actor, JobRecord
from service.jobs.store import Jobs
from service.reports.filters import Filters


@dataclass(frozen=True)
class _InventedLinks(WithJobs):
    def rows_of(self, answer: Sequence[Row]) -> Sequence[Row]:
        """Return the rows with None in place of 0 visitors: each row has visits, so 0 means unknown."""
        return [{**row, "visitors": row["visitors"] or None} for row in answer]


_PANEL: Final = _InventedLinks.of(
    "invented-links",
    "Invented links",
    "path domain ai_referrals agent_fetches visitors ai_source last_seen",
    color="ai",
    is_wide=True,
    hint="There is no link at these addresses; requests for them got 404 or 410, and none succeeded in this period.",
    note="At most 100 addresses, those with the most people first; those without people were fetched by assistants "
    "for a user, or by coding agents. A page deleted before this period looks the same. The last column shows the "
    "status of an address's job in To do. Claiming an address approves its job, which then asks for the link's target.",
    empty="In this period, no AI referral, assistant or coding agent got 404 or 410 at an address that has neither "
    "a link nor a successful request.",
)
INVENTED: Final = Page(
    "invented-links",
    "Invented links",
    "Addresses that AI products made up, and people who landed there.",
    (_PANEL,),
    under="ai",
)
_JOB: Final = Markup('<a href="%s/jobs/%s">%s</a> ')
_CLAIM: Final = Markup(
    '<form method="post" action="%s/invented-links/claims?%s"><button name="address" value="%s">Claim as a link'
    '<span class="hidden">: %s</span></button></form>'
)


def _finding(filters: Filters, row: Mapping[str, Any]) -> Finding:
    """Return the finding for a row: an invented link if AI sent people there, otherwise a broken link."""
    kind = "invented_link" if row["ai_referrals"] else "broken_link"
    domain = None if row["domain"] == "unknown" else row["domain"]
    weight = 7 * (row["agent_fetches"] + 10 * row["ai_referrals"]) / filters.days
    subject = {"domain": domain, "path": row["path"]}
    return Finding(kind, filters.organization, subject, {**row, "domain": domain}, weight)


async def job_cells(
    context: DashboardContext, request: Request, filters: Filters
) -> Callable[[Mapping[str, Any]], Markup]:
    """Return a function that renders a row's job cell: the job's status and, for editors, a button that claims the
    address, unless the job has been decided.
    """
    may_write, query = request.scope["session"].caller.may_write, request.url.query
    known = await context.control.read(context.job_reader.by_fingerprint, filters.organization)

    def cell(row: Mapping[str, Any]) -> Markup:
        address = fingerprint_of(_finding(filters, row))
        job, status = known.get(address, ("", ""))
        link = _JOB % (context.root, job, status) if job else Markup("")
        may_claim = may_write and status in {"", "new", "reviewed"}
        return joined(link, _CLAIM % (context.root, query, address, row["path"]) if may_claim else Markup(""))

    return cell


async def claim(context: DashboardContext, request: Request) -> Response:
    """Claim the address with the fingerprint in the form, and redirect to the implementation form of its job.

    Raises InvalidBody if the address is no longer in the list, Forbidden for viewers, InvalidParameter and
    StateConflict.
    """
    address = (await editors_form(request)).get("address", "")
    filters, entry = await context.filters(request), ENTRIES["invented-links"]
    scope = filters.scope_for(entry)
    await context.in_thread(request, check_paths, context.services.lake, scope)
    (rows,) = await context.load(request, [(entry, scope)])
    finding = next((one for row in rows if fingerprint_of(one := _finding(filters, row)) == address), None)
    if finding is None:
        raise InvalidBody("This address is no longer in the list.", "Go back and reload the page.")
    days = {"start_date": str(scope.start_date), "end_date": str(scope.end_date)}
    others = {name: text for name, text in filters.parameters.items() if name != "range"}
    command = commands(context, request, entry, replace(filters, parameters=others | days))["query"]

    def make(jobs: Jobs, actor: Actor, now: datetime) -> JobRecord:
        kind = replace(DETECTORS[finding.type], cause=())  # a job about this address, not about its folder
        span = scope.start_date, scope.end_date
        found = Cause(kind, entry.name, [finding], span, [finding.row], command)
        return jobs.create(new_job(found, now), actor, now, is_approved=True)

    return await context.made_job(request, make)
