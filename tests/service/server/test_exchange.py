"""Responses: the bytes that are sent, and responses that must not be sent."""

import asyncio
import logging
import socket
from contextlib import nullcontext

import pytest
from uvicorn.protocols.http.flow_control import FlowControl

from service.server.exchange import Exchange, encode_head

START = {"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]}
BODY = {"type": "http.response.body", "body": b"ok"}
WHOLE = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"


async def exchanges(protocol, method="GET", count=1):
    """Return a connection's flow control, the client's end of it, and exchanges whose requests have been received."""
    ours, theirs = socket.socketpair()
    transport, _ = await asyncio.get_running_loop().create_connection(protocol, sock=ours)
    flow, log = FlowControl(transport), logging.getLogger(__name__)
    made = [
        Exchange(
            {"method": method}, transport, flow, log, log, access_log=False, default_headers=[],
            message_event=asyncio.Event(), expect_100_continue=False, keep_alive=True, on_response=lambda: None,
        )
        for _ in range(count)
    ]  # fmt: skip
    for exchange in made:
        exchange.more_body = False
    return flow, theirs, *made


EMPTY = {**START, "headers": []}
HEAD_ONLY = WHOLE.removesuffix(b"ok")


@pytest.mark.parametrize(
    ("messages", "method", "received", "is_refused"),
    [([START, BODY], "GET", WHOLE, False), ([START, BODY], "HEAD", HEAD_ONLY, False),
     ([START, BODY, BODY], "GET", WHOLE, True),  # a response is sent once
     ([{**EMPTY, "status": 204}, BODY], "GET", b"HTTP/1.1 204 No Content\r\n\r\n", False),
     ([{**EMPTY, "status": 304}, BODY], "GET", b"HTTP/1.1 304 Not Modified\r\n\r\n", False),
     ([BODY], "GET", b"", True), ([START, {**BODY, "more_body": True}], "GET", b"", True),
     ([START, START, {"type": "other"}], "GET", b"", True),
     *(([head, {**BODY, "body": body}], "GET", b"", True)  # with a length other than the one declared
       for head, body in ((EMPTY, b"ok"), (START, b"o"), (START, b""), (START, b"ok!")))],
)  # fmt: skip
async def test_a_response_has_one_head_and_a_body_as_long_as_declared(messages, method, received, is_refused):
    _, theirs, exchange = await exchanges(asyncio.Protocol, method)
    with pytest.raises(RuntimeError) if is_refused else nullcontext():
        for message in messages:
            await exchange.send(message)
    exchange.transport.close()
    with theirs:
        assert await asyncio.to_thread(theirs.makefile("rb").read) == received


async def test_nothing_more_is_sent_to_a_disconnected_client():
    class Client(asyncio.Protocol):
        def pause_writing(self):
            flow.pause_writing()

        def connection_lost(self, _):
            flow.resume_writing()

    flow, theirs, first, second = await exchanges(Client, count=2)
    whole = {**BODY, "body": b"a" * (1 << 22)}
    start = {**START, "headers": [(b"content-length", b"%d" % (1 << 22))]}
    for message in (start, whole):
        await first.send(message)
    assert flow.write_paused
    await second.send(start)
    waiting = asyncio.create_task(second.send(whole))
    await asyncio.sleep(0)
    theirs.close()
    await waiting
    assert (first.response_complete, second.response_complete, second.disconnected) == (True, False, True)


def test_control_characters_in_a_response_head_are_rejected():
    headers = [(b"content-length", b"0"), (b"x-name", b"caf\xe9\tau lait")]
    expected = b"HTTP/1.1 204 No Content\r\ncontent-length: 0\r\nx-name: caf\xe9\tau lait\r\n\r\n"
    assert encode_head(204, headers) == expected
    assert encode_head(404, []) == b"HTTP/1.1 404 Not Found\r\n\r\n"
    for control in (b"\r\n", b"\n", b"\r", b"\0", b"\x1b", b"\x7f"):
        for header in ((b"location", b"/a" + control + b"set-cookie: a=b"), (b"x" + control, b"1")):
            with pytest.raises(RuntimeError, match="control character"):
                encode_head(303, [(b"content-length", b"0"), header])
