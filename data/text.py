"""Formats numbers, parses amounts of memory, and caches functions of short strings."""

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Final, Generic, TypeVar

from data.errors import BadInput

CachedValue = TypeVar("CachedValue")
MAX_CACHED_LENGTH: Final = 512
"""Maximum total length of the arguments of a cached call. Clients may send 16,384 characters in each visit, which once
filled caches with a gigabyte."""
_UNITS: Final = {"MB": 10**6, "GB": 10**9, "MiB": 2**20, "GiB": 2**30}


def plural(count: int, noun: str) -> str:
    """Format a number and its noun: 1 visit, 2,000 visits."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def bytes_of_memory(text: str) -> int:
    """Parse an amount of memory in DuckDB's notation; return it in bytes: 300000000 for "300MB". Raises BadInput."""
    found = re.fullmatch(r"([1-9][0-9]{0,5}) ?([MG]i?B)", text)
    if not found:
        raise BadInput(f"{text!r} is not an amount of memory; write it like 300MB or 4GB.")
    return int(found[1]) * _UNITS[found[2]]


class ShortTextCache(Generic[CachedValue]):
    """A function of strings with an LRU cache. Calls with more than MAX_CACHED_LENGTH characters of arguments are not
    cached.
    """

    def __init__(self, size: int, function: Callable[..., CachedValue]) -> None:
        """Cache at most `size` results of the function."""
        self._function = function
        self._cached = lru_cache(size)(function)
        self.clear = self._cached.cache_clear

    def __call__(self, *texts: str) -> CachedValue:
        """Return the result for these arguments."""
        return self._cached(*texts) if sum(map(len, texts)) <= MAX_CACHED_LENGTH else self._function(*texts)


def percentage(count: int, total: int) -> str:
    """Format a share with one decimal; only zero is 0.0 %, and only the total is 100.0 %."""
    tenths = round(1_000 * count / total)
    tenths = min(max(tenths, 1), 999) if 0 < count < total else tenths
    return f"{tenths / 10:.1f} %"
