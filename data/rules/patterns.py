"""Regular expressions that run in linear time (RE2): sets of many patterns, and patterns from users."""

from collections.abc import Iterable

import re2

from data.errors import BadInput


def check_short_code_pattern(pattern: str) -> str:
    """Return `pattern`; raise BadInput unless it is a valid RE2 pattern with exactly one group, the short code."""
    try:
        groups = re2.compile(pattern).groups
    except re2.error as error:
        raise BadInput(f"{pattern!r} is not a valid RE2 pattern: {error}.") from error
    if groups != 1:
        raise BadInput(f"{pattern!r} must capture the short code in exactly one (group).")
    return pattern


def pattern_set(patterns: Iterable[str]) -> "re2.Set":
    """Compile RE2 patterns into a set; `Match(text)` returns the indices of those found, in any order, or None."""
    options = re2.Options()
    options.log_errors = False
    options.max_mem = 64 << 20
    compiled = re2.Set.SearchSet(options)
    for pattern in patterns:
        compiled.Add(pattern)
    compiled.Compile()
    return compiled
