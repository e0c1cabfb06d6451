"""Limits on a request's URL and headers, and checks for required headers."""

import re
from collections.abc import Sequence
from typing import Final

from service.core.http.errors import HeadersTooLarge, MalformedRequest, UrlTooLong

MAX_URL_BYTES: Final = 8_192
MAX_HEADER_BYTES: Final = 65_536
"""Maximum total size of the names and values of all headers, plus 4 separator bytes for each."""
MAX_HEADERS: Final = 100

_HOST: Final = re.compile(rb"[\w.~!$&'()*+,;=%:\[\]-]*", re.ASCII)

Headers = Sequence[tuple[bytes, bytes]]


def check_size(url: bytes, headers: Headers, max_bytes: int) -> None:
    """Check the size of the URL, and the number and total size of the headers. Raises UrlTooLong or HeadersTooLarge.

    `max_bytes` is a known upper bound on the total size.
    """
    if len(url) > MAX_URL_BYTES:
        raise UrlTooLong(f"The URL is longer than {MAX_URL_BYTES >> 10} KiB.")
    if len(headers) > MAX_HEADERS or (
        max_bytes > MAX_HEADER_BYTES  # otherwise they cannot be too large
        and sum(len(name) + len(value) + 4 for name, value in headers) > MAX_HEADER_BYTES
    ):
        raise HeadersTooLarge


def check_headers(headers: Headers, version: str, *, is_upgrade: bool) -> None:
    """Require one valid Host (RFC 9112, 3.2; optional in 1.0); reject a body with Upgrade. Raises MalformedRequest."""
    hosts = [value for name, value in headers if name == b"host"]
    if len(hosts) != 1 and (hosts or version == "1.1"):
        raise MalformedRequest("Exactly one Host header is required.", "Send the name that you connect to, once.")
    if hosts and not _HOST.fullmatch(hosts[0]):
        raise MalformedRequest(
            "The Host header is not a valid host.", "Send the name that you connect to, and its port."
        )
    if is_upgrade and any(name in {b"content-length", b"transfer-encoding"} for name, _ in headers):
        raise MalformedRequest("A request with an Upgrade header must not have a body.", "Send it without Upgrade.")
