"""Patterns whose time grows with the text only: many asked at once, and those that users give."""

from collections.abc import Iterable

import re2

from data.errors import BadInput


def check_short_code_pattern(pattern: str) -> str:
    """Return a pattern (RE2) that captures the short code of a path; raise BadInput when it cannot."""
    try:
        groups = re2.compile(pattern).groups
    except re2.error as error:
        raise BadInput(f"{pattern!r} is not a valid RE2 pattern: {error}.") from error
    if groups != 1:
        raise BadInput(f"{pattern!r} must capture the short code in exactly one (group).")
    return pattern


def pattern_set(patterns: Iterable[str]) -> "re2.Set":
    """Patterns (RE2); `Match(text)` gives the numbers of those found in a text, in any order, or None."""
    options = re2.Options()
    options.log_errors = False
    options.max_mem = 64 << 20
    found = re2.Set.SearchSet(options)
    for pattern in patterns:
        found.Add(pattern)
    found.Compile()
    return found
