"""From bytes and problems to HTTP responses, all of them JSON."""

import orjson
from starlette.responses import Response

from service.http.errors import Problem


def json_response(body: bytes, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """A response of bytes that are JSON already."""
    return Response(body, status, headers, media_type="application/json")


def render(problem: Problem) -> Response:
    """The one shape of every error."""
    return json_response(orjson.dumps(problem.body), problem.status, problem.headers)
