"""CORS, which lets pages from other sites call the API in a browser. Preflights are also answered in JSON."""

from typing import Final

from starlette.datastructures import Headers
from starlette.middleware.cors import CORSMiddleware
from starlette.responses import Response
from starlette.types import ASGIApp

from service.core.http.errors import CrossOriginRefused
from service.core.http.rate_limit import RATE_LIMIT_HEADERS
from service.core.http.responses import JsonResponse, render

METHODS: Final = ("GET", "POST", "PUT", "PATCH", "DELETE")
REQUEST_HEADERS: Final = ("Authorization", "Content-Type", "If-Match")
_OF_THE_BODY: Final = ("content-length", "content-type")


class JsonCorsMiddleware(CORSMiddleware):
    """Starlette's CORS middleware for pages from `origins`, but with preflights answered in JSON instead of text."""

    def __init__(self, app: ASGIApp, origins: tuple[str, ...]) -> None:
        exposed = ["ETag", *(name.decode() for name in RATE_LIMIT_HEADERS)]
        super().__init__(app, origins, METHODS, REQUEST_HEADERS, expose_headers=exposed)

    def preflight_response(self, request_headers: Headers) -> Response:
        """Return the response to a preflight: 200, or 400 if the page may not send the request."""
        decided = super().preflight_response(request_headers)
        headers = {name: value for name, value in decided.headers.items() if name not in _OF_THE_BODY}
        if decided.status_code == 200:
            return JsonResponse(b'{"status":"ok"}', headers=headers)
        allowed = f"{', '.join(METHODS)} with the headers {', '.join(REQUEST_HEADERS)}"
        fix = f"Use {allowed}, from an origin that the operator lists in TRAFFIC_CORS_ORIGINS."
        return render(CrossOriginRefused(message=fix, headers=headers))
