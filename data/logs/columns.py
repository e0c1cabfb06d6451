"""Columns of a file of one's own, CSV or lines of JSON: which of its names means which of ours."""

import csv
import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from data.errors import BadInput
from data.logs.reported import Reported

NAMES: Final = Reported.__struct_fields__
"""What tells of a visit, as in the HTTP intake. Readers are given the values in this order."""

MOST_NAMED: Final = 30
"""Columns that an error lists at most."""

_LOOKS_LIKE_A_NAME: Final = re.compile(r"[^\W\d][\w .@#-]*")
"""A first line that names no columns may hold an address, which is not repeated."""


@dataclass(frozen=True)
class Columns:
    """What a file calls the columns that tell of a visit: our name → the file's, where that is another one."""

    renamed: dict[str, str] = field(default_factory=dict)

    def name(self, ours: str) -> str:
        """What the file calls it."""
        return self.renamed.get(ours, ours)

    def paths(self) -> list[str]:
        """JSON pointers to the values; a dot reaches into an inner object."""
        steps = [self.name(ours).replace("~", "~0").replace("/", "~1").split(".") for ours in NAMES]
        return ["".join(f"/{step}" for step in path) for path in steps]

    def places(self, found: list[str]) -> list[int]:
        """Where the values stand among these columns, from 1; 0 for nowhere."""
        return [found.index(self.name(ours)) + 1 if self.name(ours) in found else 0 for ours in NAMES]

    def missing(self, found: Iterable[str]) -> str:
        """Which of ours is needed and not among these columns; '' when a visit can be told by them."""
        known = set(found)
        if self.name("time") not in known:
            return "time"
        return "" if known & {self.name("url"), self.name("path")} else "url"

    def require(self, found: Iterable[str], promised: bool = False) -> None:
        """Raise BadInput when one that is needed is not among these columns, or one that was `promised`."""
        known = list(dict.fromkeys(found))
        broken = [ours for ours, theirs in self.renamed.items() if promised and theirs not in known]
        if ours := self.missing(known) or next(iter(broken), ""):
            wanted = f"{self.name(ours)!r}" + (f" or {self.name('path')!r}" if ours == "url" else "")
            names = [name for name in known if _LOOKS_LIKE_A_NAME.fullmatch(name)]
            listed = ", ".join(names[:MOST_NAMED]) + (", …" if len(names) > MOST_NAMED else "")
            raise BadInput(
                f"it has no column {wanted} for {ours}; it has {listed or 'none that looks like a name'}. "
                f"Say which one it is with --columns {ours}=NAME."
            )


def columns_from(text: str) -> Columns:
    """Columns from pairs such as `time=ts,ip=client.address`: our name, the file's. Raises BadInput for others."""
    renamed: dict[str, str] = {}
    for pair in text.split(",") if text else []:
        ours, _, theirs = (word.strip() for word in pair.partition("="))
        if ours not in NAMES:
            raise BadInput(
                f"--columns: {ours!r} tells nothing of a visit; known are {', '.join(NAMES)}. "
                "Write pairs like time=ts,ip=client: first our name, then the file's."
            )
        if not theirs or ours in renamed:
            raise BadInput(f"--columns: {ours} must be given one name, like {ours}=NAME.")
        renamed[ours] = theirs
    return Columns(renamed)


def columns_in_header(header: bytes) -> list[str]:
    """The names in the first line of a CSV file."""
    rows = csv.reader([header.decode("utf-8", errors="replace").replace("\0", "\ufffd")])
    return [name.strip() for name in next(rows, [])]


def columns_in_objects(lines: Iterable[str]) -> list[str]:
    """The keys of the JSON objects among these lines, those of inner objects after a dot."""
    names: dict[str, None] = {}
    for line in lines:
        try:
            names |= dict.fromkeys(_keys(json.loads(line)))
        except (ValueError, RecursionError):
            continue
    return list(names)


def _keys(value: Any, prefix: str = "") -> Iterator[str]:  # noqa: ANN401  # whatever JSON holds
    if isinstance(value, dict):
        for key, inner in value.items():
            yield f"{prefix}{key}"
            yield from _keys(inner, f"{prefix}{key}.")
