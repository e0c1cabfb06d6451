"""The pages with numbers that the navigation names, in order."""

from typing import Final

from service.access.page_context import PageLink
from service.dashboard import panels
from service.dashboard.content import OVERVIEW, Page
from service.dashboard.tiles import OF_AI

NAMED: Final = (
    OVERVIEW,
    Page(
        "ai",
        "AI",
        "Pages fetched by AI platforms, and the people they send.",
        panels.AI,
        "g a",
        template="ai.html",
        tiles=OF_AI,
    ),
    Page("agents", "Agents", "Every automated visitor, and how sure we are who it is.", panels.AGENTS_PAGE, "g n"),
    Page("people", "People", "Where people come from, and their devices.", panels.PEOPLE, "g e", group="people"),
    Page("times", "Times", "When visits happen.", panels.TIMES, "g t", group="people"),
    Page("links", "Links", "Every link, whether or not it was visited in this period.", panels.LINKS, "g l"),
    Page("paths", "Paths", "Requests by people, AI and others, and their responses.", panels.PATHS_PAGE, "g p"),
    Page("domains", "Domains", "Visits to each domain, and its visitors.", panels.DOMAINS, "g d"),
)
NAVIGATION: Final = tuple(PageLink(page.path, page.title, page.key) for page in NAMED)
