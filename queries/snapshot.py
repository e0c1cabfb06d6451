"""Snapshots: the files and rollups that the answers for a scope read, passed to SQL as session variables.

This is the only place that decides whether rollups may be used for a scope.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import duckdb

from data import Lake, LakeDamaged
from data.errors import Conflict
from data.manifest.behaviour import unjudged_days
from data.manifest.files import LandedFile
from data.store.layout import LakeFolders
from data.store.link_files import link_files
from data.store.rollups import live_rollups, month_of, seed_path
from data.visits import SCHEMA_VERSION
from queries.prelude import relation_names, rollup_version, served_filters
from queries.scope import FILTERS, LISTING, Scope
from queries.traffic_values import TrafficValue

if TYPE_CHECKING:
    import pyarrow as pa

ROLLUP_FILTERS: Final = frozenset({"domain", "traffic_group"})
"""The filters that all stored rows can serve, in addition to days. A relation may declare more (served_filters)."""

MAX_VALUES_PER_DAY: Final = 10_000
"""Maximum number of referrers, campaigns, agents or domains that a relation keeps for a day; also in prelude/6_cut.sql.
"""

CUT_WORDS: Final = frozenset({"agent", "referrer", "utm_source", "utm_campaign"})
"""Filters by words of which relations keep only the most frequent, except domain. If the words of a day may be cut,
the day's stored rows do not serve these filters."""


class VisitFiles(NamedTuple):
    """Visit files that SQL reads."""

    paths: tuple[str, ...]  # the empty seed's path first
    schemas_differ: bool  # whether a file lacks columns
    visits: int


@dataclass(frozen=True, kw_only=True)
class Snapshot:
    """The files and rollups that the answers for one scope read, as they were at one moment.

    An idle cursor keeps the variables of its snapshot, and is reused only for the same snapshot object.
    """

    scope: Scope
    behaviour: bool  # whether visits are reclassified by their signals
    aside: int  # the bits of the signals that keep a visit from being counted
    files: VisitFiles
    uncovered_files: VisitFiles  # files of days that no rollup covers for this scope
    rollups: tuple[str, ...]  # the empty seed first
    closed_days: tuple[date, ...]  # days that rollups cover for this scope
    days_with_rollups: tuple[date, ...]  # including days with rollups that this scope's filters cannot use
    days_without_domains: tuple[date, ...]  # days without rollup rows for single domains
    high_cardinality_days: tuple[date, ...]  # days with words that may be cut
    sources: Mapping[str, str]  # for each relation, the view that it counts visits from
    links: tuple[str, ...]  # the empty seed, then the complete file
    link_changes: tuple[str, ...]  # the empty seed, then the file of changes to the complete file
    traffic_values: tuple[TrafficValue, ...] = ()
    subjects: Sequence[Mapping[str, Any]] = ()  # subjects of jobs, for measures
    explain: Sequence[str] = ()  # the reasons of a detector's conditions that must be met; (): all conditions
    in_memory: Mapping[str, "pa.Table"] = field(default_factory=dict)
    """The rows of relations and views that several answers share, by name."""

    @property
    def visits_to_read(self) -> int:
        """The maximum number of visits to read on this machine for an answer that uses rollups where possible."""
        is_served = self.scope.filters.keys() <= ROLLUP_FILTERS | _SERVED_WHERE_TAKEN
        return (self.uncovered_files if is_served else self.files).visits

    @cached_property
    def variables(self) -> Mapping[str, Any]:
        """The session variables that SQL reads, by name. A filter that is not set has no variable: SQL reads NULL."""
        closed_bits: Counter[date] = Counter()  # by month; a bit for each day, as in day_bit()
        for day in self.closed_days:
            closed_bits[month_of(day)] += 1 << day.day - 1
        always = {
            "scope": {name: getattr(self.scope, name) for name in ("organization", "start_date", "end_date")},
            "behaviour": self.behaviour,
            "aside": self.aside,
            "files": _as_variable(self.files),
            "uncovered_files": _as_variable(self.uncovered_files),
            "rollups": [*self.rollups],
            "closed_months": [{"month": month, "days": closed_bits[month]} for month in sorted(closed_bits)],
            "days_without_domains": [*self.days_without_domains],
            "high_cardinality_days": [*self.high_cardinality_days],
            "sources": {**self.sources},
            "links": [*self.links],
            "link_changes": [*self.link_changes],
            "traffic_values": [value._asdict() for value in self.traffic_values],
        }
        some = {"subjects": [*self.subjects], "explain": [*self.explain], "in_memory": [*self.in_memory]}
        return {
            **always,
            **self.scope.filters,
            **self.scope.listing,
            **{name: value for name, value in some.items() if value},
        }


@dataclass(frozen=True, kw_only=True)
class ClusterSnapshot(Snapshot):
    """A snapshot for a cluster, which counts visits and reads no rollups."""

    landed: tuple[LandedFile, ...]  # the files with visits
    landed_links: tuple[str, ...]  # the complete file of links, relative to the lake folder

    @property
    def visits(self) -> int:
        """The number of visits in the files."""
        return sum(file.visits for file in self.landed)


def empty_snapshot(lake: LakeFolders) -> Snapshot:
    """Return a snapshot in which every relation is empty."""
    return Snapshot(
        scope=Scope("", date.max, date.max),
        behaviour=False,
        aside=0,
        files=visit_files(lake, []),
        uncovered_files=visit_files(lake, []),
        rollups=(str(seed_path(lake)),),
        closed_days=(),
        days_with_rollups=(),
        days_without_domains=(),
        high_cardinality_days=(),
        sources=one_source("all_visits"),
        links=(lake.seed_links,),
        link_changes=(lake.seed_link_changes,),
    )


def take_snapshot(lake: Lake, scope: Scope) -> Snapshot:
    """Take a snapshot of a lake for a scope. Raises the exceptions of `live_files`."""
    return snapshot_of(lake, scope, live_files(lake, scope))


def live_files(lake: Lake, scope: Scope) -> list[LandedFile]:
    """Return the live visit files for the days of a scope. If the scope is `only_judged`, files of unjudged days are
    left out, unless behaviour is switched off.

    Raises LakeDamaged for a damaged file, and Conflict if a file was replaced and deleted in the meantime.
    """
    live = lake.live_files(scope.organization, scope.start_date, scope.end_date)
    if scope.only_judged and lake.manifest.behaviour.is_used(scope.organization):
        unjudged = unjudged_days(live)
        live = [file for file in live if file.day not in unjudged]
    try:
        for file in live:
            lake.verified_path(file)
    except LakeDamaged:
        now = lake.manifest.files.live(scope.organization, scope.start_date, scope.end_date)
        if {file.path for file in live} <= {file.path for file in now}:
            raise
        raise Conflict("visits have since been replaced by another process; try again.") from None
    return live


def snapshot_of(lake: Lake, scope: Scope, live: Sequence[LandedFile]) -> Snapshot:
    """Return the snapshot for a scope; `live` are the visit files that `live_files` returned for it."""
    behaviour, aside = (
        lake.manifest.behaviour.is_used(scope.organization),
        lake.manifest.exclusions.bits_aside(scope.organization),
    )
    rollups = live_rollups(lake, scope.organization, rollup_version(behaviour, aside), live)
    filters = scope.filters.keys()
    closed = rollups.days
    if scope.domain is not None:
        closed -= rollups.days_without_domains
    if filters & CUT_WORDS:
        closed -= {*_high_cardinality_days(live)}
    uncovered = [file for file in live if file.day not in closed]
    links, link_changes = link_files(lake, scope.organization)
    return Snapshot(
        scope=scope,
        behaviour=behaviour,
        aside=aside,
        files=visit_files(lake, live),
        uncovered_files=visit_files(lake, uncovered),
        rollups=(str(seed_path(lake)), *rollups.files),
        closed_days=tuple(sorted(closed)),
        days_with_rollups=tuple(sorted(rollups.days)),
        days_without_domains=tuple(sorted(rollups.days_without_domains)),
        high_cardinality_days=_high_cardinality_days(uncovered if filters <= ROLLUP_FILTERS else live),
        sources={relation: source_of(relation, filters) for relation in relation_names()},
        links=links,
        link_changes=link_changes,
    )


def counted_version(lake: Lake, organization: str) -> str:
    """Return the rollup version for an organization's settings: whether behaviour is used, and what is set aside."""
    return rollup_version(
        lake.manifest.behaviour.is_used(organization), lake.manifest.exclusions.bits_aside(organization)
    )


def for_cluster(lake: Lake, snapshot: Snapshot, files: Sequence[LandedFile]) -> ClusterSnapshot:
    """Return a ClusterSnapshot, from which a cluster counts the visits in these files."""
    changed = {
        "high_cardinality_days": _high_cardinality_days(files),
        "landed": tuple(files),
        "landed_links": tuple(str(Path(path).relative_to(lake.root)) for path in snapshot.links[1:]),
    }
    same = {name: getattr(snapshot, name) for name in Snapshot.__dataclass_fields__}
    return ClusterSnapshot(**{**same, **changed})


def _high_cardinality_days(files: Iterable[LandedFile]) -> tuple[date, ...]:
    """Return the days with more than MAX_VALUES_PER_DAY visits in these files. Only these days can have more than that
    many distinct words.
    """
    visits: Counter[date] = Counter()
    for file in files:
        visits[file.day] += file.visits
    return tuple(sorted(day for day, count in visits.items() if count > MAX_VALUES_PER_DAY))


def source_of(relation: str, filters: Collection[str]) -> str:
    """Return the view that a relation counts visits from when these `filters` of a Scope are set.

    The view is uncovered_visits if stored rows can be filtered by all of these fields; the relation then adds the
    stored rows of the other days. Otherwise, for example for a field added to Scope later, the view is all_visits, and
    rollups are not used.
    """
    return "uncovered_visits" if ROLLUP_FILTERS | served_filters(relation) >= set(filters) else "all_visits"


def one_source(view: str) -> dict[str, str]:
    """Return the `sources` that make every relation count visits from the same view, without rollups."""
    return dict.fromkeys(relation_names(), view)


def visit_files(lake: LakeFolders, files: Sequence[LandedFile]) -> VisitFiles:
    """Return visit files as SQL reads them, beginning with the empty seed."""
    return VisitFiles(
        (lake.seed_visits, *(f"{lake.root}/{file.path}" for file in files)),
        any(file.schema_version < SCHEMA_VERSION for file in files),
        sum(file.visits for file in files),
    )


def set_variables(cursor: duckdb.DuckDBPyConnection, snapshot: Snapshot) -> None:
    """Set a snapshot's variables in a cursor's session, and register the rows that the snapshot keeps in memory."""
    for relation, rows in snapshot.in_memory.items():
        cursor.register(f"{relation}_in_memory", rows)
    for name, value in snapshot.variables.items():
        _set(cursor, name, value)


def set_uncovered_files(cursor: duckdb.DuckDBPyConnection, files: VisitFiles) -> None:
    """Set only the variable uncovered_files in a cursor's session; the other variables of its snapshot stay set."""
    _set(cursor, "uncovered_files", _as_variable(files))


def _set(cursor: duckdb.DuckDBPyConnection, name: str, value: object) -> None:
    cursor.execute(parsed(cursor, _SET[name]), {"value": value})


def _as_variable(files: VisitFiles) -> dict[str, Any]:
    """Return the files in the form that read_visits() expects."""
    return {"paths": [*files.paths], "schemas_differ": files.schemas_differ}


def parsed(cursor: duckdb.DuckDBPyConnection, text: str) -> duckdb.Statement:
    """Return the only statement in one of this package's SQL texts, parsed once. Any cursor may execute it."""
    if text not in _PARSED:
        (_PARSED[text],) = cursor.extract_statements(text)
    return _PARSED[text]


_PARSED: Final[dict[str, duckdb.Statement]] = {}
_SERVED_WHERE_TAKEN: Final = frozenset({"traffic_type"})
"""Filters that only a few answers accept; the stored rows of all relations in those answers can serve them."""
_TYPES: Final = {
    "subjects": "subjects",
    "traffic_values": "STRUCT(traffic_type VARCHAR, ten_thousandths BIGINT, currency VARCHAR)[]",
}
"""The types of variables that are cast, since their values alone do not determine a type. Other variables are not cast,
since a cast takes as long as setting the variable."""
_NAMES: Final = (
    "scope", "behaviour", "aside", "files", "uncovered_files", "rollups", "closed_months", "days_without_domains",
    "high_cardinality_days", "sources", "links", "link_changes", "explain", "in_memory", *FILTERS, *LISTING,
)  # fmt: skip
_SET: Final = {
    **{name: f"SET VARIABLE {name} = $value" for name in _NAMES},
    **{name: f"SET VARIABLE {name} = CAST($value AS {kind})" for name, kind in _TYPES.items()},
}
