"""Exclusion rules of an owner: for visits by address, user agent or path."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, Literal, NamedTuple

ExclusionKind = Literal["address", "agent", "path"]


class Exclusion(NamedTuple):
    """An owner's rule: a network, a case-insensitive RE2 pattern of user agents, or a path with everything below it."""

    kind: ExclusionKind
    value: str


ExcludedVisits = Mapping[Exclusion, int]
"""Number of visits that each rule of their owner sets aside."""
NONE_EXCLUDED: Final[ExcludedVisits] = MappingProxyType({})
