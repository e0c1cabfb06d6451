"""The identity provider's public keys, from a file or an address. What a token must say is in authentication.py.

PyJWT has a client for this, PyJWKClient. It is not used because requests must not wait for a provider: its reading
holds a lock, a failed one is tried again for every unknown kid, keys that grew old are not used while the provider is
down, a key without kid is dropped, and a key with an odd `alg` makes the whole set unreadable.
"""

import asyncio
import json
import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import jwt

from data import BadInput
from service.http.guarded_fetch import FetchError, fetch

REFRESH_SECONDS: Final = 240
"""Keys live five minutes; at 80 % of that they are read again, so that nobody waits for it."""
MAX_STALE_SECONDS: Final = 86_400
FETCH_TIMEOUT_SECONDS: Final = 3
MIN_REFRESH_INTERVAL_SECONDS: Final = 30
"""From a good reading to the next one: how long new keys may go unseen, whatever kids are sent."""
MIN_BACKOFF_SECONDS: Final = 5
MAX_PAUSE_SECONDS: Final = 60
MAX_BYTES: Final = 64 << 10
MAX_KEYS: Final = 64
MAX_KID_LENGTH: Final = 128
RSA_BITS: Final = range(2_048, 8_193)
_ALGORITHMS: Final = {("RSA", None): "RS256", ("EC", "P-256"): "ES256", ("OKP", "Ed25519"): "EdDSA"}
"""The one algorithm of each kind of key: no token chooses how its signature is verified."""
_PUBLIC: Final = ("kty", "crv", "n", "e", "x", "y")
_INVALID: Final = (ValueError, TypeError, AttributeError, LookupError, RecursionError, jwt.PyJWTError)
"""What parsing raises when an answer is not JSON, not a key set, or holds something else than a key."""
_LOG: Final = logging.getLogger(__name__)


class JwksClient:
    """Keys by their kid, read again before they are old or for an unknown kid, at most twice a minute in all.

    While the source cannot be read the last good keys are used, for a day. A daemon thread reads: no request that
    has its key, and no stop of the server, waits for it.
    """

    def __init__(self, source: str, clock: Callable[[], float] = time.monotonic) -> None:
        """`source` is a file or an https address (http on this machine). Raises BadInput for any other."""
        self._source = source
        self._clock = clock
        self.generation = 0  # rises after the keys have changed
        self._body = b""
        self._keys: dict[str | None, jwt.PyJWK] = {}
        self._refreshed_at = float("-inf")
        self._started_at = deque([float("-inf")] * 2, maxlen=2)
        self._failures = 0
        self._last_error = ""
        self._refresh: Future[None] = Future()
        self._refresh.set_result(None)
        if "://" not in source:
            if not Path(source).is_file():
                raise BadInput(f"TRAFFIC_JWKS: there is no file {source}.")
        elif not _is_allowed_url(source):
            raise BadInput("TRAFFIC_JWKS must be a file or an https address (http on this machine only).")

    async def key(self, kid: object) -> tuple[jwt.PyJWK, int]:
        """The key of that kid, and its generation. Raises PyJWTError when there is none.

        A token without kid is meant for the only key.
        """
        kid = _valid_kid(kid)
        self._refresh_if_old()
        generation, key = self.generation, self._get(kid)
        if key is None and (kid is not None or not self._is_usable()):
            self._start_reading()
            await self._wait_for_reading()
            generation, key = self.generation, self._get(kid)
        if key is None:
            raise jwt.InvalidKeyError("no such key")
        return key, generation

    def _is_usable(self) -> bool:
        return self._clock() - self._refreshed_at <= MAX_STALE_SECONDS

    def _get(self, kid: str | None) -> jwt.PyJWK | None:
        if not self._is_usable():
            return None
        if kid is None and len(self._keys) == 1:
            return next(iter(self._keys.values()))
        return self._keys.get(kid)

    def _refresh_if_old(self) -> None:
        if self._clock() - self._refreshed_at >= REFRESH_SECONDS:
            self._start_reading()

    def _start_reading(self) -> None:
        """Start to read the keys in a thread, unless one is reading or the last reading was a moment ago."""
        pause = MIN_REFRESH_INTERVAL_SECONDS
        if self._failures:
            pause = min(MIN_BACKOFF_SECONDS << min(self._failures - 1, 6), MAX_PAUSE_SECONDS)
        next_at = max(self._started_at[1] + pause, self._started_at[0] + 60)
        if self._refresh.done() and self._clock() >= next_at:
            self._started_at.append(self._clock())
            reading: Future[None] = Future()
            reading.set_running_or_notify_cancel()  # a request that is cancelled cannot cancel it for the others
            threading.Thread(target=self._fetch, args=(reading,), name="jwks", daemon=True).start()
            self._refresh = reading
            # an idle server, too, has the keys that the provider has now
            asyncio.get_running_loop().call_later(REFRESH_SECONDS + 1, self._refresh_if_old)

    async def _wait_for_reading(self) -> None:
        seconds = self._started_at[1] + FETCH_TIMEOUT_SECONDS - self._clock()
        if not self._refresh.done() and seconds > 0:
            with suppress(TimeoutError):
                await asyncio.wait_for(asyncio.wrap_future(self._refresh), seconds)

    def _fetch(self, reading: Future[None]) -> None:
        """Read the keys and use them. An error leaves the last good keys; it is logged unless the last was the same."""
        try:
            body = _read_source(self._source)
            keys = _parse_keys(body)
        except (FetchError, OSError, *_INVALID) as error:
            self._failures += 1
            reason = str(error) if isinstance(error, FetchError) else f"{type(error).__name__}: {error}"[:200]
            if reason != self._last_error:
                _LOG.warning("The identity provider's keys cannot be read: %s", reason)
            self._last_error = reason
        else:
            is_changed = body != self._body
            if is_changed:
                self._body, self._keys = body, keys
            self._refreshed_at, self._failures, self._last_error = self._clock(), 0, ""
            self.generation += is_changed  # last: whoever sees the new number sees the new keys
        finally:
            reading.set_result(None)


def _is_allowed_url(address: str) -> bool:
    try:
        parts = urlsplit(address)
        host = parts.hostname
    except ValueError:
        return False
    return parts.scheme == "https" or (parts.scheme == "http" and host in ("127.0.0.1", "::1", "localhost"))


def _read_source(source: str) -> bytes:
    """The bytes of a file or an address. Raises FetchError, OSError or ValueError."""
    if "://" in source:
        return fetch(source, FETCH_TIMEOUT_SECONDS, MAX_BYTES)
    with Path(source).open("rb") as file:
        body = file.read(MAX_BYTES + 1)
    if len(body) > MAX_BYTES:
        raise ValueError("larger than a key set")
    return body


def _parse_keys(body: bytes) -> dict[str | None, jwt.PyJWK]:
    """The usable keys of a key set by their kid. Raises one of _INVALID when there is none, or no key set."""
    entries = json.loads(body)["keys"]
    if not isinstance(entries, list) or len(entries) > MAX_KEYS:
        raise ValueError("not a key set")
    keys = {}
    for entry in entries:
        with suppress(*_INVALID):  # an entry that cannot be used does not make the others unusable
            keys[_valid_kid(entry.get("kid"))] = _signing_key(entry)
    if not keys:
        raise ValueError("a key set without a key for signatures")
    return keys


def _signing_key(entry: dict[str, Any]) -> jwt.PyJWK:
    """The key of an entry. Raises one of _INVALID when nothing may be verified with it."""
    algorithm = _ALGORITHMS[entry["kty"], entry.get("crv")]
    if (
        entry.get("alg", algorithm) != algorithm
        or entry.get("use", "sig") != "sig"
        or "verify" not in entry.get("key_ops", ["verify"])
        or "d" in entry  # a private key that is published is everybody's
    ):
        raise ValueError("a key for something else")
    key = jwt.PyJWK({name: entry[name] for name in _PUBLIC if name in entry}, algorithm)
    if entry["kty"] == "RSA" and key.key.key_size not in RSA_BITS:
        raise ValueError("a weak key")
    return key


def _valid_kid(kid: object) -> str | None:
    """The kid of a key or of a token, None when it has none. Raises PyJWTError for what cannot be one."""
    if kid is None or (isinstance(kid, str) and 0 < len(kid) <= MAX_KID_LENGTH and kid.isascii() and kid.isprintable()):
        return kid
    raise jwt.InvalidTokenError("not a kid")
