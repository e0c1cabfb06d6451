"""The session variables that the prelude reads: whose visits, where they lie, and what of them is counted already.

Whether rollups may serve a scope is decided here and nowhere else.
"""

from collections.abc import Collection, Sequence
from dataclasses import asdict
from typing import Any, Final

import duckdb

from data import Lake
from data.store.manifest import LandedFile
from data.store.rollups import Schema, live_rollups, seed_path, write_seed
from data.visits import SCHEMA_VERSION
from queries.prelude import prelude, relation_names, rollup_version, served_filters, sql_text
from queries.scope import Scope

Variables = dict[str, Any]
"""By name: scope, files, links, uncovered_files, rollups, closed_days, sources and traffic_values; for several answers
on one link LINK_VISITS too."""

ROLLUP_FILTERS: Final = frozenset({"organization", "start_date", "end_date", "domain"})
"""The fields of Scope by which the stored rows of every relation can be filtered; more are declared by a relation."""

LINK_VISITS: Final = "link_visits_in_memory"
"""The visits of a link in one table, which relations count instead of its files."""


def empty_variables(lake: Lake) -> Variables:
    """Variables with which every relation is empty."""
    return {
        "files": file_lists(lake, []),
        "uncovered_files": file_lists(lake, []),
        "rollups": [str(seed_path(lake))],
        "closed_days": [],
        "sources": one_source("all_visits"),
        "links": [lake.seed_links],
    }


def scope_variables(lake: Lake, scope: Scope) -> Variables:
    """A snapshot of what a lake holds for a scope now. Raises LakeDamaged."""
    live = lake.live_files(scope.organization, scope.start_date, scope.end_date)
    rollups = live_rollups(lake, scope.organization, rollup_version(), live)
    for file in live:
        lake.verified_path(file)
    filters = {field for field, value in asdict(scope).items() if value is not None}
    return {
        "scope": asdict(scope),
        "files": file_lists(lake, live),
        "uncovered_files": file_lists(lake, [file for file in live if file.day not in rollups.days]),
        "rollups": [str(seed_path(lake)), *rollups.files],
        "closed_days": sorted(rollups.days),
        "sources": {relation: source_of(relation, filters) for relation in relation_names()},
        "links": lake.link_files(scope.organization),
    }


def source_of(relation: str, filters: Collection[str]) -> str:
    """The view from which a relation counts visits, where these fields of Scope are set.

    Rollups serve a relation, so that only the days that they do not cover are read, when its stored rows can be
    filtered by every one of these fields. Any other field, such as one that is added to Scope, makes it read all.
    """
    return "uncovered_visits" if ROLLUP_FILTERS | served_filters(relation) >= set(filters) else "all_visits"


def one_source(view: str) -> dict[str, str]:
    """Let every relation count visits from one view, and take nothing from rollups."""
    return dict.fromkeys(relation_names(), view)


def file_lists(lake: Lake, files: Sequence[LandedFile]) -> dict[str, Any]:
    """How the prelude is given visit files: those of today's schema, and those of earlier ones."""
    older = [file for file in files if file.schema_version < SCHEMA_VERSION]
    current = [file for file in files if file.schema_version >= SCHEMA_VERSION]
    return {
        "current": [lake.seed_visits, *_paths(lake, current)],
        "older": _paths(lake, older) or [lake.seed_visits],
        "older_differ": len({file.schema_version for file in older}) > 1,
    }


def _paths(lake: Lake, files: Sequence[LandedFile]) -> list[str]:
    return [f"{lake.root}/{file.path}" for file in files]


def set_variables(cursor: duckdb.DuckDBPyConnection, variables: Variables) -> None:
    """Set them for one cursor."""
    for name, value in variables.items():
        if name == LINK_VISITS:
            cursor.register(LINK_VISITS, value)
        else:
            cursor.execute(_SET[name], {"value": value})


def define_relations(engine: duckdb.DuckDBPyConnection, lake: Lake) -> None:
    """Define everything that templates read, with no scope set; the lake gets its empty rollup where it has none."""
    write_seed(lake, rollup_schema(engine))
    set_variables(engine, empty_variables(lake))
    for text in prelude():
        engine.execute(text)


def rollup_schema(engine: duckdb.DuckDBPyConnection) -> Schema:
    """The columns of a rollup."""
    return engine.sql(sql_text("rollups")).to_arrow_table().schema


_FILE_LISTS: Final = "CAST($value AS STRUCT(current VARCHAR[], older VARCHAR[], older_differ BOOLEAN))"
_SET: Final = {
    "scope": "SET VARIABLE scope = CAST($value AS scope)",
    "files": f"SET VARIABLE files = {_FILE_LISTS}",
    "uncovered_files": f"SET VARIABLE uncovered_files = {_FILE_LISTS}",
    "rollups": "SET VARIABLE rollups = CAST($value AS VARCHAR[])",
    "closed_days": "SET VARIABLE closed_days = CAST($value AS DATE[])",
    "sources": "SET VARIABLE sources = $value",
    "links": "SET VARIABLE links = CAST($value AS VARCHAR[])",
    "relation": "SET VARIABLE relation = CAST($value AS VARCHAR)",
    "traffic_values": "SET VARIABLE traffic_values = "
    "CAST($value AS STRUCT(traffic_type VARCHAR, ten_thousandths BIGINT, currency VARCHAR)[])",
}
