"""Every request's way in and out: its source is counted, its answer gets its headers, log and metrics hear of it."""

import itertools
import secrets
import time
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.http.errors import Failed, Problem
from service.http.rate_limit import Limiter, Verdict
from service.http.responses import render
from service.logs import Log, Outcome, trouble_of
from service.metrics import Metrics

_METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
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
        routes: Callable[[str], str],
        *,
        metrics: Metrics,
        monitor: ASGIApp,
        log: Log | None = None,
    ) -> None:
        """`routes` gives a path's route; `monitor` is what the operator's own tools ask, on a port of its own."""
        self.limiter = limiter
        self.monitor = monitor
        self.metrics = metrics
        self._app = app
        self._routes = routes
        self._log = log
        self._numbers = itertools.count(1)
        self._prefix = secrets.token_hex(4)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer 429, or let the application answer."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        begun = time.perf_counter()
        verdict = self.limiter.verdict_of(scope)
        marks = self._marks(self._number(), verdict)
        app = self._answering(scope, verdict)
        status = await self._answered(app, scope, receive, send, marks)
        organization = getattr(scope.get("caller"), "organization", None)
        self._note(marks.number, self._outcome(scope, status, organization), time.perf_counter() - begun)

    def _number(self) -> str:
        return f"{self._prefix}{next(self._numbers):08x}"

    def _answering(self, scope: Scope, verdict: Verdict) -> ASGIApp:
        """Who answers: the application, or the refusal."""
        if not verdict.accepted:
            refusal = self.limiter.refusal(verdict)
            if not _is_from_a_page(scope):
                return render(refusal)
            scope["refusal"] = refusal  # the application knows which pages may read it
        return self._app

    def turned_away(self, client: tuple[str, int] | None, problem: Problem) -> tuple[Problem, Headers]:
        """Count and note what never became a request; what is answered, and with which headers."""
        scope: Scope = {"client": client, "headers": [], "method": "", "path": ""}
        verdict = self.limiter.verdict_of(scope)
        marks = self._marks(self._number(), verdict)
        told = problem if verdict.accepted else self.limiter.refusal(verdict)
        self._note(marks.number, self._outcome(scope, told.status, None), 0.0)
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

    def _outcome(self, scope: Mapping[str, Any], status: int, organization: str | None) -> Outcome:
        method = scope["method"] if scope["method"] in _METHODS else ""
        return Outcome(method, self._routes(scope["path"]), status, organization)

    def _note(self, number: str, outcome: Outcome, seconds: float) -> None:
        self.metrics.count(outcome.route, outcome.method, outcome.status, seconds)
        if self._log:
            self._log.request(number, outcome, seconds)


def _is_from_a_page(scope: Scope) -> bool:
    """Whether a page of another site may wait for the answer, which is not what a browser asks before."""
    return scope["method"] != "OPTIONS" and any(name == b"origin" for name, _ in scope["headers"])
