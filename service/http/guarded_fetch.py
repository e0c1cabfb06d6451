"""HTTP GET with a limit on total time and size, because the server may be slow or hostile."""

import socket
import threading
import time
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Final
from urllib.parse import SplitResult, unquote, urlsplit
from urllib.request import getproxies, proxy_bypass

_HEADERS: Final = {"Accept": "application/json", "User-Agent": "traffic", "Connection": "close"}


class FetchError(Exception):
    """There was no complete response; the message is the reason."""


def fetch(url: str, seconds: float, max_bytes: int) -> bytes:
    """The body of a response with status 200, received within `seconds` and no larger than `max_bytes`.

    Redirects are not followed. https URLs are fetched through the proxy of the environment, http URLs directly. Raises
    FetchError.
    """
    deadline = time.monotonic() + seconds
    try:
        body = _read(urlsplit(url), deadline, max_bytes)
    except (OSError, HTTPException, ValueError) as error:
        if time.monotonic() < deadline:
            raise FetchError(f"{type(error).__name__}: {error}"[:200]) from error
    else:
        if len(body) > max_bytes:
            raise FetchError(f"the answer is larger than {max_bytes:,} bytes")
        if time.monotonic() < deadline:  # a response without Content-Length also ends when _closed_at cuts it
            return body
    raise FetchError(f"no complete answer within {seconds:g} s")


def _read(url: SplitResult, deadline: float, max_bytes: int) -> bytes:
    """The body, or its first `max_bytes` + 1 bytes. Raises FetchError, OSError, HTTPException or ValueError."""
    connection = _connection(url, deadline - time.monotonic())
    try:
        connection.connect()
        with _closed_at(deadline, connection.sock):
            connection.request("GET", (url.path or "/") + (f"?{url.query}" if url.query else ""), headers=_HEADERS)
            with connection.getresponse() as response:
                if response.status != 200:
                    raise FetchError(f"HTTP status {response.status}")
                return response.read(max_bytes + 1)
    finally:
        connection.close()


def _connection(url: SplitResult, timeout: float) -> HTTPConnection:
    host = url.hostname or ""
    if url.scheme == "http":
        return HTTPConnection(host, url.port or 80, timeout=timeout)
    proxy = "" if proxy_bypass(host) else getproxies().get("https", "")
    if not proxy:
        return HTTPSConnection(host, url.port or 443, timeout=timeout)
    via = urlsplit(proxy if "://" in proxy else f"//{proxy}")
    connection = HTTPSConnection(via.hostname or "", via.port or 443, timeout=timeout)
    user = unquote(f"{via.username}:{via.password or ''}") if via.username else ""
    headers = {"Proxy-Authorization": f"Basic {b64encode(user.encode()).decode()}"} if user else {}
    connection.set_tunnel(host, url.port or 443, headers)
    return connection


@contextmanager
def _closed_at(deadline: float, connected: socket.socket) -> Iterator[None]:
    """Shut the socket down at the deadline: the timeout of a socket restarts with every byte received."""

    def shut_down() -> None:
        with suppress(OSError):  # already closed
            socket.socket.shutdown(connected, socket.SHUT_RDWR)  # not SSLSocket.shutdown, which may block

    timer = threading.Timer(max(0, deadline - time.monotonic()), shut_down)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
