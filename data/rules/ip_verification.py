"""What a client's address says of an agent's claim: from where its operator says it comes, or from elsewhere.

Addresses are looked at here and never kept. How lists of addresses are had is in ip_lists.py.
"""

import ipaddress
from bisect import bisect_right
from collections.abc import Iterable
from datetime import date
from functools import lru_cache
from typing import Final, NamedTuple

from data.rules.bots import bot_classification
from data.rules.ip_lists import Address, Network, Snapshot, parse_address
from data.rules.tables import Agent, Proxy, load
from data.visits import Classification

FRESH_DAYS: Final = 30
"""Operators change their addresses: further than this from the day of a visit, a list contradicts nobody."""


class IpVerdict(NamedTuple):
    """Whether a visit came from where its agent comes from; None when that cannot be told."""

    inside: bool | None
    reason: str


class Networks:
    """A set of networks that can be asked quickly for an address."""

    def __init__(self, networks: Iterable[Network]) -> None:
        spans = sorted((n.version, int(n.network_address), int(n.broadcast_address)) for n in networks)
        self._starts: list[tuple[int, int]] = []
        self._ends: list[int] = []
        for version, start, end in spans:
            if self._starts and self._starts[-1][0] == version and start <= self._ends[-1] + 1:
                self._ends[-1] = max(end, self._ends[-1])
            else:
                self._starts.append((version, start))
                self._ends.append(end)

    def __contains__(self, address: Address) -> bool:
        index = bisect_right(self._starts, (address.version, int(address))) - 1
        return index >= 0 and self._starts[index][0] == address.version and int(address) <= self._ends[index]


class Verifier:
    """The published lists, as of their snapshots, and the networks whose addresses are a proxy's, not a client's."""

    def __init__(self, snapshots: dict[str, Snapshot], proxies: Iterable[Network] = ()) -> None:
        self._lists = {name: (Networks(snapshot.networks), snapshot) for name, snapshot in snapshots.items()}
        rows = load(Agent, "agents")
        self._agents = {row.agent: row for row in rows if _lists_of(row)}
        self._methods = {row.agent: row.verify for row in rows if row.verify}
        known = (ipaddress.ip_network(row.network) for row in load(Proxy, "proxies"))
        self._proxies = Networks([*known, *proxies])
        self._client_address = lru_cache(1 << 16)(self._client_address_uncached)

    def can_verify(self, classification: Classification) -> bool:
        """Whether an address could say anything of this classification."""
        row = self._agents.get(classification.agent or "")
        return row is not None and any(name in self._lists for name in _lists_of(row))

    def verification_methods(self, agent: str | None) -> tuple[str, ...]:
        """How an agent could be verified: "ip:<list>", "dns:<suffix>" or "signature:<host>"."""
        return self._methods.get(agent or "", ())

    def verdict(self, agent: str | None, address: str, day: date) -> IpVerdict:
        """Whether a visit on `day` that claims to be `agent` came from where that agent comes from."""
        row = self._agents.get(agent or "")
        if row is None:
            return IpVerdict(None, "its operator does not publish its IP addresses")
        lists = [self._lists[name] for name in _lists_of(row) if name in self._lists]
        if not lists:
            return IpVerdict(None, "its IP lists have not been downloaded; run `traffic agents refresh`")
        client, reason = self._client_address(address)
        if client is None:
            return IpVerdict(None, reason)
        for networks, snapshot in lists:
            if client in networks:
                return IpVerdict(True, f"inside {snapshot.name} of {snapshot.fetched_at:%Y-%m-%d}")
        are_all_fresh = len(lists) == len(_lists_of(row)) and all(_is_fresh(snapshot, day) for _, snapshot in lists)
        return _outside(row, " and ".join(snapshot.name for _, snapshot in lists), are_all_fresh)

    def verify(self, classification: Classification, address: str, day: date) -> Classification:
        """A classification with what the address adds: verified, contradicted, or as it was."""
        return apply_verdict(classification, self.verdict(classification.agent, address, day).inside)

    def _client_address_uncached(self, text: str) -> tuple[Address | None, str]:
        """The client's address, or why there is none."""
        address = parse_address(text)
        if address is None:
            return None, "no IP address was given" if text in ("", "-") else f"{text!r} is not a valid IP address"
        if not address.is_global:
            return None, f"{address} is not a public IP address"
        return (None, f"{address} belongs to a proxy") if address in self._proxies else (address, "")


def apply_verdict(classification: Classification, inside: bool | None) -> Classification:
    """A classification and what the address says of it. A contradicted agent is nobody's: only its claim is kept."""
    if inside is None:
        return classification
    if inside:
        return classification._replace(confidence="verified", detection_method="ip_range")
    return bot_classification("other", classification.agent, "contradicted", method="ip_range")


def _lists_of(row: Agent) -> list[str]:
    return [method.removeprefix("ip:") for method in row.verify if method.startswith("ip:")]


def _is_fresh(snapshot: Snapshot, day: date) -> bool:
    return abs((snapshot.fetched_at.date() - day).days) <= FRESH_DAYS


def _outside(row: Agent, names: str, are_all_fresh: bool) -> IpVerdict:
    if not row.server_side:
        return IpVerdict(None, f"outside {names}, but it may also come from other addresses")
    if not are_all_fresh:
        return IpVerdict(None, f"outside {names}, but its IP lists are incomplete or too old to tell")
    return IpVerdict(False, f"outside {names}, and it comes from no other addresses")
