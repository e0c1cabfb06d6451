"""The identity provider's public keys (JWKS), from a file or a URL. Tokens are checked in authentication.py.

PyJWT's PyJWKClient is not used: it fetches under a lock, and retries a failed fetch for every unknown kid, so requests
would wait for the provider. It also does not use expired keys while the provider is down, drops keys without a kid, and
rejects the whole set if one key has an unknown `alg`.
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
from typing import Final

import jwt

from data import BadInput
from service.core.setting_values import is_allowed_url
from service.outgoing.connection import OutgoingError
from service.outgoing.http import fetch

REFRESH_SECONDS: Final = 240
"""Time after which keys are read again, so that they are normally less than five minutes old."""
MAX_STALE_SECONDS: Final = 86_400
"""How long the last good keys are used while the source cannot be read."""
FETCH_TIMEOUT_SECONDS: Final = 3
MIN_REFRESH_INTERVAL_SECONDS: Final = 30
"""Minimum time between two successful reads, even if many unknown kids are sent."""
MIN_BACKOFF_SECONDS: Final = 5
MAX_PAUSE_SECONDS: Final = 60
MAX_BYTES: Final = 64 << 10
MAX_KEYS: Final = 64
MAX_KID_LENGTH: Final = 128
RSA_BITS: Final = range(2_048, 8_193)
_ALGORITHMS: Final = {("RSA", None): "RS256", ("EC", "P-256"): "ES256", ("OKP", "Ed25519"): "EdDSA"}
"""The algorithm for each type of key, so that a token cannot choose how its signature is verified."""
_PUBLIC: Final = ("kty", "crv", "n", "e", "x", "y")
_INVALID: Final = (ValueError, TypeError, AttributeError, LookupError, RecursionError, jwt.PyJWTError)
"""Exceptions raised when a body is not JSON or not a key set, or when a key is invalid."""
_LOG: Final = logging.getLogger(__name__)


class JwksClient:
    """A client that finds keys by kid. It reads the source periodically and for an unknown kid, at most twice a minute.

    While the source cannot be read, the last good keys are used for a day. A daemon thread reads the source, so
    neither requests with a known key nor the server's shutdown wait for it. Belongs to one event loop.
    """

    def __init__(self, source: str, clock: Callable[[], float] = time.monotonic) -> None:
        """`source` is a file or an https URL (http only on this machine). Raises BadInput for anything else."""
        self._source = source
        self._clock = clock
        self.generation = 0  # increases after the keys have changed
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
                raise BadInput(f"TRAFFIC_JWKS is {source}, but there is no such file.")
        elif not is_allowed_url(source):
            raise BadInput("TRAFFIC_JWKS must be a file or an https address (http on this machine only).")

    async def key(self, kid: object) -> tuple[jwt.PyJWK, int]:
        """Return the key with a kid, and the generation of the key set. None finds the only key or, if there are
        several, the key without a kid. Raises PyJWTError if there is no such key, or if the kid is invalid.
        """
        kid = _valid_kid(kid)
        self._refresh_if_old()
        generation, key = self.generation, self._get(kid)
        if key is None and (kid is not None or not self.is_usable()):
            self._start_reading()
            seconds = self._started_at[1] + FETCH_TIMEOUT_SECONDS - self._clock()
            if not self._refresh.done() and seconds > 0:
                with suppress(TimeoutError):
                    await asyncio.wait_for(asyncio.wrap_future(self._refresh), seconds)
            generation, key = self.generation, self._get(kid)
        if key is None:
            raise jwt.InvalidKeyError("no such key")
        return key, generation

    def is_usable(self) -> bool:
        """Return whether the keys were last read at most MAX_STALE_SECONDS ago."""
        return self._clock() - self._refreshed_at <= MAX_STALE_SECONDS

    def _get(self, kid: str | None) -> jwt.PyJWK | None:
        if not self.is_usable():
            return None
        if kid is None and len(self._keys) == 1:
            return next(iter(self._keys.values()))
        return self._keys.get(kid)

    def _refresh_if_old(self) -> None:
        if self._clock() - self._refreshed_at >= REFRESH_SECONDS:
            self._start_reading()

    def _start_reading(self) -> None:
        """Start reading the keys in a thread, unless a read is running or the last one was too recent."""
        pause = MIN_REFRESH_INTERVAL_SECONDS
        if self._failures:
            pause = min(MIN_BACKOFF_SECONDS << min(self._failures - 1, 6), MAX_PAUSE_SECONDS)
        next_at = max(self._started_at[1] + pause, self._started_at[0] + 60)
        if self._refresh.done() and self._clock() >= next_at:
            self._started_at.append(self._clock())
            reading: Future[None] = Future()
            reading.set_running_or_notify_cancel()  # otherwise a cancelled request could cancel it for other requests
            threading.Thread(target=self._fetch, args=(reading,), name="jwks", daemon=True).start()
            self._refresh = reading
            loop = asyncio.get_running_loop()
            reading.add_done_callback(lambda _: _call_in(loop, self._refresh_while_idle))

    def _refresh_while_idle(self) -> None:
        """Schedule the next read, so that keys are refreshed even without requests. Called at the end of a read."""
        asyncio.get_running_loop().call_later(REFRESH_SECONDS + 1, self._refresh_if_old)

    def _fetch(self, reading: Future[None]) -> None:
        """Read the keys and use them. On an error, keep the last good keys; log the error only if it is new."""
        try:
            if "://" in self._source:
                body = asyncio.run(fetch(self._source, FETCH_TIMEOUT_SECONDS, MAX_BYTES))
            else:
                with Path(self._source).open("rb") as file:
                    body = file.read(MAX_BYTES + 1)
            if len(body) > MAX_BYTES:
                raise ValueError("the file is too large for a key set")
            keys = _parse_keys(body)
        except (OutgoingError, OSError, *_INVALID) as error:
            self._failures += 1
            reason = str(error) if isinstance(error, OutgoingError) else f"{type(error).__name__}: {error}"[:200]
            if reason != self._last_error:
                _LOG.warning("The identity provider's keys cannot be read: %s", reason)
            self._last_error = reason
        else:
            is_changed = body != self._body
            if is_changed:
                self._body, self._keys = body, keys
            self._refreshed_at, self._failures, self._last_error = self._clock(), 0, ""
            self.generation += is_changed  # last, so that the new generation is never seen with the old keys
        finally:
            reading.set_result(None)


def _call_in(loop: asyncio.AbstractEventLoop, call: Callable[[], None]) -> None:
    """Call a function in an event loop from a thread. Do nothing if the loop is closed."""
    with suppress(RuntimeError):
        loop.call_soon_threadsafe(call)


def _parse_keys(body: bytes) -> dict[str | None, jwt.PyJWK]:
    """Return a key set's usable keys, by kid. Raises one of _INVALID if there are none or the body is not a key set."""
    entries = json.loads(body)["keys"]
    if not isinstance(entries, list) or len(entries) > MAX_KEYS:
        raise ValueError("not a key set")
    keys = {}
    for entry in entries:
        with suppress(*_INVALID):  # skip entries that cannot or must not be used to verify signatures
            algorithm = _ALGORITHMS[entry["kty"], entry.get("crv")]
            if (
                entry.get("alg", algorithm) != algorithm
                or entry.get("use", "sig") != "sig"
                or "verify" not in entry.get("key_ops", ["verify"])
                or "d" in entry  # a published private key
            ):
                continue
            key = jwt.PyJWK({name: entry[name] for name in _PUBLIC if name in entry}, algorithm)
            if entry["kty"] != "RSA" or key.key.key_size in RSA_BITS:
                keys[_valid_kid(entry.get("kid"))] = key
    if not keys:
        raise ValueError("the key set has no key for signatures")
    return keys


def _valid_kid(kid: object) -> str | None:
    """Return the kid, which may be None. Raises PyJWTError if it is invalid."""
    if kid is None or (isinstance(kid, str) and 0 < len(kid) <= MAX_KID_LENGTH and kid.isascii() and kid.isprintable()):
        return kid
    raise jwt.InvalidTokenError("not a kid")
