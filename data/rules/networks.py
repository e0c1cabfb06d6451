"""The kind of network that an address belongs to, by the ranges of providers in the package iporigin, offline.

It comes with 39,000 ranges of 49 providers, which most of them publish, and is released every few weeks. Evidence:
https://pypi.org/project/iporigin/
"""

from functools import lru_cache
from ipaddress import ip_address
from socket import AF_INET, AF_INET6, inet_pton
from typing import Final

import iporigin
from iporigin._data import dataset  # iporigin.classify takes six times as long, 7 % of an import

from data.signals import BITS

_FACTS: Final = {
    iporigin.HOSTING: BITS["from_hosting"], iporigin.CDN: BITS["from_cdn"], iporigin.VPN: BITS["from_vpn"],
    iporigin.TOR: BITS["from_tor"], iporigin.BOT: BITS["from_bot"],
}  # fmt: skip
_RELAYS: Final = frozenset(("Apple Private Relay",))
"""Providers that iporigin counts among VPNs, whose users do not know. Evidence: https://support.apple.com/102602"""
_OF_PEOPLE: Final = frozenset(("Google", "Cogent"))
"""Providers that iporigin counts among hosting, through whose addresses people come, too.

Chrome loads search results ahead through Google's proxies; Cogent connects companies. Evidence:
https://developer.chrome.com/blog/private-prefetch-proxy and https://www.cogentco.com/en/products/dedicated-internet-access
"""


@lru_cache(1 << 14)
def network_fact(address: str) -> int:
    """The bit of the kind of network of an address in its one spelling; 0 if it is in no list, or no address."""
    version = 6 if ":" in address else 4
    try:
        packed = inet_pton(AF_INET6 if version == 6 else AF_INET, address)
    except (OSError, ValueError):  # ValueError: a surrogate
        return 0
    provider, kind = dataset().find(int.from_bytes(packed), version) or ("", "")
    if not kind or not ip_address(packed).is_global:  # private and documentation addresses lie in some ranges
        return 0
    if provider in _OF_PEOPLE:
        return 0
    return BITS["from_relay"] if provider in _RELAYS else _FACTS.get(kind, 0)
