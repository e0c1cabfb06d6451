"""A report: the overview of an organization, or of one link, as one HTML file that loads nothing, or as plain text."""

import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from typing import Any, Final, Self

import orjson
from markupsafe import Markup

from data import Lake
from data.links.index import LinkIndex
from data.rules.geoip import CountryProvider
from data.store.country_file import country_database
from queries import Entry, Scope, Warehouse
from service.core.encoding import encode
from service.core.pages import assets, formats
from service.core.pages.columns import plain
from service.core.pages.rendering import environment
from service.dashboard.content import LINK, OVERVIEW, Page, PageContent, newest_visit, uncovered
from service.dashboard.evidence import evidence_by_day
from service.dashboard.panel import Panel, key_of
from service.dashboard.panels import TAGS
from service.dashboard.tiles import disguised_in_words
from service.jobs.reader import Mark
from service.reports.filters import Filters, in_words

ROWS: Final = 50
"""Minimum row limit of a panel in a report or on a shared page, which cannot link to further rows."""
TEXT_ROWS: Final = 10
MAX_TEXT_WIDTH: Final = 40
"""Maximum number of characters in a plain-text column."""


@dataclass(frozen=True)
class Report:
    """The loaded answers of a report."""

    filters: Filters
    page: Page
    content: PageContent
    loaded: Sequence[Any]
    zone: str  # the organization's time zone
    countries_from: CountryProvider | None

    @classmethod
    def load(  # noqa: PLR0917
        cls,
        lake: Lake,
        warehouse: Warehouse,
        organization: str,
        parameters: dict[str, str],
        today: date,
        cancelled: threading.Event | None = None,
        broken: Sequence[Mark] = (),
    ) -> Self:
        """Load the answers; `parameters` are API parameters, and empty ones have no effect.

        `cancelled` is passed to `Warehouse.answer`; `broken` is from JobReader.broken. Raises InvalidParameter, the
        exceptions of `Warehouse.answer`, and BadInput for a damaged country database.
        """
        filters = Filters.of(parameters, organization, today, LinkIndex(lake))
        page = LINK if filters.scope.short_code else OVERVIEW
        shown = (*page.panels, TAGS)
        page = replace(page, panels=tuple(replace(panel, limit=max(panel.limit, ROWS)) for panel in shown))
        content = PageContent(
            page, filters, lake.manifest.statistics.stored_span(organization), uncovered=uncovered(lake, filters),
            newest=newest_visit(lake, filters), evidence=evidence_by_day(lake, filters), compares_links=True,
            broken=broken,
        )  # fmt: skip
        entries: dict[Scope, list[Entry]] = {}
        for entry, scope in content.wanted:
            entries.setdefault(scope, []).append(entry)
        found = {}
        for scope, asked in entries.items():
            with warehouse.sharing(warehouse.snapshot(scope), asked, cancelled) as snapshot:
                for entry in asked:
                    answer = warehouse.answer(entry, snapshot, cancelled)
                    found[key_of((entry, scope))] = orjson.loads(encode(answer))
        loaded = [found[key_of(pair)] for pair in content.wanted]
        zone, database = lake.manifest.organizations.zone(organization), country_database(lake, None)
        return cls(filters, page, content, loaded, zone, database.provider if database else None)

    def html(self, made_at: datetime) -> str:
        """Return the report as one HTML file, which a browser can show offline."""
        style = (assets.FOLDER / "app.css").read_text("utf-8")
        context = {
            **self.content.filled(self.loaded),
            **self._heading(),
            "style": Markup(style),  # noqa: S704  # our own file
            "style_source": assets.source_of(style),
            "made_at": made_at,
            "zone": self.zone,
            "countries_from": self.countries_from,
        }
        return environment().get_template("report.html").render(context)

    def text(self) -> str:
        """Return the report as plain text, for an email."""
        heading = self._heading()
        lines = [f"{heading['title']} of {heading['organization']}, {heading['span']}"]
        lines += [f"{label}: {_clean(value)}" for label, value in heading["chosen"]]
        lines.append("")
        tiles = self.content.tiles(self.loaded)
        label_width, width = max(len(tile.label) for tile in tiles), max(len(tile.text) for tile in tiles)
        for tile in tiles:
            change = f"  {tile.change['text']}" if tile.change else ""
            lines.append(f"{tile.label:<{label_width}}  {tile.text:>{width}}{change}")
        answers, selection = self.content.answers(self.loaded), self.content.selection
        disguised = self.content.answer(answers, "disguised")
        lines += filter(None, (self.content.missing_in_words(), disguised_in_words(disguised)))
        if self.content.comparison:
            lines.append(f"Changes cover complete days: {self.content.comparison.spans}.")
            lines += filter(None, (self.content.lacking_evidence_in_words(),))
        for panel in self.content.panels:
            if not panel.is_in_text or not panel.wants(selection):
                continue
            rows = panel.text_rows(answers, selection)
            if rows or not panel.is_left_out:
                lines += ["", panel.title, *_table(panel, rows)]
        return "\n".join(lines) + "\n"

    def _heading(self) -> dict[str, Any]:
        scope = self.filters.scope
        return {
            "title": self.page.title,
            "organization": self.filters.organization,
            "span": formats.span(scope.start_date, scope.end_date),
            "chosen": in_words(self.filters.parameters),
        }


def _table(panel: Panel, rows: Sequence[Any]) -> Iterator[str]:
    """Yield the lines of a panel's first TEXT_ROWS rows as an aligned table, or its text for an empty answer."""
    columns = panel.columns()
    if not rows:
        yield panel.empty
        return
    cells = [[column.label for column in columns]]
    for row in rows[:TEXT_ROWS]:
        texts = [_clean(plain(column, row)) for column in columns]
        cells.append([text if len(text) <= MAX_TEXT_WIDTH else f"{text[: MAX_TEXT_WIDTH - 1]}…" for text in texts])
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for line in cells:
        padded = (
            f"{cell:<{width}}" if column.css == "text" else f"{cell:>{width}}"
            for cell, width, column in zip(line, widths, columns, strict=True)
        )
        yield "  ".join(padded).rstrip()
    if len(rows) > TEXT_ROWS:
        yield f"The first {TEXT_ROWS} of {len(rows):,} rows."


def _clean(text: str) -> str:
    """Return untrusted text with U+FFFD in place of unprintable characters, such as terminal and bidi controls."""
    return "".join(letter if letter.isprintable() else "\ufffd" for letter in text)
