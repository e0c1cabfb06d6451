"""The hint beside an answer that counts nothing: which days have visits."""

from typing import Final

from data import Lake
from queries.scope import Scope

_HAS_VISITS: Final = """
SELECT 1 FROM files WHERE organization = ? AND day BETWEEN ? AND ? AND deletable_at IS NULL AND visits > 0 LIMIT 1
"""
_SPAN: Final = "SELECT min(day), max(day) FROM files WHERE organization = ? AND deletable_at IS NULL AND visits > 0"


def no_visits(lake: Lake, scope: Scope, names: str = "start_date and end_date") -> str:
    """A sentence that says which days have visits, if those of a scope have none; "" if they have some.

    `names` are the caller's parameters for the days.
    """
    days = [scope.organization, scope.start_date.isoformat(), scope.end_date.isoformat()]
    if lake.manifest.rows(_HAS_VISITS, days):
        return ""
    ((first, last),) = lake.manifest.rows(_SPAN, [scope.organization])
    where = f"its visits are from {first} to {last}; use {names}" if first else "it has none at all"
    return f"{scope.organization} has no visits from {scope.start_date} to {scope.end_date}: {where}."
