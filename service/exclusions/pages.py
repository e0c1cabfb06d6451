"""The page Left out of people: visits that are not counted, and bots that are recognized by what they do."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple, get_args

from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from data import BadInput
from data.rules.exclusions import ExclusionKind
from data.text import percentage
from queries import ENTRIES
from service.access.sessions import Session
from service.core.http.errors import Forbidden, NotFound
from service.core.pages.charts import sparkline
from service.core.pages.forms import form_fields
from service.dashboard.content import Page, check_paths, suggestions
from service.dashboard.context import DashboardContext
from service.dashboard.run_it_yourself import commands
from service.dashboard.views import View
from service.exclusions import choices

PATH: Final = "left-out"
DAYS: Final = ENTRIES["left-out"]
REQUESTS: Final = ENTRIES["left-out-requests"]
PAGE: Final = Page(
    PATH,
    "Left out of people",
    "Requests that are not counted, and bots that are recognized by what they do.",
    (),
    under="",
)
REASONS: Final = {
    "file": "file", "own": "own", "disguised": "disguised", "loaded_ahead": "loaded ahead", "probe": "probe",
    "no_agent": "no user agent",
}  # fmt: skip
"""The page's labels for the reasons why a request is left out."""
ABOUT: Final = {
    "disguised": "A browser's name, but a program's behaviour: too fast, too many errors, too old, or without the "
    "headers and files that browsers send and load.",
    "loaded_ahead": "Prefetched by a browser, but never opened.",
    "probes": "Requests that only vulnerability scanners make, such as for /.env, under any name.",
    "no_agent": "The request had no user agent.",
}
"""Explanations of the reasons, by the field that counts them."""
KINDS: Final = {"address": "Address", "agent": "User agent", "path": "Path"}
EXAMPLES: Final = {"address": "203.0.113.0/24", "agent": "UptimeKuma", "path": "/admin"}
"""An example of a value for each kind of rule."""
Rows = Sequence[Mapping[str, Any]]


class OwnRuleRow(NamedTuple):
    """A rule for the owner's visits, as a row on the page."""

    kind: str
    value: str | None  # None: hidden
    since: datetime
    visits: int
    id: str


class Part(NamedTuple):
    """One half of the page: counts by day, and requests."""

    anchor: str
    title: str
    hint: str
    labels: Mapping[str, str]  # by field
    totals: Mapping[str, int]
    lines: Mapping[str, Markup]  # sparklines of past days, by field
    requests: Rows

    @property
    def columns(self) -> list[tuple[str, str]]:
        """The table columns for the part's numbers."""
        return [(label, "number") for label in self.labels.values()]


def routes(context: DashboardContext) -> list[Route]:
    """Return the routes of the page and of its forms."""
    pages, root = _ExclusionPages(context), f"{context.root}/{PATH}"
    return [
        Route(root, pages.left_out),
        Route(f"{root}/rules", pages.add, methods=["POST"]),
        Route(f"{root}/rules/{{id}}/remove", pages.remove, methods=["POST"]),
        Route(f"{root}/files", pages.switch_files, methods=["POST"]),
    ]


class _ExclusionPages:
    def __init__(self, context: DashboardContext) -> None:
        self._context = context
        self._lake = context.services.lake

    async def left_out(self, request: Request, problem: str = "", fields: Mapping[str, str] | None = None) -> Response:
        """Show the page; after a rejected form, also its problem and the values entered."""
        context, session = self._context, request.scope["session"]
        view = await View.start(context, request, PAGE)
        if view.stored.is_empty:
            return await view.response("start.html")
        if view.settled is not None and not problem:
            return RedirectResponse(view.settled, 303)
        wanted = [(entry, view.filters.scope_for(entry)) for entry in (DAYS, REQUESTS, ENTRIES["filter-values"])]
        await context.in_thread(request, check_paths, self._lake, wanted[0][1])
        days, requests, values = await context.load(request, wanted)
        exclusions, organization = self._lake.manifest.exclusions, session.organization
        rules = await context.in_thread(request, exclusions.records, organization)
        is_aside = await context.in_thread(request, exclusions.are_files_aside, organization)
        stored, files = (sum(row[field] for row in days) for field in ("stored", "files"))
        sees_addresses = session.caller.may_write
        shown = [
            OwnRuleRow(
                KINDS[rule.kind],
                rule.value if rule.kind != "address" or sees_addresses else None,
                since,
                visits,
                choices.rule_id(rule),
            )
            for rule, since, visits in rules
        ]
        return await view.response(
            "left_out.html",
            400 if problem else 200,
            parts_of_page=parts_of(days, requests, str(view.filters.today), is_aside=is_aside),
            days=days,
            stored=stored,
            files=files,
            share=percentage(files, stored) if stored else "none",
            rules=shown,
            is_aside=is_aside,
            kinds=KINDS,
            examples=EXAMPLES,
            about=ABOUT,
            reasons=REASONS,
            may_write=session.caller.may_write,
            problem=problem,
            fields=fields or {},
            lines=commands(context, request, DAYS, view.filters),
            suggestions=suggestions(values),
        )

    async def add(self, request: Request) -> Response:
        """Add the rule entered in the form."""
        organization, fields = await _editors_form(request)
        kind, value = fields.get("kind", ""), fields.get("value", "").strip()
        kinds: Mapping[str, ExclusionKind] = {one: one for one in get_args(ExclusionKind)}
        try:
            if kind not in kinds:
                raise BadInput("Choose what to leave out: an address, a user agent or a path.")
            await self._context.in_thread(request, choices.add_rule, self._lake, organization, kinds[kind], value)
        except BadInput as error:
            return await self.left_out(request, str(error), fields)
        return self._to_page("rules")

    async def remove(self, request: Request) -> Response:
        organization, _ = await _editors_form(request)
        rule = request.path_params["id"]
        if await self._context.in_thread(request, choices.remove_rule, self._lake, organization, rule) is None:
            raise NotFound
        return self._to_page("rules")

    async def switch_files(self, request: Request) -> Response:
        """Set files aside, or count them."""
        organization, fields = await _editors_form(request)
        aside = fields.get("files") == "aside"
        await self._context.in_thread(request, lambda: choices.switch_files(self._lake, organization, aside=aside))
        return self._to_page("files")

    def _to_page(self, anchor: str) -> Response:
        return RedirectResponse(f"{self._context.root}/{PATH}#{anchor}", 303)


def parts_of(days: Rows, requests: Rows, today: str, *, is_aside: bool) -> tuple[Part, Part]:
    """Return both halves of the page: visits not counted, and visits that count as bots."""
    aside = {"own": "Your own visits"} | ({"files": "Files"} if is_aside else {})
    of_parts = (
        ("not-counted", "Not counted", "Stored, but not counted on any other page.", aside),
        (
            "bots", "Counted as bots", "Recognized by their requests or behaviour, whatever their names.",
            {
                "disguised": "Disguised", "loaded_ahead": "Loaded ahead", "probes": "Probes",
                "no_agent": "No user agent",
            },
        ),
    )  # fmt: skip
    whole = [row for row in days if row["date"] < today]
    first, second = (
        Part(
            anchor,
            title,
            hint,
            labels,
            {field: sum(row[field] for row in days) for field in labels},
            {field: sparkline([row[field] for row in whole]) for field in labels},
            [row for row in requests if (row["reason"] in {"file", "own"}) == (anchor == "not-counted")],
        )
        for anchor, title, hint, labels in of_parts
    )
    return first, second


async def _editors_form(request: Request) -> tuple[str, dict[str, str]]:
    """Return the editor's organization and the form's fields. Raises Forbidden for viewers."""
    session: Session = request.scope["session"]
    if not session.caller.may_write:
        raise Forbidden("Viewers cannot change what is counted.", "Ask an editor to do it.")
    return session.organization, await form_fields(request)
