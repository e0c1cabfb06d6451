"""Checks that addresses are public, so that hooks cannot reach internal networks."""

import ipaddress
from collections.abc import Sequence
from typing import Final

from service.core.setting_values import Network

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

_GLOBAL_UNICAST: Final = ipaddress.ip_network("2000::/3")
"""The IPv6 range allocated to the public internet; the rest is reserved, local or multicast."""
_RESERVED: Final = tuple(
    ipaddress.ip_network(network)
    for network in (
        "0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24",
        "192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24",
        "224.0.0.0/3", "2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20",
    )
)  # fmt: skip
"""Networks outside the public internet, or with embedded IPv4 addresses.

The standard library's `is_global` alone lets some of them pass, depending on the Python version.
"""


def is_public(address: Address) -> bool:
    """Return whether an address is on the public internet."""
    is_unicast = address.version == 4 or address in _GLOBAL_UNICAST
    return is_unicast and address.is_global and not is_in(address, _RESERVED)


def is_in(address: Address, networks: Sequence[Network]) -> bool:
    """Return whether an address is in one of the networks. An IPv4-mapped IPv6 address is not in an IPv4 network."""
    return any(address in network for network in networks)
