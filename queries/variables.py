"""The session variables that the prelude reads: the scope, the files of its visits, and the rollups that apply.

This is the only place that decides whether rollups may be used for a scope.
"""

from collections import Counter
from collections.abc import Collection, Sequence
from datetime import date
from pathlib import Path
from typing import Any, Final

import duckdb

from data import Lake
from data.manifest.behaviour import unjudged_days
from data.manifest.files import LandedFile
from data.store.layout import LakeFolders
from data.store.link_files import link_files
from data.store.rollups import live_rollups, month_of, seed_path
from data.visits import SCHEMA_VERSION
from queries.prelude import relation_names, rollup_version, served_filters
from queries.scope import FILTERS, LISTING, Scope

Variables = dict[str, Any]
"""Values by variable name: scope, each filter and each part of a list that is set (FILTERS, LISTING), behaviour, files,
links, uncovered_files, rollups, closed_months, days_without_domains, high_cardinality_days, days_with_rollups, sources
and traffic_values; subjects for a measure of jobs; explain for what detectors pass over; and IN_MEMORY when several
answers share the rows that they read. Those of a snapshot for a cluster are listed at `cluster_variables`.
A snapshot never changes once it has been used: cursors keep its values."""

ROLLUP_FILTERS: Final = frozenset({"domain"})
"""The filters that all stored rows can serve, in addition to days. A relation may declare more (served_filters)."""

MAX_VALUES_PER_DAY: Final = 10_000
"""How many referrers, campaigns, agents or domains a relation keeps of a day; also in prelude/6_cut.sql."""

CUT_WORDS: Final = frozenset({"agent", "referrer", "utm_source", "utm_campaign"})
"""The filters by words that relations cut. Stored rows of a day that may have been cut do not serve them."""

IN_MEMORY: Final = "in_memory"
"""Name of the variable with Arrow tables by the relation whose rows they have, when several answers share them."""

CLUSTER_FILES: Final = "cluster_files"
"""Name of the variable that only snapshots for a cluster have."""


def empty_variables(lake: LakeFolders) -> Variables:
    """Variables that make every relation empty."""
    return {
        "files": visit_files(lake, []),
        "uncovered_files": visit_files(lake, []),
        "rollups": [str(seed_path(lake))],
        "closed_months": [],
        "days_without_domains": [],
        "high_cardinality_days": [],
        "days_with_rollups": [],
        "sources": one_source("all_visits"),
        "links": [lake.seed_links],
    }


def scope_variables(lake: Lake, scope: Scope, cluster_from: int | None = None) -> Variables:
    """The variables for a scope, from the live files of the lake now. Raises LakeDamaged for a damaged file.

    With `cluster_from`, they are those for a cluster if an answer would have to read as many visits, or more.
    """
    live = lake.live_files(scope.organization, scope.start_date, scope.end_date)
    behaviour = lake.manifest.behaviour.is_used(scope.organization)
    if behaviour and scope.only_judged:
        unjudged = unjudged_days(live)
        live = [file for file in live if file.day not in unjudged]
    rollups = live_rollups(lake, scope.organization, rollup_version(behaviour), live)
    for file in live:
        lake.verified_path(file)
    filters = scope.filters.keys()
    closed = rollups.days
    if scope.domain is not None:
        closed -= rollups.days_without_domains
    if filters & CUT_WORDS:
        closed -= {*_high_cardinality_days(live)}
    uncovered = [file for file in live if file.day not in closed]
    if cluster_from is not None:
        read = uncovered if filters <= ROLLUP_FILTERS | _SERVED_WHERE_TAKEN else live
        if sum(file.visits for file in read) >= cluster_from:
            return cluster_variables(lake, scope, live)
    closed_bits: Counter[date] = Counter()  # of each month, as day_bit() of the prelude numbers them
    for day in closed:
        closed_bits[month_of(day)] += 1 << day.day - 1
    return {
        **_scope_and_filters(scope),
        "behaviour": behaviour,
        "files": visit_files(lake, live),
        "uncovered_files": visit_files(lake, uncovered),
        "rollups": [str(seed_path(lake)), *rollups.files],
        "closed_months": [{"month": month, "days": closed_bits[month]} for month in sorted(closed_bits)],
        "days_without_domains": sorted(rollups.days_without_domains),
        "high_cardinality_days": _high_cardinality_days(uncovered if filters <= ROLLUP_FILTERS else live),
        "days_with_rollups": sorted(rollups.days),
        "sources": {relation: source_of(relation, filters) for relation in relation_names()},
        "links": link_files(lake, scope.organization),
    }


def cluster_variables(lake: Lake, scope: Scope, live: Sequence[LandedFile]) -> Variables:
    """The variables for a cluster, which counts visits and reads no rollups.

    `cluster_files` are the files with visits, and `visits` is how many they have; `links` are paths relative to the
    lake's folder. Both are without seeds.
    """
    return {
        **_scope_and_filters(scope),
        "behaviour": lake.manifest.behaviour.is_used(scope.organization),
        CLUSTER_FILES: [*live],
        "visits": sum(file.visits for file in live),
        "links": [str(Path(path).relative_to(lake.root)) for path in link_files(lake, scope.organization)[1:]],
        "days_without_domains": [],
        "high_cardinality_days": _high_cardinality_days(live),
    }


def is_for_cluster(variables: Variables) -> bool:
    """Whether answers from this snapshot come from the cluster."""
    return CLUSTER_FILES in variables


def _scope_and_filters(scope: Scope) -> Variables:
    """The variables that say which visits are in scope. A filter that is not set has none, so that it is NULL."""
    return {"scope": {name: getattr(scope, name) for name in _SCOPE}, **scope.filters, **scope.listing}


def _high_cardinality_days(files: Sequence[LandedFile]) -> list[date]:
    """The days of which these files have more than MAX_VALUES_PER_DAY visits, so that they may have as many words."""
    visits: Counter[date] = Counter()
    for file in files:
        visits[file.day] += file.visits
    return sorted(day for day, count in visits.items() if count > MAX_VALUES_PER_DAY)


def closed_days(variables: Variables) -> list[date]:
    """The days that rollups answer for, oldest first: the bits of closed_months as days."""
    return [
        closed["month"].replace(day=day)
        for closed in variables["closed_months"]
        for day in range(1, 32)
        if closed["days"] >> day - 1 & 1
    ]


def source_of(relation: str, filters: Collection[str]) -> str:
    """The view that a relation counts visits from, when these `filters` of a Scope are set.

    It is uncovered_visits, which adds stored rows for the other days, if stored rows can be filtered by all of these
    fields. Otherwise, for example for a field added to Scope later, it is all_visits and rollups are not used.
    """
    return "uncovered_visits" if ROLLUP_FILTERS | served_filters(relation) >= set(filters) else "all_visits"


def one_source(view: str) -> dict[str, str]:
    """The variable `sources` that makes every relation count visits from one view, without rollups."""
    return dict.fromkeys(relation_names(), view)


def visit_files(lake: LakeFolders, files: Sequence[LandedFile]) -> dict[str, Any]:
    """Visit files as read_visits() expects them: the seed and their paths, whether columns differ, and their visits."""
    return {
        "paths": [lake.seed_visits, *(f"{lake.root}/{file.path}" for file in files)],
        "schemas_differ": any(file.schema_version < SCHEMA_VERSION for file in files),
        "visits": sum(file.visits for file in files),
    }


def set_variables(cursor: duckdb.DuckDBPyConnection, variables: Variables) -> None:
    """Set the variables in the session of a cursor."""
    for name, value in variables.items():
        if name == IN_MEMORY:
            for relation, rows in value.items():
                cursor.register(f"{relation}_in_memory", rows)
        cursor.execute(parsed(cursor, _SET[name]), {"value": [*value] if name == IN_MEMORY else value})


def parsed(cursor: duckdb.DuckDBPyConnection, text: str) -> duckdb.Statement:
    """The one statement of a text of this package, parsed once in a process. Every cursor may execute it."""
    if text not in _PARSED:
        (_PARSED[text],) = cursor.extract_statements(text)
    return _PARSED[text]


_PARSED: Final[dict[str, duckdb.Statement]] = {}
_SERVED_WHERE_TAKEN: Final = frozenset({"traffic_type"})
"""Filters of few answers only, which read relations that serve them."""
_SCOPE: Final = ("organization", "start_date", "end_date")
"""The fields of the SQL type scope."""
_VISIT_FILES: Final = "CAST($value AS STRUCT(paths VARCHAR[], schemas_differ BOOLEAN, visits BIGINT))"
_SET: Final = {
    **{name: f"SET VARIABLE {name} = $value" for name in (*FILTERS, *LISTING)},
    "scope": "SET VARIABLE scope = CAST($value AS scope)",
    "explain": "SET VARIABLE explain = CAST($value AS BOOLEAN)",
    "behaviour": "SET VARIABLE behaviour = CAST($value AS BOOLEAN)",
    "subjects": "SET VARIABLE subjects = CAST($value AS subjects)",
    "files": f"SET VARIABLE files = {_VISIT_FILES}",
    "uncovered_files": f"SET VARIABLE uncovered_files = {_VISIT_FILES}",
    "rollups": "SET VARIABLE rollups = CAST($value AS VARCHAR[])",
    "closed_months": "SET VARIABLE closed_months = CAST($value AS STRUCT(month DATE, days INTEGER)[])",
    "days_without_domains": "SET VARIABLE days_without_domains = CAST($value AS DATE[])",
    "high_cardinality_days": "SET VARIABLE high_cardinality_days = CAST($value AS DATE[])",
    "days_with_rollups": "SET VARIABLE days_with_rollups = CAST($value AS DATE[])",
    "sources": "SET VARIABLE sources = $value",
    "links": "SET VARIABLE links = CAST($value AS VARCHAR[])",
    IN_MEMORY: "SET VARIABLE in_memory = CAST($value AS VARCHAR[])",
    "relation": "SET VARIABLE relation = CAST($value AS VARCHAR)",
    "traffic_values": "SET VARIABLE traffic_values = "
    "CAST($value AS STRUCT(traffic_type VARCHAR, ten_thousandths BIGINT, currency VARCHAR)[])",
}
