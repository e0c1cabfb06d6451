"""An owner's exclusion rules, which set visits aside by address, user agent or path."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, Literal, NamedTuple

ExclusionKind = Literal["address", "agent", "path"]


class Exclusion(NamedTuple):
    """An owner's rule: a network, a case-insensitive RE2 pattern for user agents, or a path and everything below it."""

    kind: ExclusionKind
    value: str


ExcludedVisits = Mapping[Exclusion, int]
"""The number of visits that each of the owner's rules sets aside."""
NONE_EXCLUDED: Final[ExcludedVisits] = MappingProxyType({})
