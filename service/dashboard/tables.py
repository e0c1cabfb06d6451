"""Tables drawn from rows of an answer, and the addresses that their cells link to."""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import Any, Final
from urllib.parse import quote

from markupsafe import Markup

from queries import MAX_VALUE_LENGTH, PARAMETERS
from service.core.pages.charts import split_bar
from service.core.pages.columns import TableColumn, cell, plain
from service.core.pages.markup import joined
from service.core.pages.spans import last_day_of
from service.dashboard.comparison import REST
from service.reports.filters import Filters

Row = Mapping[str, Any]
_ANY_DOMAIN: Final = "(any)"
"""Shown as the domain of an unvisited link that works on all domains."""
OWN_SITE: Final = "(own site)"
"""Shown as the referrer in the row that sums up all of the organization's own hosts."""
_NO_DOMAIN: Final = frozenset((None, "", "unknown", REST, _ANY_DOMAIN))
"""Values in the domain column that a link's page does not filter by."""
_CSS_CLASSES: Final = (
    "address", "text", "text long", "text short", "number", "change", "day", "time", "badge", "share", "split",
)  # fmt: skip
_ROW_HEADS: Final = {css: Markup('<th scope="row" class="%s">') % css for css in _CSS_CLASSES}
_HEAD_WITH_DOMAIN: Final = Markup('<th scope="row" class="%s" data-domain="%s">')
"""The header cell of a short code or path: phones show the domain below it instead of in a column."""
_CELLS: Final = {css: Markup('<td class="%s">') % css for css in _CSS_CLASSES}
_DOMAIN_CELLS: Final = {css: Markup('<td class="%s domain">') % css for css in _CSS_CLASSES}
_END_ROW_HEAD, _END_CELL, _END_ROW = Markup("</th>"), Markup("</td>"), Markup("</tr>")
_ROW, _REST_ROW = Markup("<tr>"), Markup('<tr class="rest">')
_SPLIT: Final = Markup('<data value="%.4f">%s</data>')
"""A bar divided by class of visits; tables sort their rows by its value, the share of people."""
_NOT_COVERED: Final = Markup(' <span class="badge">no data</span>')
_LONG_RUN: Final = re.compile(r"[^\s/-]{19}")
"""A run of characters so long that a narrow column may break it."""
_MAX_UNWRAPPED: Final = 14
"""Maximum length of text that is never wrapped."""
_SHOWN_BY: Final = {"country": "country_name"}
"""Fields that another field shows in words."""
LINKED_FIELDS: Final = {
    **{name: name for name in ("short_code", "domain", "tag", "date", "week", "month")},
    **{_SHOWN_BY.get(row.name, row.name): row.name for row in PARAMETERS.values() if row.kind == "word"},
    "tool": "ai_source",
    "named": "named",
}
"""Fields with cells that link to another page or filter this page, each with the filter that the link sets."""
SUBJECT_PATHS: Final = {"ai_source": "ai", "operator": "operators", "agent": "agents"}
"""Parameters with a page for each value, each with the path of its pages after /app/."""
_OF_SUBJECT: Final = {"agent": "agent", "link": "short_code", "referrer": "referrer"}
"""The field that contains the name in a change, by the change's subject."""
_LINK_UNKNOWN: Final = frozenset(
    row.name for row in PARAMETERS.values() if row.links_unknown and (row.kind == "word" or row.name == "domain")
)


class CellLinks:
    """The addresses that cells link to, which keep the filters of the page."""

    def __init__(self, root: str, path: str, filters: Filters) -> None:
        """`root` is the path above all pages, without a final slash; `path` is the path of this page."""
        self._root = root
        self._path = path
        self._filters = filters
        self._here = f"{path}{filters.query_string()}"

    def of(self, field: str, row: Row) -> str:
        """Return the address that a field of LINKED_FIELDS links to; "" if there is none or it is this page."""
        name = LINKED_FIELDS[field]
        value = str(row.get(name, row[field]) or "")
        is_unlinked = value in {"", REST, _ANY_DOMAIN, OWN_SITE} or (value == "unknown" and name not in _LINK_UNKNOWN)
        if is_unlinked or len(value) > MAX_VALUE_LENGTH:
            return ""
        changed = self._filters.query_string
        match name:
            case "named" if "path" in row:
                address = f"{self._root}/{row['path']}"
            case "named":
                field = _OF_SUBJECT[row["subject"]]
                return self.of(field, {field: value, "domain": row["domain"]})
            case "short_code":
                domain = row.get("domain")
                changes = {"domain": None if domain in _NO_DOMAIN else domain, "short_code": value}
                address = f"{self._root}/link{changed(**changes, target_url=None, traffic_type=None)}"
            case _ if name in SUBJECT_PATHS:
                query = changed(**{name: None}, traffic_type=None)
                address = f"{self._root}/{SUBJECT_PATHS[name]}/{quote(value, safe='')}{query}"
            case "tag":
                address = f"{self._root}/links{replace(self._filters, by='').query_string(tag=value)}"
            case "date":
                address = f"{self._path}{changed(start_date=value, end_date=value)}"
            case "week" | "month":
                end = min(last_day_of(name, date.fromisoformat(value)), self._filters.today)
                address = f"{self._path}{changed(start_date=value, end_date=str(end))}"
            case _:
                address = f"{self._path}{changed(**{name: value})}"
        return "" if address == self._here else address


@dataclass(frozen=True)
class Table:
    """The columns of a table, and how the cells of a row are drawn."""

    columns: Sequence[TableColumn]
    color: str = "plain"  # colour of bars
    has_split: bool = False  # a column with a bar of people, AI-related and other visits
    links: CellLinks | None = None  # None: cells have no links
    last: Callable[[Row], Markup] | None = None
    """Renders the last cell of each row."""

    def body(self, rows: Sequence[Row], missing: Collection[int] = ()) -> Markup:
        """Return the rows as HTML; `missing` contains the positions of rows that lack all data."""
        shares = [column.field for column in self.columns if column.kind == "share"]
        most = {name: max((row[name] or 0 for row in rows), default=0) for name in shares}
        return joined(*(self._row(row, most, is_missing=number in missing) for number, row in enumerate(rows)))

    def _row(self, row: Row, most: Mapping[str, float], *, is_missing: bool) -> Markup:
        is_rest = row.get(self.columns[0].field) == REST
        is_address = not is_rest and self.columns[0].field in {"short_code", "path"} and "domain" in row
        parts = [_REST_ROW if is_rest else _ROW]
        for number, column in enumerate(self.columns):
            href = self.links.of(column.field, row) if self.links and column.field in LINKED_FIELDS else ""
            css = column.css
            content = cell(column, row, self.color, href, most.get(column.field) or 100)
            if css == "text":
                text = plain(column, row)
                css = "text long" if _LONG_RUN.search(text) else "text short" if len(text) <= _MAX_UNWRAPPED else css
            if number:
                cells = _DOMAIN_CELLS if column.field == "domain" else _CELLS
                parts += (cells[css], content, _END_CELL)
            else:
                head = _HEAD_WITH_DOMAIN % (css, row["domain"] or "") if is_address else _ROW_HEADS[css]
                parts += (head, content, _NOT_COVERED if is_missing else Markup(""), _END_ROW_HEAD)
        if self.has_split:
            people, ai, other = (int(row[name]) for name in ("human_clicks", "ai_visits", "other_visits"))
            parts += (
                _CELLS["split"],
                _SPLIT % (people / max(people + ai + other, 1), split_bar(people, ai, other)),
                _END_CELL,
            )
        if self.last:
            last = self.last(row)
            parts += (_CELLS["text" if len(last) > _MAX_UNWRAPPED else "text short"], last, _END_CELL)
        return joined(*parts, _END_ROW)
