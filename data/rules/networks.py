"""Determines the kind of network that an address belongs to.

The package iporigin contains 39,000 ranges of 49 providers (most publish their ranges), and is released every few
weeks. Evidence: https://pypi.org/project/iporigin/. hosting.toml lists the networks of 89 more hosting providers,
and the lists fetched by `traffic agents refresh` contain the networks of 900.
"""

from collections.abc import Mapping
from functools import cache, lru_cache
from ipaddress import ip_network
from socket import AF_INET, AF_INET6, inet_pton
from typing import Final

import iporigin
from iporigin._data import dataset  # iporigin.classify takes six times as long, 7 % of an import

from data.rules.ip_lists import FetchedList, Networks
from data.rules.tables import Hosting, IpList, load
from data.signals import BITS

_FACTS: Final = {
    iporigin.HOSTING: BITS["from_hosting"], iporigin.CDN: BITS["from_cdn"], iporigin.VPN: BITS["from_vpn"],
    iporigin.TOR: BITS["from_tor"], iporigin.BOT: BITS["from_bot"],
}  # fmt: skip
_RELAYS: Final = frozenset(("Apple Private Relay",))
"""Providers that iporigin counts as VPNs, but that people use unknowingly. Evidence:
https://support.apple.com/102602"""
_OF_PEOPLE: Final = frozenset(("Google", "Cogent"))
"""Providers that iporigin counts as hosting, but that people also use.

Chrome prefetches search results through Google's proxies; Cogent connects companies. Evidence:
https://developer.chrome.com/blog/private-prefetch-proxy and
https://www.cogentco.com/en/products/dedicated-internet-access
"""
_SPECIAL: Final = Networks(
    map(
        ip_network,
        (
            "0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12",
            "192.0.0.0/24", "192.0.2.0/24", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24",
            "240.0.0.0/4", "::/127", "::ffff:0:0/96", "100::/64", "2001::/23", "2001:db8::/32", "3fff::/20", "fc00::/7",
            "fe80::/10",
        ),
    )
)  # fmt: skip
"""Private, documentation and other networks that are not public, although some listed ranges contain them. A search
takes a fifth of the time of `ipaddress`. Evidence: https://www.iana.org/assignments/iana-ipv4-special-registry and
https://www.iana.org/assignments/iana-ipv6-special-registry"""


@cache
def _providers() -> Networks:
    """Return the networks of hosting.toml. Parsing them takes 0.1 s, so it is done once, for the first address."""
    return Networks(ip_network(text) for row in load(Hosting, "hosting") for text in row.networks)


class NetworkKinds:
    """Finds the kinds of networks, as facts about visits. Fetched lists are used for addresses that iporigin lacks."""

    def __init__(self, snapshots: Mapping[str, FetchedList]) -> None:
        """Use the lists of hosting networks among the fetched lists."""
        names = [row.name for row in load(IpList, "ip_lists") if row.hosting and row.name in snapshots]
        networks = [network for name in names for network in snapshots[name].networks]
        self._fetched = Networks(networks)
        self.fact = lru_cache(1 << 14)(self._fact_uncached)

    def _fact_uncached(self, address: str) -> int:
        """Return the bit for a normalized address's kind of network; 0 if the address is in no list, not public or
        invalid, or belongs to a provider in _OF_PEOPLE.
        """
        version = 6 if ":" in address else 4
        try:
            packed = inet_pton(AF_INET6 if version == 6 else AF_INET, address)
        except (OSError, ValueError):  # ValueError: a surrogate
            return 0
        value = int.from_bytes(packed)
        provider, kind = dataset().find(value, version) or ("", "")
        if provider in _OF_PEOPLE or _SPECIAL.has(version, value):
            return 0
        if not kind:
            is_hosting = _providers().has(version, value) or self._fetched.has(version, value)
            return BITS["from_hosting"] if is_hosting else 0
        return BITS["from_relay"] if provider in _RELAYS else _FACTS.get(kind, 0)
