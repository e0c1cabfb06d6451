"""What layout.html shows around every signed-in page: navigation, organization, filters."""

from typing import Any, Final

from starlette.requests import Request

from service.pages.context import PageContext
from service.pages.filters import Filters
from service.pages.numbers import panels
from service.pages.numbers.content import OVERVIEW, Page

NAVIGATION: Final = (
    OVERVIEW,
    Page("ai", "AI", "What AI platforms fetch, and whom they send.", panels.AI, "g a"),
    Page("agents", "Agents", "Every automated visitor, and how sure we are who it is.", panels.AGENTS_PAGE, "g n"),
    Page("people", "People", "Where people come from, and what they use.", panels.PEOPLE, "g e"),
    Page("times", "Times", "When visits happen.", panels.TIMES, "g t"),
    Page("links", "Links", "Every link, whether it was visited in this period or not.", panels.LINKS, "g l"),
    Page("paths", "Paths", "What people, AI and others ask for, and how it is answered.", panels.PATHS_PAGE, "g p"),
    Page("domains", "Domains", "Visits by domain, and their estimated value.", panels.DOMAINS, "g d"),
)


def layout(context: PageContext, request: Request, path: str, filters: Filters | None) -> dict[str, Any]:
    """What layout.html shows for a page of this path after /app/; without `filters`, links keep none."""
    query = filters.query_string(traffic_type=None, short_code=None, target_url=None) if filters else ""
    root, session = context.root, request.scope["session"]
    navigation = [(page.title, f"{root}/{page.path}{query}", page.path == path, page.key) for page in NAVIGATION]
    jobs = ("Jobs", f"{root}/jobs", path.startswith("jobs"), "g j")
    settings = ("Settings", f"{root}/settings/api-keys", path.startswith("settings"), "g s")
    return {
        "navigation": [*navigation, jobs, settings],
        "organization": session.organization,
        "zone": context.services.lake.manifest.organizations.zone(session.organization),
        "is_exposed": context.origin.is_exposed(request),
        "filters": filters,
        "path": request.url.path,
        "body_class": f"page-{path.replace('/', '-') or 'overview'}",
    }
