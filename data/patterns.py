"""Many patterns asked at once, in time that grows with the text only."""

from collections.abc import Iterable

import re2


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
