"""Which addresses hooks may be sent to. Otherwise a hook would be a way to reach what only this machine can reach."""

import ipaddress
import queue
import socket
import threading
from collections.abc import Callable, Sequence
from typing import Final

from service.settings import Network

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Resolver = Callable[[str, int], list[str]]
"""Returns the addresses of a host, as text, for connections to a port. Raises OSError; may block."""

_RESERVED: Final = tuple(
    ipaddress.ip_network(network)
    for network in (
        "0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24",
        "192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24",
        "224.0.0.0/3", "::/96", "::ffff:0:0/96", "64:ff9b::/96", "64:ff9b:1::/48", "100::/64", "2001::/23",
        "2001:db8::/32", "2002::/16", "3fff::/20", "5f00::/16", "fc00::/7", "fe80::/10", "fec0::/10", "ff00::/8",
    )
)  # fmt: skip
"""Networks that are not the public internet, or that lead to IPv4 addresses written inside IPv6 ones.

`is_global` of the standard library alone lets some of them pass: it depends on the version of Python.
"""


def system_resolver(host: str, port: int) -> list[str]:
    """The addresses of a host as the operating system finds them. Raises OSError."""
    addresses = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[0]) for *_, address in addresses))


def resolve(resolver: Resolver, host: str, port: int, seconds: float) -> list[Address]:
    """The addresses of a host. Raises OSError or ValueError; TimeoutError if `seconds` are not enough.

    getaddrinfo takes no time limit, so it runs in a thread that is abandoned.
    """
    answers: queue.SimpleQueue[list[str] | Exception] = queue.SimpleQueue()

    def ask() -> None:
        try:
            answers.put(resolver(host, port))
        except (OSError, ValueError) as error:  # ValueError: what is no host name, such as a label of 64 letters
            answers.put(error)

    threading.Thread(target=ask, name="hook-resolver", daemon=True).start()
    try:
        answer = answers.get(timeout=max(0, seconds))
    except queue.Empty:
        raise TimeoutError from None
    if isinstance(answer, Exception):
        raise answer
    return [ipaddress.ip_address(address) for address in answer]


def is_public(address: Address) -> bool:
    """Whether an address is on the public internet."""
    return address.is_global and not is_in(address, _RESERVED)


def is_in(address: Address, networks: Sequence[Network]) -> bool:
    """Whether an address is in one of these networks. An IPv4 address written as an IPv6 one is in no IPv4 network."""
    return any(address in network for network in networks)
