"""One request and its response on a connection."""

from typing import Final

from uvicorn._types import ASGIReceiveEvent, ASGISendEvent
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, RequestResponseCycle

from service.core.http.errors import Problem

_CONTROLS: Final = bytes({*range(0x20), 0x7F} - {ord("\t")})
"""Bytes that no header may contain."""

Headers = list[tuple[bytes, bytes]]


class Exchange(RequestResponseCycle):
    """uvicorn's request-response cycle, but each response is a single write: a second write would take as long
    as reading an answer from the cache.

    A response has a single body; its start is held back until the body is sent. A response sent before the body of its
    request has arrived ends the connection.
    """

    error: Problem | None = None
    """The reason why the rest of the request's body is rejected; None if it is not."""
    _status = 0
    _headers: Headers

    async def receive(self) -> ASGIReceiveEvent:
        """Return the next ASGI event. Raises the Problem if the rest of the body is rejected."""
        event = await super().receive()
        if self.error and self.more_body:
            raise self.error
        return event

    async def send(self, message: ASGISendEvent) -> None:
        """Process an ASGI message from the application. Raises RuntimeError for a response that cannot be sent, such as
        a response with control characters in its headers or a wrong Content-Length.
        """
        if message["type"] == "http.response.start":
            self._status, self._headers = message["status"], self.default_headers + list(message["headers"])
            return
        is_ready = self._status and not self.response_complete
        if message["type"] != "http.response.body" or message.get("more_body") or not is_ready:
            raise RuntimeError("a response must be one http.response.start and one http.response.body.")
        if self.flow.write_paused and not self.disconnected:
            await self.flow.drain()
        self.disconnected = self.disconnected or self.transport.is_closing()  # uvicorn only notifies the last request
        if not self.disconnected:
            body, headers = message.get("body", b""), self._headers
            if self.scope["method"] == "HEAD" or self._status in (204, 304):  # these never have a body
                body = b""
            elif (b"content-length", b"%d" % len(body)) not in headers:
                raise RuntimeError("the Content-Length header is not the length of the body.")
            # A proxy could send another client's request next, which would be read as the rest of this body.
            self.keep_alive = self.keep_alive and not self.more_body and (b"connection", b"close") not in headers
            if not self.keep_alive and (b"connection", b"close") not in headers:
                headers.append((b"connection", b"close"))
            self.transport.write(encode_head(self._status, headers) + body)
            self.response_started = self.response_complete = True
            self.waiting_for_100_continue = False
            self.message_event.set()
            self.on_response()


def encode_head(status: int, headers: Headers) -> bytes:
    """Return the status line, the headers, and an empty line. Raises RuntimeError for a control character."""
    head = b"".join([STATUS_LINE[status], *[b"%b: %b\r\n" % header for header in headers], b"\r\n"])
    if len(head) - len(head.translate(None, _CONTROLS)) != 2 * (len(headers) + 2):  # CR and LF, which end each line
        raise RuntimeError("a header contains a control character.")
    return head
