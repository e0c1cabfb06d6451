"""Regular expressions that run in linear time (RE2): sets of many patterns, and patterns from users."""

from collections.abc import Iterable

import re2

from data.errors import BadInput


def compile_pattern(pattern: str) -> "re2._Regexp":
    """Compile an RE2 pattern. Raises ValueError with the reason, such as "missing ): (a"; nothing is logged."""
    try:
        return re2.compile(pattern, _quiet())
    except re2.error as error:
        (reason,) = error.args
        raise ValueError(reason.decode("utf-8", "replace")) from error


def check_short_code_pattern(pattern: str) -> str:
    """Return `pattern`; raise BadInput unless it is a valid RE2 pattern with exactly one group, the short code."""
    try:
        groups = compile_pattern(pattern).groups
    except ValueError as error:
        raise BadInput(f"{pattern!r} is not a valid RE2 pattern: {error}.") from error
    if groups != 1:
        raise BadInput(f"{pattern!r} must capture the short code in exactly one (group).")
    return pattern


def pattern_set(patterns: Iterable[str]) -> "re2.Set":
    """Compile RE2 patterns into a set; `Match(text)` returns the indices of the matches, in any order, or None."""
    options = _quiet()
    options.max_mem = 64 << 20
    compiled = re2.Set.SearchSet(options)
    for pattern in patterns:
        compiled.Add(pattern)
    compiled.Compile()
    return compiled


def encodable(text: str) -> str:
    """Return text that RE2 can search: lone surrogates, which JSON allows, become question marks."""
    return text.encode("utf-8", "replace").decode()


def _quiet() -> "re2.Options":
    """Return options that keep RE2 from reporting invalid patterns on stderr."""
    options = re2.Options()
    options.log_errors = False
    return options
