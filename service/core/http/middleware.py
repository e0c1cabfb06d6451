"""The outermost middleware: rate limit, request id, security headers, log and metrics for every request."""

import itertools
import secrets
import time
from collections.abc import Callable
from typing import Final

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.core.http.errors import InternalError, Problem
from service.core.http.rate_limit import RateLimitDecision, RateLimiter
from service.core.http.received_bodies import ReceivedBodies
from service.core.http.responses import render
from service.core.logs import Log, Outcome, error_fields
from service.core.metrics import Metrics

_METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
_SECURITY: Final = (
    (b"x-content-type-options", b"nosniff"),
    (b"cache-control", b"private, no-store"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
    (b"referrer-policy", b"no-referrer"),
)
"""Security headers of every response."""
_JSON: Final = (b"content-type", b"application/json")

RawHeaders = list[tuple[bytes, bytes]]


class RequestMiddleware:
    """The outermost ASGI application. Applies the rate limit to each request, gives it an id, counts it and logs it."""

    def __init__(
        self,
        app: ASGIApp,
        limiter: RateLimiter,
        bodies: ReceivedBodies,
        route_of: Callable[[str], str],
        *,
        metrics: Metrics,
        monitor: ASGIApp,
        log: Log | None = None,
        renders_refusals: Callable[[str], bool] | None = None,
    ) -> None:
        """`route_of` returns the route of a path, as shown in logs and metrics, or "" if there is none.

        `monitor` is the application for the monitor port; the server takes it from the attribute of this name.
        `renders_refusals` returns whether the application renders the rejections for a path itself, as pages.
        """
        self._renders_refusals = renders_refusals or (lambda _: False)
        self.limiter = limiter
        self._bodies = bodies
        self.monitor = monitor
        self.metrics = metrics
        self._app = app
        self._route_of = route_of
        self._log = log
        self._request_counter = itertools.count(1)
        self._prefix = secrets.token_hex(4)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request to the application, or answer with 429."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started_at = time.perf_counter()
        decision = self.limiter.check(scope)
        request_id, added = self._identify(decision)
        scope["bodies"] = self._bodies
        app, status = self._app, 0
        if not decision.accepted:
            refusal = self.limiter.refusal(decision)
            # The application adds CORS headers to the refusal. A preflight's response needs none: no page can read it.
            is_cross_origin = scope["method"] != "OPTIONS" and any(name == b"origin" for name, _ in scope["headers"])
            if is_cross_origin or self._renders_refusals(scope["path"]):
                scope["refusal"] = refusal
            else:
                app = render(refusal)

        async def send_with_headers(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                present = {name for name, _ in message["headers"]}
                message["headers"] = message["headers"] + [pair for pair in added if pair[0] not in present]
            await send(message)

        try:
            await app(scope, receive, send_with_headers)
        except Exception as error:  # noqa: BLE001  # a bug must not end a connection without a response
            if self._log:
                self._log.line("error", "failure", id=request_id, **error_fields(error))
            if not status:
                await render(InternalError())(scope, receive, send_with_headers)
        caller = scope.get("caller")
        method = scope["method"] if scope["method"] in _METHODS else ""
        outcome = Outcome(method, self._route_of(scope["path"]), status, caller and caller.organization)
        self._record(request_id, outcome, time.perf_counter() - started_at)

    def rejected(self, client: tuple[str, int] | None, problem: Problem) -> tuple[Problem, RawHeaders]:
        """Count and log a request that could not be parsed. Returns the problem to send, and the headers to send with
        it.
        """
        decision = self.limiter.check({"client": client, "headers": []})
        request_id, headers = self._identify(decision)
        answer = problem if decision.accepted else self.limiter.refusal(decision)
        self._record(request_id, Outcome("", "", answer.status, None), 0.0)
        return answer, [_JSON, *headers]

    def _identify(self, decision: RateLimitDecision) -> tuple[str, RawHeaders]:
        """Return the id of a request, and the headers to add to its response."""
        request_id = f"{self._prefix}{next(self._request_counter):08x}"
        return request_id, [(b"x-request-id", request_id.encode()), *_SECURITY, *self.limiter.headers(decision)]

    def _record(self, request_id: str, outcome: Outcome, seconds: float) -> None:
        """Add a request to the metrics and the log. Route and method are known names, never text from the client."""
        self.metrics.count(outcome.route, outcome.method, outcome.status, seconds)
        if self._log:
            self._log.request(request_id, outcome, seconds)
