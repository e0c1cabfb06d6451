"""Requests and responses on sockets. Every loop over recv() checks for the end of the connection, because the loop
would otherwise never end.
"""

import itertools
import re
import socket
from socket import MSG_PEEK
from typing import NamedTuple


class Answer(NamedTuple):
    status: int
    headers: dict[bytes, bytes]  # by names in lower case
    body: bytes


def request(path, *lines, method=b"GET", version=b"1.1", host=(b"Host: x",)):
    """Return the bytes of a request, up to its body."""
    return b"\r\n".join((b"%s %s HTTP/%s" % (method, path, version), *host, *lines, b"", b""))


class Client:
    """Sends requests to a server with a key; by default, each request has its own source, as through a proxy."""

    sources = itertools.count(1)

    def __init__(self, port, key):
        self.port = port
        self.authorization = f"Bearer {key}"

    def connected(self):
        return socket.create_connection(("127.0.0.1", self.port), timeout=60)

    def request(self, path, *lines, source=None, **how):
        number = next(self.sources) if source is None else source
        forwarded = b"X-Forwarded-For: 10.%d.%d.%d" % (number >> 16, number >> 8 & 255, number & 255)
        if not any(line.startswith(b"Authorization") for line in lines):
            lines = (b"Authorization: " + self.authorization.encode(), *lines)
        return request(path, forwarded, *lines, **how)


def read_until(connection, is_whole, beginning=b""):
    """Read until `is_whole` returns true for `beginning` and everything read since. Raises ConnectionError if the
    connection ends first.
    """
    content = beginning
    while not is_whole(content):
        piece = connection.recv(65_536)
        if not piece:
            raise ConnectionError(f"the connection was closed after {content!r}")
        content += piece
    return content


def answer_on(connection, has_body=True):
    """Read the next response other than 100, and no byte of the response after it. Raises ConnectionError if the
    response is incomplete.
    """
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        end = (head + (seen := connection.recv(65_536, MSG_PEEK))).find(b"\r\n\r\n")
        if not seen:
            raise ConnectionError(f"the connection was closed after {head!r}")
        head += connection.recv(len(seen) if end < 0 else end + 4 - len(head))
    status, headers = _head_of(head[:-4])
    if status == 100:
        return answer_on(connection, has_body)
    length, body = int(headers[b"content-length"]) if has_body else 0, bytearray()
    while len(body) < length:
        body += (piece := connection.recv(length - len(body)))
        if not piece:
            raise ConnectionError(f"the connection was closed after {len(body)} bytes of a body")
    return Answer(status, headers, bytes(body))


def rest_on(connection):
    """Read everything until the other side closes."""
    return b"".join(iter(lambda: connection.recv(1 << 20), b""))


def answers_in(rest):
    """Return all responses in some bytes."""
    found = []
    while rest:
        head, _, rest = rest.partition(b"\r\n\r\n")
        status, headers = _head_of(head)
        length = int(headers.get(b"content-length", 0))
        found.append(Answer(status, headers, rest[:length]))
        rest = rest[length:]
    return found


def _head_of(head):
    first, *lines = head.split(b"\r\n")
    pairs = [(name.lower(), value) for name, value in (line.split(b": ", 1) for line in lines)]
    headers = dict(pairs)
    assert len(headers) == len(pairs)
    return int(re.fullmatch(rb"HTTP/1.1 (\d+) .*", first)[1]), headers
