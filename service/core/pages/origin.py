"""The pages' origin as a browser sees it, and the check that a request comes from these pages (CSRF)."""

from starlette.requests import Request

from service.core.http.errors import Forbidden
from service.core.http.rate_limit import SourceResolver
from service.core.settings import Settings


class OriginChecker:
    """A checker that derives the pages' origin from requests, and rejects writes caused by other sites."""

    def __init__(self, settings: Settings, sources: SourceResolver) -> None:
        self._public_url = settings.public_url
        self._sources = sources

    def is_https(self, request: Request) -> bool:
        """Return whether the browser uses https, according to TRAFFIC_PUBLIC_URL or a trusted proxy's
        X-Forwarded-Proto.
        """
        if self._public_url:
            return self._public_url.startswith("https://")
        peer, protocols = request.client.host if request.client else "", request.headers.get("x-forwarded-proto", "")
        return self._sources.is_trusted(peer) and protocols.split(",")[0].strip() == "https"

    def origin(self, request: Request) -> str:
        """Return the origin at which the browser sees the pages, such as https://traffic.example."""
        scheme = "https" if self.is_https(request) else "http"
        return self._public_url or f"{scheme}://{request.headers.get('host', '')}"

    def is_exposed(self, request: Request) -> bool:
        """Return whether the cookie and the pages cross a network unencrypted: by plain http, to another machine."""
        source = self._sources.of(request.scope)  # ::1 belongs to the source ::/64 of the rate limiter
        return not self.is_https(request) and source != "::/64" and not source.startswith("127.")

    def check_same_origin(self, request: Request) -> None:
        """Raise Forbidden unless a request that may have effects was made by one of our own pages.

        Browsers send Sec-Fetch-Site; without that header, Origin must be ours.
        """
        site = request.headers.get("sec-fetch-site")
        is_ours = site == "same-origin" if site else request.headers.get("origin") == self.origin(request)
        if not is_ours:
            raise Forbidden("This request does not come from a page of this server.", "Open the page and try again.")
