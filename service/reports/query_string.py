"""Query strings of requests: parsed into the parameters of an entry of the catalog, and into a scope."""

from collections.abc import Collection, Mapping
from datetime import date
from functools import lru_cache
from typing import Final
from urllib.parse import parse_qsl

from data.links.index import LinkIndex
from queries import RESOLVED, Entry, Scope, parameters_of, scope_from, select_parameters

MAX_CACHED_QUERY_BYTES: Final = 512
"""Maximum length of query strings with cached scopes, so that the cache stays small."""


def parse_parameters(query_string: bytes, known: Collection[str]) -> Mapping[str, str]:
    """Parse the `known` parameters in a query string. Raises InvalidParameter if one is given twice or is too long."""
    pairs = parse_qsl(query_string.decode("latin-1"), keep_blank_values=True, errors="replace")
    return select_parameters(pairs, known)


def parse_scope(query_string: bytes, entry: Entry, organization: str, today: date, targets: LinkIndex) -> Scope | None:
    """Return the scope of a query string for `entry`, or None if the scope depends on links. Raises InvalidParameter.

    Scopes that depend on links are not cached, since links change: use parse_parameters and scope_from for them, in a
    thread.
    """
    parse = _parse_scope if len(query_string) <= MAX_CACHED_QUERY_BYTES else _parse_scope.__wrapped__
    return parse(query_string, parameters_of(entry), organization, today, targets)


@lru_cache(1_024)
def _parse_scope(
    query_string: bytes, known: tuple[str, ...], organization: str, today: date, targets: LinkIndex
) -> Scope | None:
    query = parse_parameters(query_string, known)
    return None if query.keys() & RESOLVED else scope_from(query, organization, today, targets)
