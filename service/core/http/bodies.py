"""Parsing of JSON request bodies, which must be in UTF-8, of a declared type, and no larger than a maximum size."""

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final, TypeVar

import msgspec
import orjson
from starlette.requests import Request

from service.core.http.errors import BodyTooLarge, InvalidBody
from service.core.http.received_bodies import ReceivedBodies

Body = TypeVar("Body", bound=msgspec.Struct)
_WHERE: Final = re.compile(r" - at `\$\.?(.*)`$")


@asynccontextmanager
async def received_bytes(request: Request, max_bytes: int) -> AsyncIterator[bytes]:
    """Yield the body of a request, which stays in memory until the with block ends.

    Raises BodyTooLarge as soon as the body exceeds `max_bytes`, InvalidBody if it is cut off, and Overloaded if it is
    evicted.
    """
    bodies: ReceivedBodies = request.scope["bodies"]
    too_large = BodyTooLarge(f"The body is larger than {max_bytes >> 10} KiB.", "Send less text.")
    async with bodies.receive(request, max_bytes, too_large) as body:
        yield body


@asynccontextmanager
async def received_json(request: Request, max_bytes: int, fix: str) -> AsyncIterator[Any]:
    """Yield the JSON value in a request body of at most `max_bytes`; `fix` tells the client what to send instead.

    Raises the exceptions of `received_bytes`, and InvalidBody for anything that is not JSON, including encodings other
    than UTF-8 and nesting that the parser rejects (deeper than 1,024).
    """
    async with received_bytes(request, max_bytes) as body:
        try:
            value = orjson.loads(body)
        except orjson.JSONDecodeError as error:
            raise InvalidBody("The body is not JSON.", fix) from error
        yield value


@asynccontextmanager
async def received_object(request: Request, kind: type[Body], max_bytes: int) -> AsyncIterator[Body]:
    """Yield the JSON object in a request body. Raises the exceptions of `received_json`, and InvalidBody if the object
    is not a valid `kind`.
    """
    fields = msgspec.structs.fields(kind)
    names = ", ".join(field.encode_name + ("" if field.required else " (optional)") for field in fields)
    fix = f"Send a JSON object with {names}."
    async with received_bytes(request, max_bytes) as body:
        try:
            body.decode()
            # undeclared members are not parsed into objects: 2 MiB of brackets would stop the event loop for 0.7 s
            msgspec.json.decode(body, type=msgspec.Raw)
            value = msgspec.json.decode(body, type=kind)
        except msgspec.ValidationError as error:
            # msgspec's message, as a sentence that begins with the field
            where = _WHERE.search(str(error))
            what = _WHERE.sub("", str(error))
            subject = f"`{where[1]}`" if where and where[1] else "The body"
            raise InvalidBody(f"{subject} is invalid: {what[:1].lower()}{what[1:]}.", fix) from error
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise InvalidBody("The body is not JSON.", fix) from error
        yield value


def reject_body(request: Request) -> None:
    """Raise InvalidBody if a GET or DELETE request has a body, which would have no effect."""
    for name, value in request.scope["headers"]:
        if name == b"transfer-encoding" or (name == b"content-length" and value != b"0"):
            raise InvalidBody("This endpoint takes no body.", "Send parameters in the query string.")
