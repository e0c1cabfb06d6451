"""Reads visits once for several answers, such as the parts of a filtered dashboard or the findings of all detectors."""

import re
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import date
from functools import cache
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from data.visits import VISITS
from queries.catalog import Entry, template, template_entries
from queries.locked_engine import LockedEngine
from queries.prelude import sql_text, view_names
from queries.snapshot import MAX_VALUES_PER_DAY, Snapshot

MAX_SHARED_VISITS: Final = 300_000
"""Maximum number of visits in one table kept in memory for a dashboard or the detectors; a dashboard's visits take at
most 50 MB."""

_BY_DAY: Final = "SELECT day, count(*) FROM all_visits GROUP BY day ORDER BY day"
_VISITS: Final = (
    "SELECT COLUMNS(lambda name: list_contains($columns, name)) FROM query_table($source) "
    "WHERE day BETWEEN $first AND $last"
)
_ROWS: Final = "FROM query_table($relation || '_counted')"
_WORDS: Final = (("agent",), ("domain",), ("referrer",), ("utm_source", "utm_medium", "utm_campaign"))
"""The columns that relations cut to their most frequent values, grouped by relation."""
_ALWAYS_READ: Final = frozenset({"for_domain", "day", "is_counted"})
"""The columns that every relation reads, if they exist."""
_SIGNED: Final = "is_signed"
"""A column that visits have in addition to the stored columns."""
_DETECTED: Final = ("is_file", "aside")
"""Columns that visits_with_aside has in addition to the stored columns, and that detectors read."""
_COMMENT: Final = re.compile(r"--.*")
_IDENTIFIER: Final = re.compile(r"\w+")


def share_visits(
    engine: LockedEngine, snapshot: Snapshot, entries: Sequence[Entry], cancelled: threading.Event | None = None
) -> Snapshot:
    """Return a snapshot that keeps in memory the visits that answers for `entries` read; use it for these answers only.

    For relations that rollups serve, these are the visits on days that no rollup covers, unless there are more than
    MAX_SHARED_VISITS. For other relations, these are all visits in scope; if there are more than MAX_SHARED_VISITS,
    they are read by period (see `periods_of`), and only the rows that these relations count from them are kept. For
    detectors, these are the visits in scope, including visits set aside, and the rows of failing_paths, unless there
    may be more than MAX_SHARED_VISITS visits. If there is nothing to share, the snapshot is returned unchanged. Raises
    the exceptions of `Warehouse.answer`.
    """
    texts = [template(leaf.name) for entry in entries for leaf in template_entries(entry)]
    read = set[str]().union(*map(_read_by, texts)) - snapshot.in_memory.keys()

    relations = _relations_from("uncovered_visits", read, snapshot)
    if relations and 0 < snapshot.uncovered_files.visits <= MAX_SHARED_VISITS:
        columns = columns_of_relations(relations)
        visits = _read(engine, snapshot, columns, "aside_and_uncovered_visits", cancelled=cancelled)
        uncovered = by_source("uncovered_visits", visits)
        if not snapshot.scope.filters and not has_many_words(uncovered["uncovered_visits"]):
            snapshot = replace(snapshot, high_cardinality_days=())  # planning a cut takes longer than counting
        snapshot = _with_source(snapshot, relations, "uncovered_visits", uncovered)

    if relations := _relations_from("all_visits", read, snapshot):
        with engine.cursor(snapshot, cancelled) as cursor:
            is_many = snapshot.files.visits > MAX_SHARED_VISITS  # otherwise visits need not be counted by day
            visits_by_day = cursor.execute(_BY_DAY).fetchall() if is_many else []
            counted_days = {"counted_days": [*snapshot.days_with_rollups]}
            is_cut = bool(snapshot.high_cardinality_days)
            cut = cursor.execute(sql_text("cut_days"), counted_days).fetchall() if is_cut else []
        snapshot = replace(snapshot, high_cardinality_days=tuple(day for (day,) in cut))
        if sum(visits for _, visits in visits_by_day) > MAX_SHARED_VISITS:
            counted = _count_by_period(engine, snapshot, relations, periods_of(visits_by_day), cancelled)
            snapshot = _with_rows(snapshot, counted)
        else:
            columns = columns_of_relations(relations)
            visits = _read(engine, snapshot, columns, "aside_and_all_visits", cancelled=cancelled)
            snapshot = _with_source(snapshot, relations, "shared_visits", by_source("shared_visits", visits))

    are_detectors = any("detected_visits()" in text for text in texts)
    if are_detectors and 0 < snapshot.files.visits <= MAX_SHARED_VISITS:
        named = set[str]().union(*map(_identifiers, [*texts, sql_text("prelude/7_jobs")]))
        columns = [*named.intersection([*VISITS.names, *_DETECTED]), *_ALWAYS_READ]
        visits = _read(engine, snapshot, columns, "visits_with_aside", cancelled=cancelled)
        snapshot = _with_rows(snapshot, {"visits_with_aside": _with_words_once(visits)})
        with engine.cursor(snapshot, cancelled) as cursor:
            failing = cursor.table("failing_paths").to_arrow_table()
        snapshot = _with_rows(snapshot, {"failing_paths": failing})
    return snapshot


def by_source(name: str, visits: pa.Table) -> dict[str, pa.Table]:
    """Return a source's counted visits under its name and, for daily_links, all its visits under `aside_and_<name>`."""
    is_counted = visits["is_counted"]
    counted = visits.filter(is_counted) if pc.any(pc.invert(is_counted)).as_py() else visits
    of_links = {*columns_of_relations(["daily_links"])}.intersection(visits.column_names)
    return {name: counted.drop_columns("is_counted"), f"aside_and_{name}": visits.select(sorted(of_links))}


def has_many_words(visits: pa.Table) -> bool:
    """Return whether the visits of all days have more distinct agents, domains, referrers or campaigns than a relation
    keeps for one day.
    """
    words = ([column for column in columns if column in visits.column_names] for columns in _WORDS)
    return any(visits.group_by(columns).aggregate([]).num_rows > MAX_VALUES_PER_DAY for columns in words if columns)


def _count_by_period(
    engine: LockedEngine,
    snapshot: Snapshot,
    relations: Sequence[str],
    periods: Iterable[tuple[date, date]],
    cancelled: threading.Event | None,
) -> dict[str, pa.Table]:
    """Return all rows of these relations, counted from the visits period by period."""
    with engine.cursor(snapshot, cancelled) as cursor:
        answered = cursor.sql("FROM answered_links").to_arrow_table()
    columns = columns_of_relations(relations)
    counted: dict[str, list[pa.Table]] = {relation: [] for relation in relations}
    for period in periods:
        visits = _read(engine, snapshot, columns, "aside_and_all_visits", period=period, cancelled=cancelled)
        read = {"answered_links": answered, **by_source("shared_visits", visits)}
        with engine.cursor(_with_source(snapshot, relations, "shared_visits", read), cancelled) as cursor:
            for relation, rows in counted.items():
                rows.append(_with_words_once(cursor.sql(_ROWS, params={"relation": relation}).to_arrow_table()))
    return {relation: pa.concat_tables(rows).unify_dictionaries() for relation, rows in counted.items()}


def _with_words_once(table: pa.Table) -> pa.Table:
    """Return the table with its strings dictionary-encoded: rows with many paths then take two fifths of the memory."""
    for place, field in enumerate(table.schema):
        if pa.types.is_string(field.type):
            table = table.set_column(place, field.name, table[place].dictionary_encode())
    return table


def _read(
    engine: LockedEngine,
    snapshot: Snapshot,
    columns: Sequence[str],
    source: str,
    *,
    period: tuple[date, date] = (date.min, date.max),
    cancelled: threading.Event | None,
) -> pa.Table:
    """Return these columns of a source's visits, from the first to the last day of a period (inclusive)."""
    asked = {"columns": columns, "source": source, "first": period[0], "last": period[1]}
    with engine.cursor(snapshot, cancelled) as cursor:
        return cursor.sql(_VISITS, params=asked).to_arrow_table().combine_chunks()  # reading many chunks would be slow


def _with_source(snapshot: Snapshot, relations: Iterable[str], source: str, read: Mapping[str, pa.Table]) -> Snapshot:
    """Return a copy of the snapshot in which these relations count visits from tables in memory."""
    sources = {**snapshot.sources, **dict.fromkeys(relations, f"{source}_in_memory")}
    return _with_rows(replace(snapshot, sources=sources), read)


def _with_rows(snapshot: Snapshot, read: Mapping[str, pa.Table]) -> Snapshot:
    """Return a copy of the snapshot with these additional tables in memory."""
    return replace(snapshot, in_memory={**snapshot.in_memory, **read})


def _relations_from(source: str, relations: Iterable[str], snapshot: Snapshot) -> list[str]:
    """Return the relations that count visits from one source."""
    return sorted(relation for relation in relations if snapshot.sources.get(relation) == source)


def columns_of_relations(relations: Iterable[str]) -> list[str]:
    """Return the columns of visits that the SQL of these relations names, plus the columns that are always read."""
    return sorted(_ALWAYS_READ.union(*map(_columns_of, relations)))


def periods_of(visits_by_day: Iterable[tuple[date, int]]) -> list[tuple[date, date]]:
    """Group days into periods of at most MAX_SHARED_VISITS visits, and return each period's first and last day. A day
    with more visits is a separate period.
    """
    periods: list[tuple[date, date]] = []
    room = 0
    for day, visits in visits_by_day:
        if visits > room:
            periods.append((day, day))
            room = MAX_SHARED_VISITS
        periods[-1] = (periods[-1][0], day)
        room -= visits
    return periods


@cache
def _columns_of(relation: str) -> frozenset[str]:
    return frozenset(_identifiers(_text_of(relation)).intersection([*VISITS.names, _SIGNED]))


@cache
def _read_by(sql: str) -> frozenset[str]:
    """Return the relations that a query reads, directly or through other relations."""
    seen = set[str]()
    while more := {name for text in [sql, *map(_text_of, seen)] for name in _identifiers(text) & view_names()} - seen:
        seen |= more
    return frozenset(seen)


def _text_of(relation: str) -> str:
    return sql_text(f"relations/{relation}")


def _identifiers(sql: str) -> set[str]:
    return set(_IDENTIFIER.findall(_COMMENT.sub("", sql)))
