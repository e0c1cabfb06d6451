"""The page on what blocking AI crawlers saves and costs: choose crawlers, then copy the file or turn it into a job."""

from functools import partial

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from data import BadInput
from queries import ENTRIES, Scope
from service.core.pages import formats
from service.core.pages.forms import editors_form
from service.dashboard.context import DashboardContext
from service.robots import plans as robots


def routes(context: DashboardContext) -> list[Route]:
    """Return the route of the page. The page about AI links to it."""
    return [Route(f"{context.root}/robots", partial(robots_page, context), methods=["GET", "POST"])]


async def robots_page(context: DashboardContext, request: Request) -> Response:
    """Show the page (GET), or turn the file into a job (POST). Each `block` is an operator or operator:purpose."""
    session = request.scope["session"]
    organization, problem = session.organization, ""
    name = (await editors_form(request)).get("as", "") if request.method == "POST" else ""
    stored = await context.in_thread(request, context.services.lake.manifest.statistics.stored_span, organization)
    first, last = robots.last_days(context.services.today(organization))
    (rows,) = await context.load(request, [(ENTRIES["ai-agents"], Scope(organization, first, last))])
    found = robots.crawled(rows)
    chosen = request.query_params.getlist("block")
    try:
        plan = robots.cost(found, chosen)
    except BadInput as error:  # from a bookmark on another day
        chosen, problem = [], str(error)
        plan = robots.cost(found, chosen)
    if request.method == "POST":
        return await context.made_job(
            request, lambda jobs, *who: robots.make_job(jobs, organization, plan, name, (first, last), *who)
        )
    shown = {
        **context.layout(request, "ai"),
        "title": "What would robots.txt cost me?",
        "span": formats.span(first, last),
        "found": found,
        "sent": {one.operator: one.ai_referrals for one in found},
        "newest_day": stored.last_day,
        "purposes": robots.PURPOSES,
        "chosen": chosen,
        "problem": problem,
        "may_write": session.caller.may_write,
        "query": request.url.query,
        "plan": plan,
        "snippets": [(name, robots.snippet(name, plan, first, last)) for name in robots.SNIPPETS] if chosen else [],
        "waiting": sum(first <= day <= last for day in stored.unjudged),
    }
    return await context.renderer.response(request, "robots.html", shown)
