"""The session variables that the prelude reads: whose visits, and where they and what is counted of them lie."""

from dataclasses import asdict
from typing import Any, Final

import duckdb

from data import Lake
from data.store.rollups import cubes_of
from queries.prelude import text_of, version
from queries.scope import Scope

Variables = dict[str, Any]
"""scope, files, links, open_files, cubes, closed_days and traffic_values; for many answers on a link GATHERED too."""

GATHERED: Final = "gathered_visits"
"""The visits of a link in one table, which takes the place of its files."""


def nothing(lake: Lake) -> Variables:
    """Variables with which every relation is empty."""
    return {
        "files": [lake.seed_visits],
        "open_files": [lake.seed_visits],
        "cubes": [lake.seed_cube],
        "closed_days": [],
        "links": [lake.seed_links],
    }


def of_scope(lake: Lake, scope: Scope) -> Variables:
    """A snapshot of what a lake holds for a scope now. Raises LakeDamaged."""
    live = lake.live_files(scope.organization, scope.start_date, scope.end_date)
    cubes = cubes_of(lake, scope.organization, version(), live)
    paths = [lake.checked(file) for file in live]
    still_open = [path for path, file in zip(paths, live, strict=True) if file.day not in cubes.days]
    return {
        "scope": asdict(scope),
        "files": [lake.seed_visits, *paths],
        "open_files": [lake.seed_visits, *still_open],
        "cubes": [lake.seed_cube, *cubes.files],
        "closed_days": sorted(cubes.days),
        "links": lake.link_files(scope.organization),
    }


def set_variables(cursor: duckdb.DuckDBPyConnection, variables: Variables) -> None:
    """Set them for one cursor."""
    for name, value in variables.items():
        if name == GATHERED:
            cursor.register(GATHERED, value)
            cursor.execute(text_of("link/gathered"))
        else:
            cursor.execute(_SET[name], {"value": value})


_SET: Final = {
    "scope": "SET VARIABLE scope = CAST($value AS scope)",
    "files": "SET VARIABLE files = CAST($value AS VARCHAR[])",
    "open_files": "SET VARIABLE open_files = CAST($value AS VARCHAR[])",
    "cubes": "SET VARIABLE cubes = CAST($value AS VARCHAR[])",
    "closed_days": "SET VARIABLE closed_days = CAST($value AS DATE[])",
    "links": "SET VARIABLE links = CAST($value AS VARCHAR[])",
    "relation": "SET VARIABLE relation = CAST($value AS VARCHAR)",
    "traffic_values": "SET VARIABLE traffic_values = "
    "CAST($value AS STRUCT(traffic_type VARCHAR, ten_thousandths BIGINT, currency VARCHAR)[])",
}
