"""The list of all links, shown in parts: its search, its order, and the part that is shown."""

from dataclasses import dataclass, replace
from typing import Final, Self

from queries import ENTRIES, PARAMETERS, InvalidParameter, Scope
from service.reports.filters import Filters, query_of
from service.reports.query_string import parse_parameters

ENTRY: Final = ENTRIES["all-links"]
ROWS: Final = 100
"""Number of rows in a part, as in the SQL template."""
MAX_PARTS: Final = 100_000
MAX_ROWS: Final = 100_000
"""Maximum number of rows in an exported file; 100,000 are about 10 MB."""
_NAMES: Final = ("search", "sort", "order", "visits", "part")
_ORDERS: Final = ("descending", "ascending")
_SORTABLE: Final = {
    field.name: "ascending" if field.kind.sql == "VARCHAR" else "descending"
    for field in ENTRY.fields
    if field.name not in {"tags", "links_found"}
}
"""Fields that rows can be sorted by, each with its default order."""


@dataclass(frozen=True)
class Listing:
    """The part of the list that a page's address requests."""

    filters: Filters
    given: dict[str, str]
    """Parameters of the list that are set, by name."""
    search: str  # text that the listed links contain, in any letter case
    is_unvisited: bool  # whether only links without visits are listed
    sort: str  # the field that rows are sorted by
    order: str  # descending or ascending
    part: int  # the number of the part, from 1

    @classmethod
    def parse(cls, query_string: bytes, filters: Filters) -> Self:
        """Parse the query string of a page. Raises InvalidParameter."""
        given = dict(parse_parameters(query_string, _NAMES))
        known = {"sort": tuple(_SORTABLE), "order": _ORDERS, "visits": ("none",)}
        for name, values in known.items():
            if given.get(name, values[0]) not in values:
                raise InvalidParameter(name, "has an unknown value", f"Use one of {', '.join(values)}.")
        part, sort = given.get("part", "1"), given.get("sort", "visits")
        if not (part.isascii() and part.isdigit() and len(part) <= len(str(MAX_PARTS)) and 1 <= int(part) <= MAX_PARTS):
            raise InvalidParameter("part", "is not a page number", f"Use 1 to {MAX_PARTS:,}.")
        order = given.get("order", _SORTABLE[sort])
        return cls(filters, given, given.get("search", ""), "visits" in given, sort, order, int(part))

    def scope(self, scope: Scope) -> Scope:
        """Return the scope of the answer with this part."""
        return replace(
            scope, search=self.search or None, unvisited=self.is_unvisited or None, sorted_by=self.sort,
            ascending=self.order == "ascending", skipped=self.first - 1,
        )  # fmt: skip

    def whole(self, scope: Scope) -> Scope:
        """Return the scope of the answer with all parts, up to the limit for a file."""
        return replace(self.scope(scope), skipped=0, shown=MAX_ROWS)

    @property
    def first(self) -> int:
        """Return the number of the first row of this part, from 1."""
        return ROWS * (self.part - 1) + 1

    @property
    def form_fields(self) -> list[tuple[str, str]]:
        """Return the hidden fields of the search form: the filters of the page and the order, as names and values."""
        filters = [(PARAMETERS[name].page_name, value) for name, value in self.filters.in_address.items()]
        return filters + [(name, self.given[name]) for name in ("sort", "order") if name in self.given]

    def sorted(self, field: str) -> str:
        """Return the query string that sorts by a field, or reverses its order; "" if the field is not sortable."""
        if field not in _SORTABLE:
            return ""
        others = [order for order in _ORDERS if order != self.order]
        return self._query(sort=field, order=others[0] if field == self.sort else "", part="")

    def at(self, part: int) -> str:
        """Return the query string of another part."""
        return self._query(part=str(part) if part > 1 else "")

    def _query(self, **changes: str) -> str:
        own = {name: value for name, value in {**self.given, **changes}.items() if value}
        query = self.filters.query_string()
        return query + query_of(own).replace("?", "&" if query else "?", 1)
