"""JSON responses for answers and for problems."""

from collections.abc import Mapping
from functools import lru_cache

import orjson
from starlette.responses import Response

from service.core.http.errors import Problem


class JsonResponse(Response):
    """A response with a body already encoded as JSON."""

    def __init__(self, body: bytes, status: int = 200, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(body, status, headers)

    def init_headers(self, headers: Mapping[str, str] | None = None) -> None:
        """Set the headers: those given, then Content-Length and Content-Type."""
        self.raw_headers = [
            *(_encode_header(*header) for header in (headers or {}).items()),
            (b"content-length", b"%d" % len(self.body)),
            (b"content-type", b"application/json"),
        ]


@lru_cache(1_024)
def _encode_header(name: str, value: str) -> tuple[bytes, bytes]:
    return name.lower().encode("latin-1"), value.encode("latin-1")


def render(problem: Problem) -> JsonResponse:
    """Return the response for a problem; all errors have this form."""
    return JsonResponse(orjson.dumps(problem.body), problem.status, problem.headers)
