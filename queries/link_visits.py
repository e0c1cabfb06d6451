"""The visits of one link, read from files once and kept in memory for several answers, such as those of a dashboard."""

import re
from collections.abc import Sequence
from datetime import date
from functools import cache
from typing import Final

import duckdb

from data.visits import VISITS
from queries.catalog import Entry, template, template_entries
from queries.prelude import relation_names, sql_text
from queries.variables import LINK_VISITS, Variables, one_source

MAX_LINK_VISITS: Final = 50_000
"""Visits of one link that are kept in memory for the answers of a dashboard; about 10 MB."""

_ALWAYS_READ: Final = ("for_domain", "day", "domain", "short_code", "bot_category")
"""The columns that every relation reads: its bookkeeping and those that scopes filter by."""
_COMMENT: Final = re.compile(r"--.*")
_WORD: Final = re.compile(r"\w+")


def read_link_visits(
    cursor: duckdb.DuckDBPyConnection, variables: Variables, entries: Sequence[Entry]
) -> Variables | None:
    """The snapshot with the visits of its link, of which it has the columns that these entries read.

    The variables are those of the cursor. None if there are more than MAX_LINK_VISITS visits.
    """
    names = [leaf.name for entry in entries for leaf in template_entries(entry)]
    visits = cursor.sql(
        "SELECT COLUMNS(lambda name: list_contains($columns, name)) FROM link_visits LIMIT $max + 1",
        params={"columns": sorted(frozenset().union(*map(columns_read, names))), "max": MAX_LINK_VISITS},
    ).to_arrow_table()
    if len(visits) > MAX_LINK_VISITS:
        return None
    return {
        **variables,
        "crowded_days": _crowded_days(cursor, variables),
        "sources": one_source(LINK_VISITS),
        LINK_VISITS: visits.combine_chunks(),  # one from each file would be slow to read
    }


@cache
def columns_read(name: str) -> frozenset[str]:
    """The columns of visits that a template reads, or more: those that it and the texts of its relations name."""
    words = _words(template(name))
    for relation in words.intersection(relation_names()):
        words |= _words(sql_text(f"relations/{relation}"))
    return frozenset(_ALWAYS_READ) | words.intersection(VISITS.names)


def _words(sql: str) -> set[str]:
    return set(_WORD.findall(_COMMENT.sub("", sql)))


def _crowded_days(cursor: duckdb.DuckDBPyConnection, variables: Variables) -> list[date]:
    """The crowded days without those of which rollups show that nothing was cut, since to cut takes long."""
    crowded: list[date] = variables["crowded_days"]
    closed = set(variables["closed_days"])
    if closed.isdisjoint(crowded):
        return crowded
    cut = {day for (day,) in cursor.execute(sql_text("cut_days")).fetchall()}
    return [day for day in crowded if day in cut or day not in closed]
