"""From rows and problems to bytes and responses; the only writer of JSON."""

import orjson
from starlette.responses import Response

from queries import Answer
from service.errors import Problem

_OPTIONS = orjson.OPT_NAIVE_UTC | orjson.OPT_UTC_Z | orjson.OPT_OMIT_MICROSECONDS


def encode(answer: Answer) -> bytes:
    """An answer as JSON; times are RFC 3339 in UTC with Z and whole seconds."""
    return orjson.dumps(answer, option=_OPTIONS)


def json_response(body: bytes, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """A response of bytes that are JSON already."""
    return Response(body, status, headers, media_type="application/json")


def render(problem: Problem) -> Response:
    """The one shape of every error."""
    return json_response(orjson.dumps(problem.body), problem.status, problem.headers)
