"""Reads the JSON in the bodies of requests: to a limit of bytes, and only valid JSON in UTF-8."""

from typing import Any

import orjson
from starlette.requests import Request

from service.http.errors import BodyTooLarge, InvalidBody
from service.http.live_visits import body_chunks


async def read_json(request: Request, max_bytes: int, fix: str) -> Any:  # noqa: ANN401  # what JSON may be
    """The JSON value in the body of a request, of at most `max_bytes`; `fix` tells the client what to send instead.

    Raises BodyTooLarge as soon as there are more bytes, and InvalidBody for anything that is not JSON: other encodings
    than UTF-8, and nesting that the parser refuses (deeper than 1,024), too.
    """
    body = bytearray()
    async for chunk in body_chunks(request):
        body += chunk
        if len(body) > max_bytes:
            raise BodyTooLarge(f"The body is larger than {max_bytes >> 10} KiB.", "Send less text.")
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise InvalidBody("is not JSON", fix) from error


async def read_object(request: Request, max_bytes: int, fix: str) -> dict[str, Any]:
    """The JSON object in the body of a request. Raises as `read_json` does, and InvalidBody for any other value."""
    value = await read_json(request, max_bytes, fix)
    if not isinstance(value, dict):
        raise InvalidBody("is not a JSON object", fix)
    return value
