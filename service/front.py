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
from service.limits import HEADERS, Limiter, Verdict
from service.logs import Log, trouble_of
from service.metrics import Metrics
from service.responses import json_response, render

WHOLE: Final = "traffic.whole"
"""The extension of a server that sends an answer at once: the lines of its header, then its body. It tells whether."""
_METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
_STANDING: Final = (
    (b"x-content-type-options", b"nosniff"),
    (b"cache-control", b"private, no-store"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
    (b"referrer-policy", b"no-referrer"),
)
"""The headers of every response beside those of the limiter and X-Request-Id."""
_JSON: Final = (b"content-type", b"application/json")

_OF_EACH: Final = ((b"content-length", b"%d"), (b"x-request-id", b"%s"), *((name, b"%d") for name in HEADERS))
_HELD: Final = b"".join(b"%s: %s\r\n" % pair for pair in (_JSON, *_STANDING, *_OF_EACH))
"""The header of an answer that is held; its numbers are still to come."""

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
        number = f"{self._prefix}{next(self._numbers):08x}"
        body = self._held_or_none(scope) if verdict.accepted else None
        status = 200
        if body is None or not self._is_sent_whole(scope, number, verdict, body):
            app = self._answering(verdict, body)
            status = await self._answered(app, scope, receive, send, self._marks(number, verdict))
        self._note(number, scope, status, time.perf_counter() - begun)

    def _answering(self, verdict: Verdict, body: bytes | None) -> ASGIApp:
        """Who answers: what is held, the application, or the refusal."""
        if body is not None:
            return json_response(body)
        return self._app if verdict.accepted else render(self.limiter.refusal(verdict))

    def _is_sent_whole(self, scope: Scope, number: str, verdict: Verdict, body: bytes) -> bool:
        """Send what is held at once, where the server can; tell whether."""
        whole = scope.get("extensions", {}).get(WHOLE)
        if whole is None:
            return False
        is_sent: bool = whole(_HELD % (len(body), number.encode(), *self.limiter.values(verdict)), body)
        return is_sent

    def _held_or_none(self, scope: Scope) -> bytes | None:
        try:
            return self._held(scope)
        except Exception:  # noqa: BLE001  # the application meets the same trouble and tells of it
            return None

    def turned_away(self, client: tuple[str, int] | None, problem: Problem) -> tuple[Problem, Headers]:
        """Count and note what never became a request; what is answered, and with which headers."""
        scope: Scope = {"client": client, "headers": [], "method": "", "path": ""}
        verdict = self.limiter.verdict_of(scope)
        marks = self._marks(f"{self._prefix}{next(self._numbers):08x}", verdict)
        told = problem if verdict.accepted else self.limiter.refusal(verdict)
        self._note(marks.number, scope, told.status, 0.0)
        return told, [_JSON, *marks.headers]

    def _marks(self, number: str, verdict: Verdict) -> _Marks:
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
        method = str(scope["method"]) if scope["method"] in _METHODS else ""
        route = self._routes(str(scope["path"]))
        self.metrics.count(route, method, status, seconds)
        if self._log:
            caller = scope.get("caller")
            organization = getattr(caller, "organization", None)
            self._log.line(
                "info", "request", id=number, method=method, route=route, status=status,
                ms=round(1000 * seconds, 2), organization=organization,
            )  # fmt: skip
