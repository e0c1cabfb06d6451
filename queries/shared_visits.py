"""The visits that several answers share, such as those of a dashboard under a filter: what is read of them."""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import date
from functools import cache
from typing import Final

from data.visits import VISITS
from queries.catalog import Entry, template, template_entries
from queries.prelude import relation_names, sql_text, view_names

MAX_SHARED_VISITS: Final = 300_000
"""Visits that are kept in memory for the answers of a dashboard; at most 50 MB."""

_ALWAYS_READ: Final = frozenset({"for_domain", "day"})
"""The columns that every relation reads, whatever it counts."""
_COMMENT: Final = re.compile(r"--.*")
_IDENTIFIER: Final = re.compile(r"\w+")


def relations_that_read_all(entries: Sequence[Entry], sources: Mapping[str, str]) -> list[str]:
    """The stored relations of these answers that count all visits in scope, because rollups do not serve them."""
    read = set[str]().union(*(_read_by(template(leaf.name)) for entry in entries for leaf in template_entries(entry)))
    return sorted(name for name in read.intersection(relation_names()) if sources[name] == "all_visits")


def columns_of_relations(relations: Iterable[str]) -> list[str]:
    """The columns of visits that are named in the text of a relation."""
    return sorted(_ALWAYS_READ.union(*map(_columns_of, relations)))


def days_to_cut(days: Sequence[date], closed: Collection[date], cut: Collection[date]) -> list[date]:
    """Those of `days`, of high cardinality, of which words may be cut: those in `cut`, and those without a rollup."""
    return [day for day in days if day in cut or day not in closed]


@cache
def _columns_of(relation: str) -> frozenset[str]:
    return frozenset(_identifiers(_text_of(relation)).intersection(VISITS.names))


@cache
def _read_by(sql: str) -> frozenset[str]:
    """The relations that are named in a text, or in that of one of them."""
    seen = set[str]()
    while more := {name for text in [sql, *map(_text_of, seen)] for name in _identifiers(text) & view_names()} - seen:
        seen |= more
    return frozenset(seen)


def _text_of(relation: str) -> str:
    return sql_text(f"relations/{relation}")


def _identifiers(sql: str) -> set[str]:
    return set(_IDENTIFIER.findall(_COMMENT.sub("", sql)))
