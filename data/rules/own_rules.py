"""Applies an owner's exclusions: visits with excluded addresses, user agents and paths are set aside, not counted.

User agents and paths are stored, so reclassification also applies the rules about them to earlier visits. Addresses are
not stored, so the rules about them apply only to visits that land later.
"""

import hashlib
import ipaddress
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property, lru_cache
from typing import Final, get_args

import re2

from data.errors import BadInput
from data.rules.exclusions import Exclusion, ExclusionKind
from data.rules.ip_lists import Networks, parse_address
from data.rules.patterns import compile_pattern, encodable
from data.signals import BITS


def checked_exclusion(kind: ExclusionKind, value: str) -> Exclusion:
    """Return the normalized rule. Raises BadInput for a value that is invalid for its kind."""
    if kind == "address":
        try:
            return Exclusion(kind, str(ipaddress.ip_network(value, strict=False)))
        except ValueError as error:
            raise BadInput(f"{value!r} is not an address or network, such as 203.0.113.7 or 203.0.113.0/24.") from error
    if kind == "path":
        if not value.startswith("/") or any(sign in value for sign in "?#"):
            raise BadInput(f"{value!r} is not a path; write it like /admin, with / at the start and without ? or #.")
        return Exclusion(kind, value.rstrip("/") or "/")
    try:
        pattern = compile_pattern(value)
    except ValueError as error:
        raise BadInput(f"{value!r} is not a valid RE2 pattern for user agents: {error}.") from error
    if pattern.search(""):
        raise BadInput(f"{value!r} matches every user agent; make it match only yours, such as UptimeKuma.")
    return Exclusion(kind, value)


class OwnRules:
    """An organization's exclusion rules, compiled."""

    def __init__(self, exclusions: Sequence[Exclusion] = ()) -> None:
        values = {kind: sorted(one.value for one in exclusions if one.kind == kind) for kind in get_args(ExclusionKind)}
        self.agent_pattern = "(?i)" + "|".join(f"(?:{value})" for value in values["agent"]) if values["agent"] else None
        """RE2 pattern of all excluded user agents; None if none is excluded."""
        self.path_pattern = f"^(?:{'|'.join(map(_path_pattern, values['path']))})" if values["path"] else None
        """RE2 pattern of all excluded paths; None if none is excluded."""
        by_rule = [*values["agent"], "", *values["path"]]
        self.digest = hashlib.sha256("\n".join(by_rule).encode()).hexdigest()[:12] if len(by_rule) > 1 else ""
        """A digest (twelve hexadecimal digits) of the rules that apply to history; '' if there are none."""
        self._matchers = {rule: _matcher(rule) for rule in exclusions}
        self._networks = Networks(map(ipaddress.ip_network, values["address"])) if values["address"] else None

    @cached_property
    def _agents(self) -> "re2._Regexp | None":
        return re2.compile(self.agent_pattern) if self.agent_pattern else None

    @cached_property
    def _paths(self) -> "re2._Regexp | None":
        return re2.compile(self.path_pattern) if self.path_pattern else None

    def version(self, rules_version: str) -> str:
        """Return the version of all rules for the organization, given the version of the lake's rules."""
        return f"{rules_version}+{self.digest}" if self.digest else rules_version

    def of_address(self, address: str) -> int:
        """Return the bit `own_address` for one of the owner's addresses; otherwise 0."""
        if self._networks is None:
            return 0
        parsed = parse_address(address)
        return BITS["own_address"] if parsed is not None and parsed in self._networks else 0

    def of_agent(self, user_agent: str) -> int:
        """Return the bit `own_rule` for an excluded (readable) user agent; otherwise 0."""
        return BITS["own_rule"] if self._agents and self._agents.search(encodable(user_agent)) else 0

    def of_path(self, path: str) -> int:
        """Return the bit `own_rule` for an excluded path; otherwise 0."""
        return BITS["own_rule"] if self._paths and self._paths.search(encodable(path)) else 0

    def matching(self, kind: ExclusionKind, value: str) -> list[Exclusion]:
        """Return the rules of a kind that set aside a visit with this address, (readable) user agent or path."""
        return [rule for rule, matches in self._matchers.items() if rule.kind == kind and matches(value)]

    def count(self, kind: ExclusionKind, visits: Iterable[tuple[str, int]]) -> Counter[Exclusion]:
        """Count the visits that each rule of a kind sets aside, given pairs of a value and its number of visits."""
        excluded = Counter[Exclusion]()
        for value, count in visits:
            excluded.update(dict.fromkeys(self.matching(kind, value), count))
        return excluded


def _path_pattern(value: str) -> str:
    return rf"{re2.escape(value.rstrip('/'))}(?:/|$)"


def _matcher(rule: Exclusion) -> Callable[[str], bool]:
    """Return a function that returns whether the rule sets aside a visit with a given value."""
    if rule.kind == "address":
        network = ipaddress.ip_network(rule.value)
        return lambda address: (parsed := parse_address(address)) is not None and parsed in network
    pattern = re2.compile(f"(?i){rule.value}" if rule.kind == "agent" else f"^{_path_pattern(rule.value)}")
    return lambda text: pattern.search(encodable(text)) is not None


NO_RULES: Final = OwnRules()


@lru_cache(256)
def own_rules(exclusions: tuple[Exclusion, ...]) -> OwnRules:
    """Return an organization's rules, compiled once."""
    return OwnRules(exclusions) if exclusions else NO_RULES
