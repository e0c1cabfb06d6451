"""Parsing of submitted forms."""

from typing import Final
from urllib.parse import parse_qsl

from starlette.requests import Request

from service.core.http.bodies import received_bytes
from service.core.http.errors import Forbidden, InvalidBody

MAX_FORM_BYTES: Final = 16_384


async def form_fields(request: Request, max_bytes: int = MAX_FORM_BYTES) -> dict[str, str]:
    """Return the fields of a submitted form. Raises InvalidBody, BodyTooLarge or Overloaded."""
    async with received_bytes(request, max_bytes) as body:
        try:
            return dict(parse_qsl(body.decode("utf-8"), keep_blank_values=True, strict_parsing=bool(body)))
        except ValueError as error:
            raise InvalidBody("The body is not a form.", "Use the form on the page.") from error


async def editors_form(request: Request, max_bytes: int = MAX_FORM_BYTES) -> dict[str, str]:
    """Return the fields of a form to create or change a job, like `form_fields`. Also raises Forbidden for viewers."""
    if not request.scope["session"].caller.may_write:
        raise Forbidden("Viewers cannot change jobs.", "Ask an editor to do it.")
    return await form_fields(request, max_bytes)
