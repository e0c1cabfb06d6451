"""One attempt to deliver a message by HTTP, with a deadline, to an address that was checked."""

import contextlib
import socket
import ssl
import time
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from functools import cached_property
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Final, NamedTuple
from urllib.parse import SplitResult, urlsplit

from service.hooks.addresses import Address, Resolver, is_in, is_public, resolve, system_resolver
from service.http.guarded_fetch import closed_at
from service.settings import Network

DEADLINE_SECONDS: Final = 15.0
"""From before the host is resolved to the last header of the response. Its body may take as long as is left."""
MAX_BODY_BYTES: Final = 4_096
"""Of the response's body; read so that the receiver is not cut off, and thrown away."""
_USER_AGENT: Final = "Traffic-Analytics/1"


class Attempt(NamedTuple):
    """What came of one attempt."""

    status_code: int | None  # of the response; None if there was none
    error: str | None  # one of ERRORS if there was no response
    ms: int  # how long it took
    retry_after: timedelta | None = None  # how long the receiver wants to be left alone

    @property
    def is_success(self) -> bool:
        """Whether the receiver has taken the message. Only the status counts, not what the body says."""
        return self.status_code is not None and 200 <= self.status_code < 300


ERRORS: Final = {
    "name_not_resolved": "the host has no address, or its name servers did not answer",
    "address_not_allowed": "one of the host's addresses is not public, and not in `TRAFFIC_HOOK_NETWORKS`",
    "connection_failed": "nobody accepted the connection, or it was closed before the response",
    "tls_failed": "no TLS, or a certificate that is invalid, expired or another host's",
    "timed_out": "no complete response headers within 15 seconds",
    "invalid_response": "what was received is not an HTTP response",
}
"""Why an attempt had no response."""


class _AttemptFailed(Exception):
    """There is no response; the message is one of ERRORS."""


class HookClient:
    """Sends messages. Safe to use from several threads.

    The connection is made to an address that was checked in the same attempt, not to a name that could mean another
    address a moment later. Redirects are not followed, proxies of the environment not used, connections not kept.
    """

    def __init__(
        self,
        networks: tuple[Network, ...] = (),
        resolver: Resolver = system_resolver,
        seconds: float = DEADLINE_SECONDS,
    ) -> None:
        """`networks` may be reached in addition to public addresses, and only they by plain http."""
        self._networks = networks
        self._resolver = resolver
        self._seconds = seconds

    def post(self, url: str, headers: Mapping[str, str], body: bytes, now: datetime) -> Attempt:
        """Send a message to a URL that urls.py has checked. Dates in Retry-After are compared to `now`."""
        started_at = time.monotonic()
        deadline = started_at + self._seconds
        status_code, error, retry_after = None, None, None
        try:
            status_code, text = self._exchange(urlsplit(url), headers, body, deadline)
            retry_after = parse_retry_after(text, now)
        except (_AttemptFailed, OSError, HTTPException, ValueError) as failure:
            error = "timed_out" if time.monotonic() >= deadline else _error_of(failure)
        return Attempt(status_code, error, round(1000 * (time.monotonic() - started_at)), retry_after)

    def _exchange(
        self, url: SplitResult, headers: Mapping[str, str], body: bytes, deadline: float
    ) -> tuple[int, str | None]:
        """The status and the header Retry-After of the response."""
        host, is_tls = url.hostname or "", url.scheme == "https"
        port = url.port or (443 if is_tls else 80)
        connection = HTTPSConnection(host, port, context=self._tls) if is_tls else HTTPConnection(host, port)
        with self._connected(self._addresses(host, port, is_tls, deadline), port, deadline) as plain:
            plain.settimeout(_seconds_until(deadline))
            connection.sock = self._tls.wrap_socket(plain, server_hostname=host) if is_tls else plain
            with contextlib.closing(connection), closed_at(deadline, connection.sock):
                target = (url.path or "/") + (f"?{url.query}" if url.query else "")
                fixed = {"Content-Type": "application/json", "User-Agent": _USER_AGENT, "Connection": "close"}
                connection.request("POST", target, body, {**fixed, **headers})
                with connection.getresponse() as response:
                    answer = response.status, response.getheader("Retry-After")
                    if time.monotonic() >= deadline:  # closed_at has cut: headers that end there look complete
                        raise TimeoutError
                    with contextlib.suppress(OSError, HTTPException, ValueError):
                        response.read(MAX_BODY_BYTES)
                    return answer

    @cached_property
    def _tls(self) -> ssl.SSLContext:
        """Verifies certificates and host names by the authorities of the system, or of SSL_CERT_FILE."""
        return ssl.create_default_context()

    def _addresses(self, host: str, port: int, is_tls: bool, deadline: float) -> list[Address]:
        """The addresses of a host, all of which may be connected to."""
        try:
            addresses = resolve(self._resolver, host, port, deadline - time.monotonic())
        except (OSError, ValueError) as error:
            raise _AttemptFailed("name_not_resolved") from error
        for address in addresses:
            if not is_in(address, self._networks) and not (is_tls and is_public(address)):
                raise _AttemptFailed("address_not_allowed")
        return addresses

    @contextlib.contextmanager
    def _connected(self, addresses: list[Address], port: int, deadline: float) -> Iterator[socket.socket]:
        """A connection to the first address that accepts one. Each has an equal share of the time that is left."""
        for number, address in enumerate(addresses):
            seconds = _seconds_until(deadline) / (len(addresses) - number)
            try:
                connected = socket.create_connection((str(address), port), timeout=seconds)
            except OSError:
                continue
            with connected:
                yield connected
            return
        raise _AttemptFailed("connection_failed")


def _error_of(failure: Exception) -> str:
    """Which of ERRORS an exception is, except for timed_out."""
    if isinstance(failure, _AttemptFailed):
        return str(failure)
    if isinstance(failure, ssl.SSLError):
        return "tls_failed"
    return "connection_failed" if isinstance(failure, OSError) else "invalid_response"


def parse_retry_after(text: str | None, now: datetime) -> timedelta | None:
    """How long a receiver wants to be left alone, by its header Retry-After; None if there is none or it is invalid."""
    text = (text or "").strip()
    if text.isascii() and text.isdigit():
        return timedelta(seconds=int(text[:9]))  # nine digits are thirty years
    try:
        moment = parsedate_to_datetime(text)
        return max(timedelta(0), moment.replace(tzinfo=moment.tzinfo or UTC) - now)
    except (ValueError, OverflowError):
        return None


def _seconds_until(deadline: float) -> float:
    """Seconds for a timeout, of which 0 would mean something else."""
    return max(deadline - time.monotonic(), 0.001)
