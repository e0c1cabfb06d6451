"""The identity provider's public keys, from a file or an address. What a token must say is in access.py."""

import asyncio
import json
import time
import urllib.request
from collections.abc import Callable
from http.client import HTTPException
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import jwt

from data import BadInput

FRESH_SECONDS: Final = 300
STALE_SECONDS: Final = 86_400
RETRY_SECONDS: Final = 30
FETCH_SECONDS: Final = 3
MOST_BYTES: Final = 64 << 10
MOST_KEYS: Final = 64
_TROUBLES: Final = (
    OSError, HTTPException, ValueError, TypeError, AttributeError, LookupError, RecursionError, jwt.PyJWTError,
)  # fmt: skip
"""What may go wrong with somebody else's answer: no connection, no HTTP, no JSON, no key set, no key."""
_THIS_MACHINE: Final = ("127.0.0.1", "::1", "localhost")


class KeySet:
    """Keys by their kid, read again every five minutes, or for an unknown kid at most every 30 seconds.

    While the source cannot be read the last good keys serve on, for a day.
    """

    def __init__(self, source: str, clock: Callable[[], float] = time.monotonic) -> None:
        """`source` is a file or an https address (http on this machine). Raises BadInput for any other."""
        self._source = source
        self._clock = clock
        self.generation = 0  # rises whenever the keys change
        self._body = b""
        self._keys: dict[str | None, jwt.PyJWK] = {}
        self._read_at = self._tried_at = float("-inf")
        self._reading = asyncio.Lock()
        if "://" not in source:
            if not Path(source).is_file():
                raise BadInput(f"TRAFFIC_JWKS: there is no file {source}.")
        elif not _is_safe(source):
            raise BadInput("TRAFFIC_JWKS must be a file or an https address (http on this machine only).")

    async def key(self, kid: object) -> jwt.PyJWK:
        """The key of that kid; a token without kid is meant for the only key. Raises PyJWTError when there is none."""
        if kid is not None and not isinstance(kid, str):
            raise jwt.InvalidTokenError("kid is no text")
        age = self._clock() - self._read_at
        if age > FRESH_SECONDS or (kid is not None and kid not in self._keys):
            await self._refresh()
        if self._clock() - self._read_at > STALE_SECONDS:
            raise jwt.InvalidKeyError("the key set is too old")
        if kid is None and len(self._keys) == 1:
            return next(iter(self._keys.values()))
        if kid not in self._keys:
            raise jwt.InvalidKeyError("no such key")
        return self._keys[kid]

    async def _refresh(self) -> None:
        async with self._reading:
            if self._clock() - self._tried_at < RETRY_SECONDS:
                return
            self._tried_at = self._clock()
            try:
                body = await asyncio.to_thread(self._fetch)
                keys = _keys_in(body)
            except _TROUBLES:
                return  # the last good keys serve on
            self._read_at = self._clock()
            if body != self._body:
                self._body, self._keys = body, keys
                self.generation += 1

    def _fetch(self) -> bytes:
        if "://" not in self._source:
            return Path(self._source).read_bytes()
        with urllib.request.urlopen(self._source, timeout=FETCH_SECONDS) as response:  # noqa: S310  # scheme checked above
            body: bytes = response.read(MOST_BYTES + 1)
        if len(body) > MOST_BYTES:
            raise ValueError("larger than a key set")
        return body


def _keys_in(body: bytes) -> dict[str | None, jwt.PyJWK]:
    """The keys for signatures in a key set. Raises one of _TROUBLES when there is none, or no key set."""
    keys = json.loads(body)["keys"]
    if not isinstance(keys, list) or len(keys) > MOST_KEYS:
        raise ValueError("not a key set")
    signing = [key for key in keys if key.get("use", "sig") == "sig" and key.get("kty") in ("RSA", "EC")]
    if not signing:
        raise ValueError("a key set without a key for signatures")
    return {key.get("kid"): jwt.PyJWK(key) for key in signing}


def _is_safe(address: str) -> bool:
    try:
        parts = urlsplit(address)
        host = parts.hostname
    except ValueError:
        return False
    return parts.scheme == "https" or (parts.scheme == "http" and host in _THIS_MACHINE)
