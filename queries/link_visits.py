"""The visits of one link that several answers share, such as those of a dashboard: what is read of them."""

import re
from collections.abc import Collection, Sequence
from datetime import date
from functools import cache
from typing import Final

from data.visits import VISITS
from queries.catalog import Entry, template, template_entries
from queries.prelude import sql_text, view_names

MAX_LINK_VISITS: Final = 50_000
"""Visits of one link that are kept in memory for the answers of a dashboard; about 10 MB."""

_ALWAYS_READ: Final = frozenset({"for_domain", "day"})
"""The columns that every relation reads, whatever it counts."""
_COMMENT: Final = re.compile(r"--.*")
_IDENTIFIER: Final = re.compile(r"\w+")


def columns_of_entries(entries: Sequence[Entry]) -> list[str]:
    """The columns of `link_visits` that the answers of these entries read, or more."""
    names = [leaf.name for entry in entries for leaf in template_entries(entry)]
    return sorted(_ALWAYS_READ.union(*map(_columns_of_template, names)))


def days_to_cut(crowded: Sequence[date], closed: Collection[date], cut: Collection[date]) -> list[date]:
    """The crowded days of which words may have to be cut: those in `cut`, and those that no rollup covers."""
    return [day for day in crowded if day in cut or day not in closed]


@cache
def _columns_of_template(name: str) -> frozenset[str]:
    """The columns of visits that are named in the text of a template or of a relation that it reads, or these read."""
    identifiers, seen = _identifiers(template(name)), set[str]()
    while relations := identifiers.intersection(view_names()) - seen:
        seen |= relations
        identifiers = identifiers.union(*(_identifiers(sql_text(f"relations/{relation}")) for relation in relations))
    return frozenset(identifiers.intersection(VISITS.names))


def _identifiers(sql: str) -> set[str]:
    return set(_IDENTIFIER.findall(_COMMENT.sub("", sql)))
