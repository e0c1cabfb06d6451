"""Every request's way in and out: its source is counted, its answer gets its headers, log and metrics hear of it.

An answer that is held leaves from here; everything else is the application's.
"""

import itertools
import secrets
import time
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.errors import Failed, Problem
from service.limits import Limiter, Verdict
from service.logs import Log, trouble_of
from service.metrics import Metrics
from service.responses import render

METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
_STANDING: Final = (
    (b"x-content-type-options", b"nosniff"),
    (b"cache-control", b"private, no-store"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
    (b"referrer-policy", b"no-referrer"),
)
"""The headers of every response beside those of the limiter and X-Request-Id."""
_JSON: Final = (b"content-type", b"application/json")

Headers = list[tuple[bytes, bytes]]


class _Marks(NamedTuple):
    number: str  # of the request
    headers: Headers  # that its response has whatever it is


class Front:
    """Wraps the finished application."""

    def __init__(
        self,
        app: ASGIApp,
        limiter: Limiter,
        held: Callable[[Scope], bytes | None],
        routes: Callable[[str], str],
        *,
        metrics: Metrics,
        monitor: ASGIApp,
        log: Log | None = None,
    ) -> None:
        """`held` gives the answer to a request for which nothing has to be computed, `routes` a path's route.

        `monitor` is what the operator's own tools ask, on a port of its own.
        """
        self.limiter = limiter
        self.monitor = monitor
        self.metrics = metrics
        self._app = app
        self._held = held
        self._routes = routes
        self._log = log
        self._numbers = itertools.count(1)
        self._prefix = secrets.token_hex(4)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer 429, answer what is held, or let the application answer."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        begun = time.perf_counter()
        verdict = self.limiter.verdict_of(scope)
        marks = self._marks(verdict)
        body = self._held_or_none(scope) if verdict.accepted else None
        if body is not None:
            status = 200
            head = [_JSON, (b"content-length", b"%d" % len(body)), *marks.headers]
            await send({"type": "http.response.start", "status": status, "headers": head})
            await send({"type": "http.response.body", "body": body})
        else:
            app = self._app if verdict.accepted else render(self.limiter.refusal(verdict))
            status = await self._answered(app, scope, receive, send, marks)
        self._note(marks.number, scope, status, time.perf_counter() - begun)

    def _held_or_none(self, scope: Scope) -> bytes | None:
        try:
            return self._held(scope)
        except Exception:  # noqa: BLE001  # the application meets the same trouble and tells of it
            return None

    def turned_away(self, client: tuple[str, int] | None, problem: Problem) -> tuple[Problem, Headers]:
        """Count and note what never became a request; what is answered, and with which headers."""
        scope: Scope = {"client": client, "headers": [], "method": "", "path": ""}
        verdict = self.limiter.verdict_of(scope)
        marks = self._marks(verdict)
        told = problem if verdict.accepted else self.limiter.refusal(verdict)
        self._note(marks.number, scope, told.status, 0.0)
        return told, [_JSON, *marks.headers]

    def _marks(self, verdict: Verdict) -> _Marks:
        number = f"{self._prefix}{next(self._numbers):08x}"
        return _Marks(number, [(b"x-request-id", number.encode()), *_STANDING, *self.limiter.headers(verdict)])

    async def _answered(self, app: ASGIApp, scope: Scope, receive: Receive, send: Send, marks: _Marks) -> int:
        """Let an application answer, with the headers of every response besides; the status it told."""
        status = 0

        async def send_with_headers(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                given = {name for name, _ in message["headers"]}
                message["headers"] = [*message["headers"], *(pair for pair in marks.headers if pair[0] not in given)]
            await send(message)

        try:
            await app(scope, receive, send_with_headers)
        except Exception as error:  # noqa: BLE001  # no error of ours ends a connection without an answer
            if self._log:
                self._log.line("error", "failure", id=marks.number, **trouble_of(error))
            if not status:
                await render(Failed())(scope, receive, send_with_headers)
        return status

    def _note(self, number: str, scope: Mapping[str, object], status: int, seconds: float) -> None:
        method = str(scope["method"]) if scope["method"] in METHODS else ""
        route = self._routes(str(scope["path"]))
        self.metrics.count(route, method, status, seconds)
        if self._log:
            caller = scope.get("caller")
            organization = getattr(caller, "organization", None)
            self._log.line(
                "info", "request", id=number, method=method, route=route, status=status,
                ms=round(1000 * seconds, 2), organization=organization,
            )  # fmt: skip
