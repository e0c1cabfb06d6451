"""HTTP requests with a limit on total time and size, because the server may be slow or hostile."""

import asyncio
import socket
import threading
import time
from base64 import b64encode
from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Final
from urllib.parse import SplitResult, unquote, urlencode, urlsplit
from urllib.request import getproxies, proxy_bypass

MAX_IN_BACKGROUND: Final = 16
_slots: Final = threading.BoundedSemaphore(MAX_IN_BACKGROUND)
_HEADERS: Final = {"Accept": "application/json", "User-Agent": "traffic", "Connection": "close"}


class FetchError(Exception):
    """There was no complete response; the message is the reason, `status` the status if it is not 200."""

    def __init__(self, reason: str, status: int = 0) -> None:
        super().__init__(reason)
        self.status = status


def is_allowed_url(address: str) -> bool:
    """Whether an address may be fetched: https, or http on this machine."""
    try:
        parts = urlsplit(address)
        host = parts.hostname
    except ValueError:
        return False
    return parts.scheme == "https" or (parts.scheme == "http" and host in ("127.0.0.1", "::1", "localhost"))


def fetch(
    url: str,
    seconds: float,
    max_bytes: int,
    form: Mapping[str, str] | None = None,
    headers: Mapping[str, str] | None = None,
) -> bytes:
    """The body of a response with status 200, received within `seconds` and no larger than `max_bytes`.

    With a form, the request is a POST of its fields. Redirects are not followed. https URLs are fetched through the
    proxy of the environment, http URLs directly. Raises FetchError.
    """
    deadline = time.monotonic() + seconds
    try:
        body = _read(urlsplit(url), deadline, max_bytes, form, headers or {})
    except (OSError, HTTPException, ValueError) as error:
        if time.monotonic() < deadline:
            raise FetchError(f"{type(error).__name__}: {error}"[:200]) from error
    else:
        if len(body) > max_bytes:
            raise FetchError(f"the answer is larger than {max_bytes:,} bytes")
        if time.monotonic() < deadline:  # a response without Content-Length also ends when closed_at cuts it
            return body
    raise FetchError(f"no complete answer within {seconds:g} s")


async def fetch_in_background(
    url: str,
    seconds: float,
    max_bytes: int,
    form: Mapping[str, str] | None = None,
    headers: Mapping[str, str] | None = None,
) -> bytes:
    """Like `fetch`, without blocking the event loop or the end of the process. Raises FetchError.

    Refuses more than MAX_IN_BACKGROUND at a time, so that a slow server does not pile up threads.
    """
    slots = _slots
    if not slots.acquire(blocking=False):
        raise FetchError(f"{MAX_IN_BACKGROUND} requests are under way")
    body: Future[bytes] = Future()
    body.set_running_or_notify_cancel()  # otherwise a request that is cancelled could cancel it

    def work() -> None:
        try:
            outcome: bytes | FetchError = fetch(url, seconds, max_bytes, form, headers)
        except FetchError as error:
            outcome = error
        finally:
            slots.release()  # first, so that whoever gets the result may make the next request
        if isinstance(outcome, FetchError):
            body.set_exception(outcome)
        else:
            body.set_result(outcome)

    threading.Thread(target=work, name="fetch", daemon=True).start()
    try:
        return await asyncio.wait_for(asyncio.wrap_future(body), seconds + 1)  # looking up a host has no deadline
    except TimeoutError as error:
        raise FetchError(f"no complete answer within {seconds:g} s") from error


def _read(
    url: SplitResult, deadline: float, max_bytes: int, form: Mapping[str, str] | None, headers: Mapping[str, str]
) -> bytes:
    """The body, or its first `max_bytes` + 1 bytes. Raises FetchError, OSError, HTTPException or ValueError."""
    connection = _connection(url, deadline - time.monotonic())
    target = (url.path or "/") + (f"?{url.query}" if url.query else "")
    method, content, more = "GET", None, {}
    if form is not None:
        method, content, more = "POST", urlencode(form), {"Content-Type": "application/x-www-form-urlencoded"}
    try:
        connection.connect()
        with closed_at(deadline, connection.sock):
            connection.request(method, target, content, {**_HEADERS, **more, **headers})
            with connection.getresponse() as response:
                if response.status != 200:
                    raise FetchError(f"HTTP status {response.status}", response.status)
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
def closed_at(deadline: float, connected: socket.socket) -> Iterator[None]:
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
