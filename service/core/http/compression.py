"""Gzip compression of bodies for clients that accept it."""

import gzip
import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Final

VARY: Final[Mapping[str, str]] = {"Vary": "Accept-Encoding"}
"""The header of every response that may be compressed."""
GZIP: Final[Mapping[str, str]] = {**VARY, "Content-Encoding": "gzip"}
"""The headers of a compressed response."""
MIN_BYTES: Final = 1_000
"""Minimum size of a body to compress: a smaller body fits into one packet with its headers anyway."""
_LEVEL: Final = 6
_CODING: Final = re.compile(r"\s*([^\s;]+)\s*(?:;\s*q=(0(?:\.\d{0,3})?|1(?:\.0{0,3})?)\s*)?", re.IGNORECASE)


def compress(body: bytes) -> bytes:
    """Compress a body with gzip. Blocks, but releases the interpreter's lock."""
    return gzip.compress(body, _LEVEL, mtime=0)


def negotiated(headers: Iterable[tuple[bytes, bytes]], body: bytes) -> tuple[bytes, Mapping[str, str]]:
    """Return the body as encoded for a client with these request headers, and the response headers to match. Blocks."""
    return (compress(body), GZIP) if wants_gzip(headers, body) else (body, VARY)


def wants_gzip(headers: Iterable[tuple[bytes, bytes]], body: bytes) -> bool:
    """Return whether to compress a body for a client with these request headers."""
    accepted = b""
    for name, value in headers:  # a plain loop for speed: this runs for every cached answer
        if name == b"accept-encoding":
            accepted += b",%b" % value
    return accepted != b"" and len(body) >= MIN_BYTES and _prefers_gzip(accepted)


@lru_cache(256)
def _prefers_gzip(accepted: bytes) -> bool:
    """Return whether a client's Accept-Encoding (RFC 9110, 12.5.3) prefers gzip at least as much as identity."""
    weights = {}
    for part in accepted.decode("latin-1").lower().split(","):
        if coding := _CODING.fullmatch(part):
            weights[coding[1]] = float(coding[2] or 1)
    gzip_weight = weights.get("gzip", weights.get("x-gzip", weights.get("*", 0)))
    return gzip_weight > 0 and gzip_weight >= weights.get("identity", 0)
