"""HTTP requests with size limits, and one deadline for name lookup, connection, TLS, headers and body."""

import asyncio
import socket
from base64 import b64encode
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Final, NamedTuple
from urllib.parse import SplitResult, unquote, urlencode, urljoin, urlsplit
from urllib.request import getproxies, proxy_bypass

import h11

from service.core.setting_values import Network, is_allowed_url
from service.outgoing.addresses import Address, is_in, is_public
from service.outgoing.connection import OutgoingError, connect, tls_context

MAX_HEAD_BYTES: Final = 64 << 10
"""Maximum size of the status line and headers of a response, including all 1xx responses before it."""
MAX_REDIRECTS: Final = 5
_CHUNK: Final = 64 << 10
_HEADERS: Final = {"User-Agent": "Traffic-Analytics/1", "Accept-Encoding": "identity", "Connection": "close"}
_Receive = Callable[[int], Awaitable[bytes]]


class Response(NamedTuple):
    """A response. Header names are in lower case; the last of several headers with the same name wins."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class BadStatus(OutgoingError):
    """A response with a status other than 200."""

    def __init__(self, status: int) -> None:
        super().__init__("invalid_response", f"HTTP status {status}")
        self.status = status


async def fetch(
    url: str,
    seconds: float,
    max_bytes: int,
    form: Mapping[str, str] | None = None,
    headers: Mapping[str, str] | None = None,
) -> bytes:
    """Return the body of a 200 response from an operator's own server, on any network.

    With a form, its fields are sent in a POST request. https URLs are fetched through the environment's proxy, if
    any. Raises OutgoingError; for a status other than 200, its subclass BadStatus.
    """
    sent = {"Accept": "application/json", **(headers or {})}
    if form is not None:
        sent["Content-Type"] = "application/x-www-form-urlencoded"
    method, body = ("GET", b"") if form is None else ("POST", urlencode(form).encode())
    return _body_of(await request(method, url, seconds=seconds, max_bytes=max_bytes, body=body, headers=sent))


async def download(url: str, seconds: float, max_bytes: int) -> bytes:
    """Return the body of a 200 response, after up to MAX_REDIRECTS redirects to allowed URLs. Raises OutgoingError."""
    try:
        async with asyncio.timeout(seconds):
            for _ in range(MAX_REDIRECTS + 1):
                response = await request("GET", url, seconds=seconds, max_bytes=max_bytes)
                if response.status not in {301, 302, 303, 307, 308} or "location" not in response.headers:
                    break
                url = urljoin(url, response.headers["location"])
                if not is_allowed_url(url):
                    raise OutgoingError("address_not_allowed", f"a redirect to {url}, which is not an https address")
    except TimeoutError as error:
        raise OutgoingError("timed_out", f"no complete answer within {seconds:g} s") from error
    except ValueError as error:  # not a URL
        raise OutgoingError("invalid_response", error) from error
    return _body_of(response)


async def request(
    method: str,
    url: str,
    *,
    seconds: float,
    max_bytes: int,
    body: bytes = b"",
    headers: Mapping[str, str] | None = None,
    networks: Sequence[Network] | None = None,
) -> Response:
    """Send one request on a new connection, without following redirects.

    A response body of more than `max_bytes` is an error; if `max_bytes` is 0, the connection is closed after the
    response's headers. With `networks`, only addresses in these networks and, over https, public addresses may be
    reached; without `networks`, any address may be reached. Raises OutgoingError.
    """
    deadline = asyncio.get_running_loop().time() + seconds
    try:
        parts = urlsplit(url)
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            raise ValueError(f"{url} is not an http or https URL")
        target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        length = {"Content-Length": str(len(body))} if body else {}
        named = {"Host": parts.netloc.rpartition("@")[2], **_HEADERS, **length, **(headers or {})}
        connection = h11.Connection(h11.CLIENT, MAX_HEAD_BYTES)
        events = h11.Request(method=method, target=target, headers=[*named.items()]), h11.Data(body), h11.EndOfMessage()
        message = b"".join(connection.send(event) or b"" for event in events)
        async with asyncio.timeout_at(deadline):
            reader, writer = await _connect(parts, deadline, networks)
            try:
                writer.write(message)
                return await _receive_response(connection, reader.read, max_bytes)
            finally:
                writer.transport.abort()
    except TimeoutError as error:
        raise OutgoingError("timed_out", f"no complete answer within {seconds:g} s") from error
    except (ValueError, h11.ProtocolError) as error:  # ValueError: an invalid URL
        raise OutgoingError("invalid_response", error) from error
    except OSError as error:
        raise OutgoingError("connection_failed", error) from error


def _body_of(response: Response) -> bytes:
    """Return the body of a response. Raises BadStatus for a status other than 200."""
    if response.status != 200:
        raise BadStatus(response.status)
    return response.body


async def _connect(
    url: SplitResult, deadline: float, networks: Sequence[Network] | None
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Connect to the host of a URL, with TLS for https. Raises OutgoingError, OSError, ValueError or ProtocolError."""
    host, is_tls = url.hostname or "", url.scheme == "https"
    port = url.port or (443 if is_tls else 80)

    def is_allowed(address: Address) -> bool:
        return networks is None or is_in(address, networks) or (is_tls and is_public(address))

    # the environment's proxy is used only for the operator's own https URLs
    address = getproxies().get("https", "") if is_tls and networks is None and not proxy_bypass(host) else ""
    proxy = urlsplit(address if "://" in address else f"//{address}") if address else None
    via = (proxy.hostname or "", proxy.port or 443) if proxy else (host, port)
    connected = await connect(*via, deadline, is_allowed)
    try:
        if proxy:
            await _open_tunnel(connected, proxy, f"{host}:{port}")
        if not is_tls:
            return await asyncio.open_connection(sock=connected)
        try:
            return await asyncio.open_connection(sock=connected, ssl=await tls_context(), server_hostname=host)
        except OSError as error:  # also ssl.SSLError
            raise OutgoingError("tls_failed", error) from error
    except BaseException:
        connected.close()
        raise


async def _open_tunnel(connected: socket.socket, proxy: SplitResult, target: str) -> None:
    """Ask a proxy to connect to the target, a host and port. Raises OutgoingError, OSError or ProtocolError."""
    headers = {"Host": target}
    if proxy.username:
        user = unquote(f"{proxy.username}:{proxy.password or ''}")
        headers["Proxy-Authorization"] = f"Basic {b64encode(user.encode()).decode()}"
    loop, connection = asyncio.get_running_loop(), h11.Connection(h11.CLIENT, MAX_HEAD_BYTES)
    message = connection.send(h11.Request(method="CONNECT", target=target, headers=[*headers.items()]))
    await loop.sock_sendall(connected, message or b"")
    connection.send(h11.EndOfMessage())
    response = await _receive_response(connection, partial(loop.sock_recv, connected), 0)
    if not 200 <= response.status < 300:
        raise OutgoingError("connection_failed", f"the proxy answered with HTTP status {response.status}")


async def _receive_response(connection: h11.Connection, receive: _Receive, max_bytes: int) -> Response:
    """Read the response, with its body unless `max_bytes` is 0. Raises OutgoingError, OSError or ProtocolError."""
    first = await receive(_CHUNK)
    if not first:
        raise OutgoingError("connection_failed", "the connection was closed without an answer")
    connection.receive_data(first)
    response, body, head_bytes = None, bytearray(), len(first)
    while True:
        event = connection.next_event()
        if event is h11.NEED_DATA:
            if not response and head_bytes > MAX_HEAD_BYTES:
                raise OutgoingError("invalid_response", f"more than {MAX_HEAD_BYTES:,} bytes before the final status")
            received = await receive(_CHUNK)
            head_bytes += len(received)
            connection.receive_data(received)
        elif isinstance(event, h11.Response):
            response = event
        elif isinstance(event, h11.Data):
            body += event.data
        if response and (not max_bytes or isinstance(event, h11.EndOfMessage)):
            headers = {name.decode(): value.decode("latin-1") for name, value in response.headers}
            return Response(response.status_code, headers, bytes(body))
        if len(body) > max_bytes:
            raise OutgoingError("invalid_response", f"the answer is larger than {max_bytes:,} bytes")
