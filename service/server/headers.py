"""How much a client may write before its request is known, and what must stand there."""

import re
from collections.abc import Sequence
from typing import Final

from service.http.errors import HeadersTooLarge, Malformed, UrlTooLong

MOST_URL_BYTES: Final = 8_192
MOST_HEADER_BYTES: Final = 65_536
"""Of the names and values of a request's headers, each with the four bytes that part it from the next."""
MOST_HEADERS: Final = 100

_HOST: Final = re.compile(rb"[\w.~!$&'()*+,;=%:\[\]-]*", re.ASCII)
_FRAMING: Final = (b"content-length", b"transfer-encoding")

Headers = Sequence[tuple[bytes, bytes]]


def check_size(url: bytes, headers: Headers, most_bytes: int) -> None:
    """What a request may bring, of which so many bytes have come at most. Raises UrlTooLong or HeadersTooLarge."""
    if len(url) > MOST_URL_BYTES:
        raise UrlTooLong(MOST_URL_BYTES)
    if len(headers) > MOST_HEADERS or (
        most_bytes > MOST_HEADER_BYTES  # else they cannot be too large
        and sum(len(name) + len(value) + 4 for name, value in headers) > MOST_HEADER_BYTES
    ):
        raise HeadersTooLarge


def check_host(headers: Headers, version: str) -> None:
    """What RFC 9112, 3.2 demands of a request. Raises Malformed."""
    hosts = [value for name, value in headers if name == b"host"]
    if len(hosts) != 1 and (hosts or version == "1.1"):
        raise Malformed("There must be one header Host.", "Send the name that you connect to, once.")
    if hosts and not _HOST.fullmatch(hosts[0]):
        raise Malformed("The header Host names no host.", "Send the name that you connect to, and its port.")


def check_upgrade(headers: Headers) -> None:
    """What a request with Upgrade must not bring: a body that the parser does not see. Raises Malformed."""
    if any(name in _FRAMING for name, _ in headers):
        raise Malformed("A body and the header Upgrade do not go together.", "Send it without Upgrade.")
