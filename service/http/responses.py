"""From bytes and problems to HTTP responses, all of them JSON."""

from collections.abc import Mapping

import orjson
from starlette.responses import Response

from service.http.errors import Problem


class JsonResponse(Response):
    """A response of bytes that are JSON already."""

    def __init__(self, body: bytes, status: int = 200, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(body, status, headers)

    def init_headers(self, headers: Mapping[str, str] | None = None) -> None:
        """Encode the headers: those given, then length and type of the body."""
        self.raw_headers = [
            *((name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in (headers or {}).items()),
            (b"content-length", b"%d" % len(self.body)),
            (b"content-type", b"application/json"),
        ]


def render(problem: Problem) -> JsonResponse:
    """The one shape of every error."""
    return JsonResponse(orjson.dumps(problem.body), problem.status, problem.headers)
