"""Heads of responses: their bytes, and which headers cannot be sent."""

import pytest

from service.server.exchange import encode_head


def test_a_head_is_the_status_line_and_the_headers():
    headers = [(b"content-length", b"0"), (b"x-name", b"caf\xe9\tau lait")]
    expected = b"HTTP/1.1 204 No Content\r\ncontent-length: 0\r\nx-name: caf\xe9\tau lait\r\n\r\n"
    assert encode_head(204, headers) == expected
    assert encode_head(404, []) == b"HTTP/1.1 404 Not Found\r\n\r\n"


@pytest.mark.parametrize("control", [b"\r\n", b"\n", b"\r", b"\0", b"\x1b", b"\x7f"])
def test_a_control_character_in_a_header_is_never_sent(control):
    for header in ((b"location", b"/a" + control + b"set-cookie: a=b"), (b"x" + control, b"1")):
        with pytest.raises(RuntimeError, match="control character"):
            encode_head(303, [(b"content-length", b"0"), header])
