"""Maps the columns of custom CSV and JSON files to the fields of a visit."""

import csv
import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from data.errors import BadInput
from data.logs.reported import Reported

FIELD_NAMES: Final = (*Reported.__struct_fields__, "protocol")
"""The fields of a visit for which a file may have columns: the fields of POST /visits, and the HTTP version."""

MAX_LISTED_COLUMNS: Final = 30
"""Maximum number of columns that an error message lists."""

_COLUMN_NAME: Final = re.compile(r"[^\W\d][\w .@#-]*")
"""Column names that messages may repeat: without a header, the first line of a file may contain an IP address."""


@dataclass(frozen=True)
class ColumnNames:
    """The names of the columns in a file. `renamed` maps a field to its column where the two names differ."""

    renamed: dict[str, str] = field(default_factory=dict)

    def name(self, field_name: str) -> str:
        """Return the name of a field's column."""
        return self.renamed.get(field_name, field_name)

    def paths(self) -> list[str]:
        """Return a JSON pointer (RFC 6901) for each of FIELD_NAMES; a dot in a column's name separates nested keys."""
        steps = [self.name(name).replace("~", "~0").replace("/", "~1").split(".") for name in FIELD_NAMES]
        return ["".join(f"/{step}" for step in path) for path in steps]

    def positions(self, columns: list[str]) -> list[int]:
        """Return the position, from 1, of each of FIELD_NAMES among `columns`; 0 if a field has no column."""
        return [columns.index(self.name(name)) + 1 if self.name(name) in columns else 0 for name in FIELD_NAMES]

    def missing(self, columns: Iterable[str]) -> str:
        """Return the first required field without a column; '' if every required field has a column."""
        present = set(columns)
        if self.name("time") not in present:
            return "time"
        return "" if present & {self.name("url"), self.name("path")} else "url"

    def require(self, columns: Iterable[str], all_renamed: bool = False) -> None:
        """Raise BadInput if a required field has no column; with `all_renamed`, also if any renamed field has none."""
        present = list(dict.fromkeys(columns))
        absent = [name for name, column in self.renamed.items() if all_renamed and column not in present]
        if missing := self.missing(present) or next(iter(absent), ""):
            wanted = f"{self.name(missing)!r}" + (f" or {self.name('path')!r}" if missing == "url" else "")
            names = [name for name in present if _COLUMN_NAME.fullmatch(name)]
            listed = ", ".join(names[:MAX_LISTED_COLUMNS]) + (", …" if len(names) > MAX_LISTED_COLUMNS else "")
            raise BadInput(
                f"column {wanted} for {missing} is missing; found: {listed or 'no valid column names'}. "
                f"Name the column with --columns {missing}=NAME."
            )


def columns_from(text: str) -> ColumnNames:
    """Parse field=column pairs such as `time=ts,ip=client.address`. Raises BadInput if they are invalid."""
    renamed: dict[str, str] = {}
    for pair in text.split(",") if text else []:
        name, _, column = (word.strip() for word in pair.partition("="))
        if name not in FIELD_NAMES:
            raise BadInput(
                f"--columns: unknown field {name!r}; use one of {', '.join(FIELD_NAMES)}. "
                "Write field=column pairs, such as time=ts,ip=client."
            )
        if not column or name in renamed:
            raise BadInput(f"--columns: give {name} exactly one column, such as {name}=NAME.")
        renamed[name] = column
    return ColumnNames(renamed)


def columns_in_header(header: bytes) -> list[str]:
    """Return the names in the first line of a CSV file; [] if it is not CSV, for example because it contains a carriage
    return.
    """
    return cells_in(header.decode("utf-8", errors="replace").replace("\0", "\ufffd"))


def cells_in(line: str) -> list[str]:
    """Return the cells in a line of CSV; [] if the line is not CSV."""
    try:
        return [cell.strip() for cell in next(csv.reader([line]), [])]
    except csv.Error:
        return []


def columns_in_objects(lines: Iterable[str]) -> list[str]:
    """Return the keys of the JSON objects among `lines`; nested keys are joined by dots."""
    return list(dict.fromkeys(name for row in rows_in_objects(lines) for name in row))


def rows_in_objects(lines: Iterable[str]) -> Iterator[dict[str, Any]]:
    """Yield each JSON object among `lines` as a dict of values by key; nested keys are joined by dots. For other JSON
    values, yield an empty dict; skip lines that are not JSON.
    """
    for line in lines:
        try:
            yield dict(_items(json.loads(line)))
        except (ValueError, RecursionError):
            continue


def _items(value: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:  # noqa: ANN401  # any JSON value
    if isinstance(value, dict):
        for key, inner in value.items():
            yield f"{prefix}{key}", inner
            yield from _items(inner, f"{prefix}{key}.")
