"""What an owner may exclude: visits from own addresses, by user agents and on paths."""

from typing import Literal, NamedTuple

ExclusionKind = Literal["address", "agent", "path"]


class Exclusion(NamedTuple):
    """One rule of an owner: a network, a pattern (RE2) of user agents in any case, or a path with all below it."""

    kind: ExclusionKind
    value: str
