"""What an owner may exclude: visits from own addresses, by user agents and on paths."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, Literal, NamedTuple

ExclusionKind = Literal["address", "agent", "path"]


class Exclusion(NamedTuple):
    """One rule of an owner: a network, a pattern (RE2) of user agents in any case, or a path with all below it."""

    kind: ExclusionKind
    value: str


ExcludedVisits = Mapping[Exclusion, int]
"""How many visits each rule of their owner sets aside."""
NONE_EXCLUDED: Final[ExcludedVisits] = MappingProxyType({})
