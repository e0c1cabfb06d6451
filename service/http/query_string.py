"""Query strings of requests: parsed into the parameters of an entry of the catalog."""

from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Final
from urllib.parse import parse_qsl

from queries import Entry, parameters_of, select_parameters

MAX_CACHED_QUERY_BYTES: Final = 512
"""Longer query strings are parsed every time, so that the cache stays small."""


def parse_query(query_string: bytes, entry: Entry) -> Mapping[str, str]:
    """The parameters of `entry` in a query string. Raises InvalidParameter if one is given twice or is too long."""
    known = parameters_of(entry)
    parse = _parse if len(query_string) <= MAX_CACHED_QUERY_BYTES else _parse.__wrapped__
    return parse(query_string, known)


@lru_cache(1_024)
def _parse(query_string: bytes, known: tuple[str, ...]) -> Mapping[str, str]:
    """Parse a query string. Cached: the result depends on nothing else, such as the day or the caller."""
    pairs = parse_qsl(query_string.decode("latin-1"), keep_blank_values=True, errors="replace")
    return MappingProxyType(select_parameters(pairs, known))
