"""Text for people, and from them."""

import re
from typing import Final

from data.errors import BadInput

_UNITS: Final = {"MB": 10**6, "GB": 10**9, "MiB": 2**20, "GiB": 2**30}


def plural(count: int, noun: str) -> str:
    """A number and its noun: 1 visit, 2,000 visits."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def bytes_of_memory(text: str) -> int:
    """An amount of memory as DuckDB reads it, in bytes: 300000000 for "300MB". Raises BadInput."""
    found = re.fullmatch(r"([1-9][0-9]{0,5}) ?([MG]i?B)", text)
    if not found:
        raise BadInput(f"{text!r} is not an amount of memory; write it like 300MB or 4GB.")
    return int(found[1]) * _UNITS[found[2]]
