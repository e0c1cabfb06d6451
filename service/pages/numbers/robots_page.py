"""The page that says what blocking AI crawlers would save and cost: choose some, and copy the file or make it a job."""

from datetime import date

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from data import BadInput
from data.maintenance.status import stored_span
from queries import ENTRIES, Scope
from service import robots
from service.http.errors import Forbidden
from service.http.job_endpoints import actor_of
from service.http.routing import Endpoint
from service.jobs.states import JobConflict
from service.pages import formats
from service.pages.context import PageContext
from service.pages.forms import form_fields
from service.pages.numbers.layout import layout


def endpoint(context: PageContext) -> Endpoint:
    """The page; POST makes a job of it. Each parameter `block` is one operator:purpose that is chosen."""

    async def page(request: Request) -> Response:
        session = request.scope["session"]
        organization, problem, status = session.organization, "", 200
        name = (await form_fields(request)).get("as", "") if request.method == "POST" else ""
        stored = await context.in_thread(request, stored_span, context.services.lake, organization)
        first, last = robots.last_days(context.services.today(organization))
        (rows,) = await context.load(request, [(ENTRIES["ai-agents"], Scope(organization, first, last))])
        found = robots.crawled(rows)
        chosen = request.query_params.getlist("block")
        try:
            plan = robots.cost(found, chosen)
        except BadInput as error:  # a bookmark of other days
            chosen, problem = [], str(error)
            plan = robots.cost(found, chosen)
        if request.method == "POST":
            try:
                return await _job_page(context, request, plan, name, (first, last))
            except (BadInput, JobConflict) as error:
                problem, status = problem or f"Nothing was done: {error}", 400
        shown = {
            **layout(context, request, "ai", None),
            "title": "What would robots.txt cost me?",
            "span": formats.span(first, last),
            "found": found,
            "purposes": robots.PURPOSES,
            "chosen": chosen,
            "problem": problem,
            "may_write": session.caller.may_write,
            "query": request.url.query,
            "plan": plan,
            "snippets": [(name, robots.snippet(name, plan, first, last)) for name in robots.SNIPPETS] if chosen else [],
            "waiting": sum(first <= day <= last for day in stored.unjudged),
        }
        return await context.renderer.response(request, "robots.html", shown, status)

    return page


async def _job_page(
    context: PageContext, request: Request, plan: robots.Cost, name: str, days: tuple[date, date]
) -> RedirectResponse:
    """Make the plan a job, with the file that the form names, and show it. Raises BadInput, JobConflict, Forbidden."""
    caller, jobs, now = request.scope["session"].caller, context.services.jobs, context.services.clock()
    if not caller.may_write:
        raise Forbidden("Viewers cannot make jobs.", "Ask an editor to do it.")
    if not plan.blocked or name not in robots.SNIPPETS:
        raise BadInput("choose crawlers and a file first.")
    job = await jobs.database.write(
        lambda: robots.make_job(jobs, caller.organization, plan, name, days, actor_of(caller), now)
    )
    return RedirectResponse(f"{context.root}/jobs/{job.id}", 303)
