"""Alternatives to this project, each with the same visits and the same queries: the members of the dashboard.

A peer returns every number in our own answer, including percentages. Its application would have to add the rest:
rows of zeros for hours and days without visits, names of countries, targets of links, purposes of fetches, and bytes,
which generated visits do not have.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import resources
from typing import Any, Final, Protocol

from data import Lake
from data.signals import CONVICTING
from queries import ENTRIES, Entry, Result, Scope, Warehouse, template_entries
from queries.fields import Field

MEMBERS: Final = {entry.name: entry for entry in template_entries(ENTRIES["dashboard"])}
"""The entries that make up the dashboard: its thirteen members, with two entries for the weekly trend."""
_LEFT_OUT: Final = ("country_name", "source", "target_url", "bytes_sent", "asked")

Rows = list[tuple[Any, ...]]


@dataclass(frozen=True)
class World:
    """A lake with the generated visits that all peers are queried about."""

    lake: Lake
    name: str
    visits: int
    digest: str


class Peer(Protocol):
    """A peer with its visits loaded."""

    def ask(self, member: str, scope: Scope) -> object:
        """Return a member's answer in the cheapest form; this is the timed part."""

    def rows(self, member: str, answer: object) -> Rows:
        """Return the rows in a result of `ask`."""


def check(peer: Peer, name: str, warehouse: Warehouse, scope: Scope) -> None:
    """End the program unless the peer's answers equal ours: a system that answers another question is not a peer."""
    snapshot = warehouse.snapshot(scope)
    for member, entry in MEMBERS.items():
        ours = sorted(comparable(entry, rows_of(entry, warehouse.answer(entry, snapshot))))
        theirs = sorted(comparable(entry, peer.rows(member, peer.ask(member, scope))))
        if ours != theirs:
            first = next((pair for pair in zip(ours, theirs, strict=False) if pair[0] != pair[1]), "their number")
            raise SystemExit(f"{name} answers {member} differently: {len(theirs)} rows, not {len(ours)}; {first}")


def rows_of(entry: Entry, answer: Result) -> Rows:
    """Return our own answer as a peer returns it: without the fields and empty rows that peers leave out."""
    rows = [answer] if isinstance(answer, dict) else answer
    kept = [field.name for field in fields_of(entry)]
    return [tuple(row[name] for name in kept) for row in rows if entry.shape == "row" or _counted(row)]


def fields_of(entry: Entry) -> list[Field]:
    """Return the fields of a peer's answer, in order."""
    return [field for field in entry.fields if field.name not in _LEFT_OUT]


def comparable(entry: Entry, rows: Rows) -> list[tuple[str, ...]]:
    """Return rows with every value as text, in a uniform format for each kind of field."""
    write = [_WRITTEN.get(field.kind.sql, str) for field in fields_of(entry)]
    return [tuple(how(value) for how, value in zip(write, row, strict=True)) for row in rows]


def statements(file: str) -> dict[str, str]:
    """Return the statements in an SQL file in this folder, by their names in comments such as `-- name: devices`.

    [convicting] is replaced by the mask of the signals that convict.
    """
    text = resources.files("benchmarks.peers").joinpath(file).read_text("utf-8")
    parts = (part.partition("\n") for part in filled(text, {"convicting": str(CONVICTING)}).split("-- name: ")[1:])
    return {name.strip(): sql.strip().removesuffix(";") for name, _, sql in parts}


def filled(text: str, holes: Mapping[str, str]) -> str:
    """Return a statement with its placeholders, such as [scope], replaced."""
    for name, words in holes.items():
        text = text.replace(f"[{name}]", words)
    return text


def condition(scope: Scope) -> str:
    """Return the scope as an SQL condition, as the peer's application would write it. Values are not escaped, since all
    of them are our own.
    """
    words = "".join(f" AND {name} = '{word}'" for name, word in scope.filters.items())
    return f"organization = '{scope.organization}' AND day BETWEEN '{scope.start_date}' AND '{scope.end_date}'{words}"


def _counted(row: dict[str, Any]) -> bool:
    return bool(row["visits"] if "visits" in row else row["total_visits"])


_WRITTEN: Final[dict[str, Callable[[Any], str]]] = {
    "BIGINT": lambda value: str(int(value)),
    "DOUBLE": lambda value: f"{float(value):.2f}",
    "DATE": lambda value: str(value)[:10],
    "TIMESTAMP": lambda value: str(value)[:19],
}
