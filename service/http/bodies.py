"""Reads the JSON in the bodies of requests: to a limit of bytes, only valid JSON in UTF-8, and only as declared."""

import re
from typing import Any, Final, TypeVar

import msgspec
import orjson
from starlette.requests import Request

from service.http.errors import BodyTooLarge, InvalidBody
from service.http.live_visits import body_chunks

Body = TypeVar("Body", bound=msgspec.Struct)
_WHERE: Final = re.compile(r" - at `\$\.?(.*)`$")


async def read_bytes(request: Request, max_bytes: int) -> bytes:
    """The body of a request. Raises BodyTooLarge as soon as it is larger, and InvalidBody if it is cut off."""
    body = bytearray()
    async for chunk in body_chunks(request):
        body += chunk
        if len(body) > max_bytes:
            raise BodyTooLarge(f"The body is larger than {max_bytes >> 10} KiB.", "Send less text.")
    return bytes(body)


async def read_json(request: Request, max_bytes: int, fix: str) -> Any:  # noqa: ANN401  # what JSON may be
    """The JSON value in the body of a request, of at most `max_bytes`; `fix` tells the client what to send instead.

    Raises as `read_bytes` does, and InvalidBody for anything that is not JSON: other encodings than UTF-8, and nesting
    that the parser refuses (deeper than 1,024), too.
    """
    body = await read_bytes(request, max_bytes)
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise InvalidBody("The body is not JSON.", fix) from error


async def read_body(request: Request, kind: type[Body], max_bytes: int) -> Body:
    """The JSON object in the body of a request. Raises as `read_json` does, and InvalidBody for other objects."""
    fields = msgspec.structs.fields(kind)
    names = ", ".join(field.encode_name + ("" if field.required else " (optional)") for field in fields)
    fix = f"Send a JSON object with {names}."
    value = await read_json(request, max_bytes, fix)
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        # what msgspec says, as a sentence that begins with the field
        where = _WHERE.search(str(error))
        what = _WHERE.sub("", str(error))
        subject = f"`{where[1]}`" if where and where[1] else "The body"
        raise InvalidBody(f"{subject} is invalid: {what[:1].lower()}{what[1:]}.", fix) from error


def reject_body(request: Request) -> None:
    """Raise InvalidBody if a GET request has a body, which would have no effect."""
    for name, value in request.scope["headers"]:
        if name == b"transfer-encoding" or (name == b"content-length" and value != b"0"):
            raise InvalidBody("This endpoint takes no body.", "Send parameters in the query string.")
