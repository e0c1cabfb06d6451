"""Connects to hosts: resolves the name once, checks the addresses, and connects to a checked address."""

import asyncio
import ipaddress
import os
import socket
import ssl
from collections.abc import Callable
from functools import cache
from typing import Final

from service.core.threads import in_daemon_thread
from service.outgoing.addresses import Address

ERRORS: Final = {
    "name_not_resolved": "the host has no address, or its name servers did not answer",
    "address_not_allowed": "an address of the host is neither in `TRAFFIC_HOOK_NETWORKS` nor, over https, public",
    "connection_failed": "the connection was refused, or closed before a response",
    "tls_failed": "no TLS, or a certificate that is invalid, expired or for another host",
    "timed_out": "no complete response within the time limit, which is 15 seconds for hooks",
    "invalid_response": "the received data is not an HTTP response",
}
"""The reasons why there was no complete response, by error."""


class OutgoingError(Exception):
    """The reason why a request got no usable response. `error` is a key of ERRORS; the message has the details."""

    def __init__(self, error: str, reason: object) -> None:
        text = f"{type(reason).__name__}: {reason}" if isinstance(reason, Exception) else str(reason)
        super().__init__(text[:200])
        self.error = error


async def connect(
    host: str, port: int, deadline: float, is_allowed: Callable[[Address], bool] = lambda _: True
) -> socket.socket:
    """Connect to the first of a host's addresses that accepts a connection, if all of them are allowed.

    The caller must set a timeout at `deadline`, by the event loop's clock; each address gets an equal share of the
    remaining time. Raises OutgoingError.
    """
    try:
        found = await in_daemon_thread(socket.getaddrinfo, host, port, socket.AF_UNSPEC, socket.SOCK_STREAM)
    except (OSError, ValueError) as error:  # ValueError: not a host name, such as a label of 64 letters
        raise OutgoingError("name_not_resolved", error) from error
    for *_, address in found:
        if not is_allowed(ipaddress.ip_address(address[0])):
            raise OutgoingError("address_not_allowed", f"{address[0]} is not allowed")
    loop, failure = asyncio.get_running_loop(), OSError("no address")
    for left, (family, kind, protocol, _, address) in zip(range(len(found), 0, -1), found, strict=True):
        share = None if left == 1 else (deadline - loop.time()) / left
        try:
            candidate = socket.socket(family, kind, protocol)
            candidate.setblocking(False)
            try:
                async with asyncio.timeout(share):
                    await loop.sock_connect(candidate, address)
            except BaseException:
                candidate.close()
                raise
        except OSError as error:  # asyncio's message names the address instead of the cause
            failure = OSError(error.errno, os.strerror(error.errno)) if error.errno else error
        else:
            return candidate
    raise OutgoingError("connection_failed", failure) from failure


async def tls_context() -> ssl.SSLContext:
    """Return a context that verifies certificates and host names, with the system's certificate authorities or those in
    SSL_CERT_FILE and SSL_CERT_DIR.
    """
    return await in_daemon_thread(_tls_context, os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR"))


@cache
def _tls_context(*_: str | None) -> ssl.SSLContext:
    """Return the context for these environment variables. Loading the authorities takes 50 ms."""
    return ssl.create_default_context()
