"""Checks by the client's address whether a request is from the agent in its user agent, or from an agent in disguise.

Addresses are never stored. The lists of addresses come from ip_lists.py.
"""

import ipaddress
from collections.abc import Iterable
from datetime import date
from functools import cache, lru_cache
from typing import Final, NamedTuple

from data.rules.bots import agent_classification, bot_classification
from data.rules.ip_lists import Address, FetchedList, Network, Networks, parse_address
from data.rules.lake_tables import SHIPPED, LakeTables
from data.rules.tables import Agent, IpList, Proxy, load
from data.visits import Classification

FRESH_DAYS: Final = 30
"""Maximum number of days between a visit and the download of a list that may contradict or identify the visit's agent,
since operators change addresses."""


class IpVerdict(NamedTuple):
    """Whether a client's address is inside the networks of the claimed agent (None: undecided), and the reason."""

    inside: bool | None
    reason: str


class Verifier:
    """Verifies agents by snapshots of the published lists. Addresses of proxies neither verify nor contradict them."""

    def __init__(
        self, snapshots: dict[str, FetchedList], proxies: Iterable[Network] = (), tables: LakeTables = SHIPPED
    ) -> None:
        hosting = {row.name for row in load(IpList, "ip_lists") if row.hosting}
        of_agents = {name: snapshot for name, snapshot in snapshots.items() if name not in hosting}
        self._lists = {name: (Networks(snapshot.networks), snapshot) for name, snapshot in of_agents.items()}
        rows = [*tables.agents()[len(tables.own) :], *tables.own]  # if rows have the same name, the last row wins
        self._agents = {row.agent: row for row in rows if _lists_of(row)}
        self._methods = {row.agent: row.verify for row in rows if row.verify}
        identifying = [row.name for row in load(IpList, "ip_lists") if row.identifies and row.name in self._lists]
        self._identifying = {name: identified_agent(name, load(Agent, "agents")) for name in identifying}
        self._of_agents = Networks(network for name in identifying for network in snapshots[name].networks)
        self._proxies = Networks([*known_proxies(), *proxies])
        self._client_address = lru_cache(1 << 14)(self._client_address_uncached)

    def can_verify(self, classification: Classification) -> bool:
        """Return whether an address can matter: this agent has a list, or this is a person and some list identifies
        agents.
        """
        if classification.device_type != "bot":
            return bool(self._identifying)
        row = self._agents.get(classification.agent or "")
        return row is not None and any(name in self._lists for name in _lists_of(row))

    def verification_methods(self, agent: str | None) -> tuple[str, ...]:
        """Return the ways to verify an agent: "ip:<list>", "dns:<suffix>" or "signature:<host>"."""
        return self._methods.get(agent or "", ())

    def verdict(self, agent: str | None, address: str, day: date) -> IpVerdict:
        """Return the verdict on whether a visit on `day` that claims to be by `agent` came from the agent's
        addresses.
        """
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
        names = " and ".join(snapshot.name for _, snapshot in lists)
        if row.server_side and are_all_fresh:
            return IpVerdict(False, f"outside {names}, and the agent uses no other addresses")
        elsewhere, too_old = (
            "the agent may also come from other addresses",
            "its IP lists are incomplete or too old to tell",
        )
        return IpVerdict(None, f"outside {names}, but {too_old if row.server_side else elsewhere}")

    def verify(self, classification: Classification, address: str, day: date) -> Classification:
        """Return a classification after checking it by the address.

        It is verified, contradicted, unchanged, or replaced by the classification of a disguised agent.
        """
        if classification.device_type != "bot":
            return self.identified(address, day) or classification
        return apply_verdict(classification, self.verdict(classification.agent, address, day).inside)

    def identified(self, address: str, day: date) -> Classification | None:
        """Return the classification of the agent that a list fetched within FRESH_DAYS of the visit identifies by this
        address; None if no such list contains it.

        Addresses are reassigned over time, so lists from other times do not identify agents.
        """
        parsed = parse_address(address)
        if parsed is None or parsed not in self._of_agents:  # true for nearly all people, so tested first
            return None
        client = self._client_address(address)[0]
        for name, classification in self._identifying.items():
            networks, snapshot = self._lists[name]
            if client and client in networks and _is_fresh(snapshot, day):
                return classification
        return None

    def _client_address_uncached(self, text: str) -> tuple[Address | None, str]:
        """Return the parsed client address; None, and the reason, if it cannot be used."""
        address = parse_address(text)
        if address is None:
            return None, "no IP address was given" if text in ("", "-") else f"{text!r} is not a valid IP address"
        if not address.is_global:
            return None, f"{address} is not a public IP address"
        return (None, f"{address} belongs to a proxy") if address in self._proxies else (address, "")


@cache
def known_proxies() -> tuple[Network, ...]:
    """Return the networks of the content delivery networks in proxies.toml."""
    return tuple(ipaddress.ip_network(row.network) for row in load(Proxy, "proxies"))


def apply_verdict(classification: Classification, inside: bool | None) -> Classification:
    """Apply a verdict to a classification. A contradicted agent becomes an unknown bot with the name that it claims."""
    if inside is None:
        return classification
    if inside:
        return classification._replace(confidence="verified", detection_method="ip_range")
    return bot_classification("other", classification.agent, "contradicted", method="ip_range")


def identified_agent(ip_list: str, rows: Iterable[Agent]) -> Classification:
    """Return the classification of the agent that uses the addresses in an IP list, whatever its user agent is."""
    row = next(row for row in rows if f"ip:{ip_list}" in row.verify and row.confidence == "high")
    return agent_classification(row, "medium", "ip_range")


def _lists_of(row: Agent) -> list[str]:
    return [method.removeprefix("ip:") for method in row.verify if method.startswith("ip:")]


def _is_fresh(snapshot: FetchedList, day: date) -> bool:
    return abs((snapshot.fetched_at.date() - day).days) <= FRESH_DAYS
