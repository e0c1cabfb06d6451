"""The kind of network that an address belongs to, by the ranges of providers in the package iporigin, offline.

It comes with 39,000 ranges of 49 providers, which most of them publish, and is released every few weeks. Evidence:
https://pypi.org/project/iporigin/
"""

from functools import lru_cache
from typing import Final

import iporigin

from data.signals import BITS

_FACTS: Final = {
    iporigin.HOSTING: BITS["from_hosting"], iporigin.CDN: BITS["from_cdn"], iporigin.VPN: BITS["from_vpn"],
    iporigin.TOR: BITS["from_tor"],
}  # fmt: skip
_RELAYS: Final = frozenset(("Apple Private Relay",))
"""Providers that iporigin counts among VPNs, whose users do not know. Evidence: https://support.apple.com/102602"""


@lru_cache(1 << 14)
def network_fact(address: str) -> int:
    """The bit of the kind of network of an address; 0 if it is in no list, or no address."""
    try:
        origin = iporigin.classify(address)
    except ValueError:
        return 0
    return BITS["from_relay"] if origin.provider in _RELAYS else _FACTS.get(origin.kind, 0)
