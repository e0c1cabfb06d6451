"""The hint beside an answer that counts nothing: which days have visits."""

from data import Lake
from queries.scope import Scope


def empty_scope_hint(lake: Lake, scope: Scope, names: str = "start_date and end_date") -> str:
    """A sentence that says which days have visits, if those of a scope have none; "" if they have some.

    `names` are the caller's parameters for the days.
    """
    if lake.manifest.files.has_visits(scope.organization, scope.start_date, scope.end_date):
        return ""
    span = lake.manifest.files.span(scope.organization)
    where = f"its visits are from {span[0]} to {span[1]}; use {names}" if span else "it has none at all"
    return f"{scope.organization} has no visits from {scope.start_date} to {scope.end_date}: {where}."
