"""The session variables that the prelude reads: whose visits, and where they and what is counted of them lie."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, Final

import duckdb

from data import Lake
from data.store.manifest import LandedFile
from data.store.rollups import cubes_of
from data.visits import SCHEMA_VERSION
from queries.prelude import text_of, version
from queries.scope import Scope

Variables = dict[str, Any]
"""scope, files, links, open_files, cubes, closed_days and traffic_values; for many answers on a link GATHERED too."""

GATHERED: Final = "gathered_visits"
"""The visits of a link in one table, which takes the place of its files."""


def nothing(lake: Lake) -> Variables:
    """Variables with which every relation is empty."""
    return {
        "files": file_lists(lake, []),
        "open_files": file_lists(lake, []),
        "cubes": [lake.seed_cube],
        "closed_days": [],
        "links": [lake.seed_links],
    }


def of_scope(lake: Lake, scope: Scope) -> Variables:
    """A snapshot of what a lake holds for a scope now. Raises LakeDamaged."""
    live = lake.live_files(scope.organization, scope.start_date, scope.end_date)
    cubes = cubes_of(lake, scope.organization, version(), live)
    for file in live:
        lake.checked(file)
    return {
        "scope": asdict(scope),
        "files": file_lists(lake, live),
        "open_files": file_lists(lake, [file for file in live if file.day not in cubes.days]),
        "cubes": [lake.seed_cube, *cubes.files],
        "closed_days": sorted(cubes.days),
        "links": lake.link_files(scope.organization),
    }


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
        if name == GATHERED:
            cursor.register(GATHERED, value)
            cursor.execute(text_of("link/gathered"))
        else:
            cursor.execute(_SET[name], {"value": value})


_FILE_LISTS: Final = "CAST($value AS STRUCT(current VARCHAR[], older VARCHAR[], older_differ BOOLEAN))"
_SET: Final = {
    "scope": "SET VARIABLE scope = CAST($value AS scope)",
    "files": "SET VARIABLE files = " + _FILE_LISTS,
    "open_files": "SET VARIABLE open_files = " + _FILE_LISTS,
    "cubes": "SET VARIABLE cubes = CAST($value AS VARCHAR[])",
    "closed_days": "SET VARIABLE closed_days = CAST($value AS DATE[])",
    "links": "SET VARIABLE links = CAST($value AS VARCHAR[])",
    "relation": "SET VARIABLE relation = CAST($value AS VARCHAR)",
    "traffic_values": "SET VARIABLE traffic_values = "
    "CAST($value AS STRUCT(traffic_type VARCHAR, ten_thousandths BIGINT, currency VARCHAR)[])",
}
