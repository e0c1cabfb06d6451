"""Queries that tests send to a warehouse: reports, and any SQL over the relations of a snapshot."""

from collections.abc import Iterable
from contextlib import closing
from typing import Any, Final

import orjson

from data import Lake
from queries import DETECTORS, ENTRIES, JOB_KINDS, Scope, Warehouse, template_entries
from queries.snapshot import Snapshot
from service.core.encoding import encode

LEAVES: Final = {leaf.name: leaf for entry in ENTRIES.values() for leaf in template_entries(entry)}
"""The reports that have their own template."""
TEXTS: Final = LEAVES | {
    entry.name: entry
    for entry in (*(one.entry for one in DETECTORS.values()), *(one.measure for one in JOB_KINDS.values()))
}
"""LEAVES, and the entries of all detectors and measures of jobs."""


def rows(warehouse: Warehouse, sql: str, snapshot: Snapshot | None = None) -> list[tuple]:
    """Return the rows of `sql` on a warehouse's engine."""
    with warehouse._engine.cursor(snapshot or warehouse._no_visits) as cursor:
        return cursor.execute(sql).fetchall()


def answer(warehouse: Warehouse, name: str, scope: Scope) -> Any:
    """Return the answer to one report for the current lake."""
    return warehouse.answer(ENTRIES[name], warehouse.snapshot(scope))


def answers(lake: Lake, scope: Scope, names: Iterable[str]) -> dict[str, Any]:
    """Return the answers to some reports as JSON values."""
    with closing(Warehouse(lake)) as warehouse:
        snapshot = warehouse.snapshot(scope)
        return {name: orjson.loads(encode(warehouse.answer(ENTRIES[name], snapshot))) for name in names}
