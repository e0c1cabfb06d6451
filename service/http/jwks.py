"""The identity provider's public keys, from a file or an address. What a token must say is in authentication.py."""

import asyncio
import json
import logging
import socket
import threading
import time
import urllib.request
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import jwt

from data import BadInput

REFRESH_SECONDS: Final = 240
"""Keys live five minutes; at 80 % of that they are read again, so that nobody waits for it."""
STALE_SECONDS: Final = 86_400
FETCH_SECONDS: Final = 3
SPACING_SECONDS: Final = 30
"""From a good reading to the next one: how long new keys may go unseen, whatever kids are sent."""
FIRST_PAUSE_SECONDS: Final = 5
LONGEST_PAUSE_SECONDS: Final = 60
MOST_BYTES: Final = 64 << 10
MOST_KEYS: Final = 64
LONGEST_KID: Final = 128
RSA_BITS: Final = range(2_048, 8_193)
_KINDS: Final = {("RSA", None): "RS256", ("EC", "P-256"): "ES256", ("OKP", "Ed25519"): "EdDSA"}
"""The one algorithm of each kind of key: no token chooses how its signature is looked at."""
_PUBLIC: Final = ("kty", "crv", "n", "e", "x", "y")
_TROUBLES: Final = (
    OSError, HTTPException, ValueError, TypeError, AttributeError, LookupError, RecursionError, jwt.PyJWTError,
)  # fmt: skip
"""What may go wrong with somebody else's answer: no connection, no HTTP, no JSON, no key set, no key."""
_THIS_MACHINE: Final = ("127.0.0.1", "::1", "localhost")
_LOG: Final = logging.getLogger(__name__)


class KeySet:
    """Keys by their kid, read again before they are old, or for an unknown kid; at most twice a minute in all.

    While the source cannot be read the last good keys serve on, for a day. Reading is done by a thread of its own
    that no request and no stop of the server has to wait for.
    """

    def __init__(self, source: str, clock: Callable[[], float] = time.monotonic) -> None:
        """`source` is a file or an https address (http on this machine). Raises BadInput for any other."""
        self._source = source
        self._clock = clock
        self.generation = 0  # rises after the keys have changed
        self._body = b""
        self._keys: dict[str | None, jwt.PyJWK] = {}
        self._read_at = float("-inf")
        self._begun_at = deque([float("-inf")] * 2, maxlen=2)
        self._failures = 0
        self._trouble = ""
        self._reading: Future[None] = Future()
        self._reading.set_result(None)
        if "://" not in source:
            if not Path(source).is_file():
                raise BadInput(f"TRAFFIC_JWKS: there is no file {source}.")
        elif not _is_safe(source):
            raise BadInput("TRAFFIC_JWKS must be a file or an https address (http on this machine only).")

    async def key(self, kid: object) -> tuple[jwt.PyJWK, int]:
        """The key of that kid, and its generation. Raises PyJWTError when there is none.

        A token without kid is meant for the only key.
        """
        kid = _kid_of(kid)
        self._keep_fresh()
        generation, found = self.generation, self._found(kid)
        if found is None and (kid is not None or not self._is_usable()):
            self._begin()
            await self._end_of_reading()
            generation, found = self.generation, self._found(kid)
        if found is None:
            raise jwt.InvalidKeyError("no such key")
        return found, generation

    def _is_usable(self) -> bool:
        return self._clock() - self._read_at <= STALE_SECONDS

    def _found(self, kid: str | None) -> jwt.PyJWK | None:
        if not self._is_usable():
            return None
        if kid is None and len(self._keys) == 1:
            return next(iter(self._keys.values()))
        return self._keys.get(kid)

    def _keep_fresh(self) -> None:
        if self._clock() - self._read_at >= REFRESH_SECONDS:
            self._begin()

    def _begin(self) -> None:
        """Begin to read the keys, unless that is being done or was done a moment ago."""
        if self._reading.done() and self._clock() >= self._next_at():
            self._begun_at.append(self._clock())
            reading: Future[None] = Future()
            reading.set_running_or_notify_cancel()  # a caller that leaves cannot cancel it for the others
            threading.Thread(target=self._read, args=(reading,), name="jwks", daemon=True).start()
            self._reading = reading
            # the keys of an idle server, too, are those that the provider has now
            asyncio.get_running_loop().call_later(REFRESH_SECONDS + 1, self._keep_fresh)

    def _next_at(self) -> float:
        """When the keys may be read again."""
        pause = SPACING_SECONDS
        if self._failures:
            pause = min(FIRST_PAUSE_SECONDS << min(self._failures - 1, 6), LONGEST_PAUSE_SECONDS)
        return max(self._begun_at[1] + pause, self._begun_at[0] + 60)

    async def _end_of_reading(self) -> None:
        seconds = self._begun_at[1] + FETCH_SECONDS - self._clock()
        if not self._reading.done() and seconds > 0:
            with suppress(TimeoutError):
                await asyncio.wait_for(asyncio.wrap_future(self._reading), seconds)

    def _read(self, reading: Future[None]) -> None:
        """Take the keys over, in a thread. Its trouble is told once, however often it comes again."""
        begun = time.monotonic()
        try:
            body = _content(self._source)
            self._take(body, _keys_in(body))
        except _TROUBLES as trouble:  # the last good keys serve on
            self._failures += 1
            is_slow = time.monotonic() - begun >= FETCH_SECONDS
            told = "it took too long" if is_slow else f"{type(trouble).__name__}: {trouble}"[:200]
            if told != self._trouble:
                _LOG.warning("The identity provider's keys cannot be read: %s", told)
            self._trouble = told
        finally:
            reading.set_result(None)

    def _take(self, body: bytes, keys: dict[str | None, jwt.PyJWK]) -> None:
        is_changed = body != self._body
        if is_changed:
            self._body, self._keys = body, keys
        self._read_at, self._failures, self._trouble = self._clock(), 0, ""
        self.generation += is_changed  # last: whoever sees the new number sees the new keys


def _content(source: str) -> bytes:
    """The bytes of a file or an address. Raises one of _TROUBLES."""
    if "://" in source:
        is_here = source.lower().startswith("http:")  # on this machine, where no proxy stands between
        proxies = urllib.request.ProxyHandler({} if is_here else None)
        opener = urllib.request.build_opener(_Lines, _NoRedirects, proxies)
        asked = urllib.request.Request(source, headers={"Accept": "application/json", "User-Agent": "traffic"})  # noqa: S310  # scheme checked above
        with opener.open(asked, timeout=FETCH_SECONDS) as response:
            body: bytes = response.read(MOST_BYTES + 1)
    else:
        with Path(source).open("rb") as file:
            body = file.read(MOST_BYTES + 1)
    if len(body) > MOST_BYTES:
        raise ValueError("larger than a key set")
    return body


def _hang_up_later(line: socket.socket) -> None:
    """End a connection when its time is over: a socket's own time-out begins anew with every byte."""

    def hang_up() -> None:
        with suppress(OSError):  # ended long ago, as a rule
            socket.socket.shutdown(line, socket.SHUT_RDWR)  # below TLS, which would be polite

    timer = threading.Timer(FETCH_SECONDS, hang_up)
    timer.daemon = True
    timer.start()


class _Plain(HTTPConnection):
    def connect(self) -> None:
        super().connect()
        _hang_up_later(self.sock)


class _Safe(HTTPSConnection):
    def connect(self) -> None:
        super().connect()
        _hang_up_later(self.sock)


class _Lines(urllib.request.HTTPHandler, urllib.request.HTTPSHandler):
    def http_open(self, req: urllib.request.Request) -> HTTPResponse:
        return self.do_open(_Plain, req)

    def https_open(self, req: urllib.request.Request) -> HTTPResponse:
        return self.do_open(_Safe, req)


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: object) -> None:
        """Nobody but the operator says where the keys are: a redirect is an error."""


def _keys_in(body: bytes) -> dict[str | None, jwt.PyJWK]:
    """The keys for signatures in a key set. Raises one of _TROUBLES when there is none, or no key set."""
    keys = json.loads(body)["keys"]
    if not isinstance(keys, list) or len(keys) > MOST_KEYS:
        raise ValueError("not a key set")
    found = {}
    for key in keys:
        with suppress(*_TROUBLES):  # one that cannot be used spoils no other
            if _is_for_signatures(key):
                found[_kid_of(key.get("kid"))] = _key_of(key)
    if not found:
        raise ValueError("a key set without a key for signatures")
    return found


def _is_for_signatures(key: dict[str, Any]) -> bool:
    """Whether a key says nothing that speaks against it. A private key that is published is anybody's."""
    algorithm = _KINDS.get((key["kty"], key.get("crv")))
    return (
        algorithm is not None
        and key.get("alg", algorithm) == algorithm
        and key.get("use", "sig") == "sig"
        and "verify" in key.get("key_ops", ["verify"])
        and "d" not in key
    )


def _key_of(key: dict[str, Any]) -> jwt.PyJWK:
    made = jwt.PyJWK({name: key[name] for name in _PUBLIC if name in key}, _KINDS[key["kty"], key.get("crv")])
    if key["kty"] == "RSA" and made.key.key_size not in RSA_BITS:
        raise ValueError("a weak key")
    return made


def _kid_of(kid: object) -> str | None:
    """What may be a kid, or none at all. Raises PyJWTError for anything else."""
    if kid is None or (isinstance(kid, str) and 0 < len(kid) <= LONGEST_KID and kid.isascii() and kid.isprintable()):
        return kid
    raise jwt.InvalidTokenError("not a kid")


def _is_safe(address: str) -> bool:
    try:
        parts = urlsplit(address)
        host = parts.hostname
    except ValueError:
        return False
    return parts.scheme == "https" or (parts.scheme == "http" and host in _THIS_MACHINE)
