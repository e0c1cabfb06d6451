"""Validates the hosts of requests (RFC 3986, IDNA), and normalizes hosts and IP addresses."""

import re
import socket
from typing import Final

from data.errors import BadInput

HOST_RULE: Final = "must be a host or host:port, such as go.example.com or [2001:db8::1]:8080"
"""The end of an error message that begins with the name of a value. The message omits the value, which may contain a
secret."""

_MAPPED: Final = bytes(10) + b"\xff\xff"
"""The prefix of IPv4-mapped IPv6 addresses, ::ffff:0:0/96."""
_MAX_HOST: Final = 253
_HOST_AND_PORT: Final = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[^\[\]:]+)(?::[0-9]{0,5})?")
_LABEL: Final = r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?"
_NAME: Final = re.compile(rf"{_LABEL}(?:\.{_LABEL})*")


def normalized_address(text: str) -> str:
    """Return the canonical spelling of a client's IP address, without port, brackets or zone. An IPv4-mapped IPv6
    address becomes an IPv4 address.

    Other text is returned unchanged. A plain IPv4 address is not parsed, because it has only one spelling.
    """
    if ":" not in text:
        return text
    host = text[1:].partition("]")[0] if text.startswith("[") else text
    try:
        if host.count(":") < 2:
            host = host.partition(":")[0]
            socket.inet_pton(socket.AF_INET, host)  # a valid IPv4 address has only one spelling
            return host
        packed = socket.inet_pton(socket.AF_INET6, host.partition("%")[0])
    except (OSError, ValueError):  # ValueError: a NUL, or a lone surrogate
        return text
    if packed.startswith(_MAPPED):
        return socket.inet_ntop(socket.AF_INET, packed[12:])
    return socket.inet_ntop(socket.AF_INET6, packed)


def normalized_host(text: str) -> str | None:
    """Return the normal form of a host or host:port; None if `text` is neither.

    The normal form is what browsers send, without the port and the final dot: lower case, non-ASCII letters as A-labels
    (xn--…), an IPv6 address in brackets and shortened. Underscores are allowed, since some names contain them.
    """
    parts = _HOST_AND_PORT.fullmatch(text) if len(text) <= _MAX_HOST + len(".:65535") else None
    if parts is None:
        return None
    host = parts[1]
    if host.startswith("["):
        try:
            return f"[{socket.inet_ntop(socket.AF_INET6, socket.inet_pton(socket.AF_INET6, host[1:-1]))}]"
        except OSError:
            return None
    if not host.isascii():
        import idna  # noqa: PLC0415  # its tables take a while to load, and are seldom needed

        try:
            host = idna.encode(host, uts46=True).decode()
        except idna.IDNAError:
            return None
    host = host.lower().removesuffix(".")
    return host if len(host) <= _MAX_HOST and _NAME.fullmatch(host) else None


def check_host(text: str, what: str) -> str:
    """Return the normal form of a host or host:port. Raises BadInput for other text; `what` begins the message."""
    host = normalized_host(text)
    if host is None:
        raise BadInput(f"{what} {HOST_RULE}.")
    return host
