"""The hint for an empty answer: which days have visits, or that files are set aside."""

import re
from typing import Final

from data import Lake
from data.rules.files import FILE_PATTERN
from queries.scope import Scope

_FILE: Final = re.compile(FILE_PATTERN)


def empty_scope_hint(lake: Lake, scope: Scope, names: str = "start_date and end_date") -> str:
    """Return the result of file_hint if the scope's days have visits; otherwise a sentence that says which days have
    visits, if any.

    `names` are the caller's parameters for the days.
    """
    if lake.manifest.files.has_visits(scope.organization, scope.start_date, scope.end_date):
        return file_hint(lake, scope)
    span = lake.manifest.files.span(scope.organization)
    where = f"its visits are from {span[0]} to {span[1]}; use {names}" if span else "it has no visits at all"
    return f"{scope.organization} has no visits from {scope.start_date} to {scope.end_date}: {where}."


def file_hint(lake: Lake, scope: Scope) -> str:
    """Return a hint if the scope's path is the path of a file and the organization sets files aside; otherwise ""."""
    is_file = scope.path is not None and _FILE.search(scope.path)
    if not is_file or not lake.manifest.exclusions.are_files_aside(scope.organization):
        return ""
    remedy = f"`traffic files counted --org {scope.organization}` counts them"
    return f"{scope.path} is the path of a file, and {scope.organization} sets files aside: {remedy}."
