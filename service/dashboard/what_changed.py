"""The Overview's panel with the changes since the previous period, and with new failures."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Final

from queries import ENTRIES
from service.core.pages.columns import TableColumn
from service.dashboard.changes import changes_of
from service.dashboard.comparison import Comparison
from service.dashboard.panel import FilledPanel, PageAnswers, Panel, Selection, Wanted
from service.dashboard.tables import Row
from service.jobs.reader import Mark

_LINKS: Final = ENTRIES["visits-by-link"]
MAX_COMPARED: Final = 200_000
"""Maximum number of visits in both periods together for which a page compares links."""
MAX_BROKEN: Final = 3
"""Maximum number of jobs in the list; only the newest are listed."""
_COLUMNS: Final = (
    TableColumn("changed", "What", "text"),
    TableColumn("named", "Name", "text"),
    TableColumn("visits_now", "Visits", "number"),
    TableColumn("visits_before", "Period before", "number"),
)


@dataclass(frozen=True)
class WhatChanged(Panel):
    """A short list of new names, significant rises and falls, and new failures."""

    is_wide: bool = True
    is_compared: bool = False
    has_lines: ClassVar[bool] = False

    def wants(self, selection: Selection) -> list[Wanted]:
        """Return the requests for the visits by name in both periods; none without a previous period."""
        found = selection.comparison
        if not found:
            return []
        both = replace(found.now, start_date=found.before.start_date)
        entries = (self.entry, _LINKS) if selection.compares_links else (self.entry,)
        return [(entry, both) for entry in entries]

    def columns(self) -> tuple[TableColumn, ...]:
        """Return the columns: what changed, its name, and its visits in both periods."""
        return _COLUMNS

    def render(self, answers: PageAnswers, selection: Selection) -> FilledPanel:
        """Return the list, which the page leaves out if there is no previous period."""
        if not self.wants(selection):
            return replace(self, is_left_out=True).drawn_as(_COLUMNS, [], [], selection)
        rows = self.text_rows(answers, selection)
        return self.drawn_as(_COLUMNS, rows, rows, selection)

    def notes(self, _rows: Sequence[Row], selection: Selection) -> Sequence[str]:
        """Return a note if links are not compared."""
        return [] if selection.compares_links else [f"Above {MAX_COMPARED:,} visits, links are not compared."]

    def text_rows(self, answers: PageAnswers, selection: Selection) -> Sequence[Row]:
        """Return the changes, then the failures."""
        comparison, wanted = selection.comparison, self.wants(selection)
        if not comparison or not wanted:
            return []
        found = [
            {
                "changed": f"{change.kind.capitalize()} {change.subject}" if change.kind == "new"
                else f"{change.subject.capitalize()} {change.kind}",
                "named": change.name, "visits_now": change.now, "visits_before": change.before,
                "subject": change.subject, "domain": change.domain,
            }
            for change in changes_of([row for pair in wanted for row in answers[pair]], comparison)
        ]  # fmt: skip
        broken = [*_newest(selection.broken, comparison)]
        return [*found, *broken]


def _newest(broken: Sequence[Mark], comparison: Comparison) -> list[Row]:
    """Return rows for the newest jobs about failures since the period began."""
    since = [mark for mark in broken if mark.day >= comparison.now.start_date]
    return [
        {"changed": "New failure", "named": mark.text, "visits_now": None, "visits_before": None, "path": mark.path}
        for mark in since[:MAX_BROKEN]
    ]
