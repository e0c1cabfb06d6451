"""The errors of the HTTP API. Each is rendered as {"error", "message"} with its status by responses.py.

Problem
├── MalformedRequest    400  not a valid HTTP request
├── ParameterRefused    400  a query parameter is invalid
├── InvalidBody         400  the body cannot be parsed
├── AllRefused          400  the body has visits, but none of them is valid
├── CrossOriginRefused  400  a page of another origin may not send this request
├── Unauthorized        401  no valid token
├── Forbidden           403  the caller may not do this
├── NotFound            404  no such route
├── MethodNotAllowed    405  the route does not support the method
├── RequestTimeout      408  the request was not received in time
├── StateConflict       409  the state of the resource does not allow it
├── PreconditionFailed  412  the resource has another version than If-Match says
├── BodyTooLarge        413  the body exceeds a limit
├── UrlTooLong          414  the URL exceeds the limit
├── RateLimited         429  too many requests from one source address
├── HeadersTooLarge     431  the headers exceed a limit
├── ClientDisconnected  499  the client disconnected before the response
├── InternalError       500  an unexpected error
├── TooSlow             500  a query ran out of time
├── Overloaded          503  too many queries at a time
├── ClusterDown         503  the cluster that should answer is not available
├── LakeReplaced        503  the lake that was opened is no longer in its place
├── ProviderUnavailable 503  the identity provider does not answer
└── StorageUnavailable  503  the disk is full or fails, or nothing may be written into the lake now
"""

import errno
from collections.abc import Mapping, Sequence
from typing import ClassVar

from data import OutdatedManifest
from queries import ClusterTimeout, InvalidParameter, QueryTimeout


class Problem(Exception):
    """Base class of errors that are sent to the client."""

    status: ClassVar[int] = 500

    def __init__(self, error: str, message: str, headers: Mapping[str, str] | None = None, **more: object) -> None:
        super().__init__(f"{error} {message}")
        self.headers = dict(headers or {})
        self.body = {"error": error, "message": message, **more}


class MalformedRequest(Problem):
    """The bytes received are not a valid HTTP request."""

    status = 400

    def __init__(
        self, error: str = "Not a valid HTTP request.", message: str = "Send a well-formed HTTP/1.1 request."
    ) -> None:
        super().__init__(error, message)


class ParameterRefused(Problem):
    """A query parameter is invalid."""

    status = 400

    def __init__(self, error: InvalidParameter) -> None:
        super().__init__(error.problem, error.remedy)


class InvalidBody(Problem):
    """The body cannot be parsed."""

    status = 400


class AllRefused(Problem):
    """No visit of the body could be stored. `errors` are the reasons, as {index, error}."""

    status = 400

    def __init__(self, errors: Sequence[object]) -> None:
        super().__init__(
            "Every visit was rejected.",
            "Correct them as `errors` says, then send them again.",
            accepted=0,
            refused=len(errors),
            errors=errors,
        )


class CrossOriginRefused(Problem):
    """A page of another origin asked, by a preflight, for a request that it may not send."""

    status = 400

    def __init__(self, methods: Sequence[str], allowed_headers: Sequence[str], headers: Mapping[str, str]) -> None:
        super().__init__(
            "Cross-origin request refused.",
            f"Use {', '.join(methods)} with the headers {', '.join(allowed_headers)}, from an origin that the operator "
            "lists in TRAFFIC_CORS_ORIGINS.",
            headers,
        )


class Unauthorized(Problem):
    """The request has no valid token. Of the reasons, the response reveals only that an API key has expired."""

    status = 401

    def __init__(
        self,
        error: str = "Authentication failed.",
        message: str = "Send the header Authorization: Bearer <token> with an active API key or valid identity token.",
    ) -> None:
        super().__init__(error, message, {"WWW-Authenticate": "Bearer"})


class Forbidden(Problem):
    """The caller is authenticated but may not do this."""

    status = 403

    def __init__(
        self,
        error: str = "Viewers cannot write.",
        message: str = "Use an API key, or an identity token of another role.",
    ) -> None:
        super().__init__(error, message)


class NotFound(Problem):
    """No route has this path, or it names something that does not exist."""

    status = 404

    def __init__(self, error: str = "There is nothing at this path.", message: str = "Check the address.") -> None:
        super().__init__(error, message)


class MethodNotAllowed(Problem):
    """The route does not support this method."""

    status = 405

    def __init__(self, headers: Mapping[str, str]) -> None:
        allowed = headers.get("allow", headers.get("Allow", "GET")).replace("HEAD, ", "").replace(", HEAD", "")
        super().__init__("This path does not support this method.", f"Use {allowed}.", headers)


class RequestTimeout(Problem):
    """The header or the body of a request was not received in time."""

    status = 408

    def __init__(self, part: str) -> None:
        super().__init__(f"Timed out waiting for the {part} of the request.", "Send it without pauses.")


class StateConflict(Problem):
    """The state of the resource does not allow what was asked. The body tells state and version."""

    status = 409

    def __init__(self, problem: str, **state: int | str) -> None:
        super().__init__(problem, "Read it again, and decide by its state.", None, **state)


class PreconditionFailed(Problem):
    """The resource has another version than If-Match says; nothing was changed."""

    status = 412

    def __init__(self, problem: str, **state: int | str) -> None:
        super().__init__(problem, "Read it again, and send If-Match with its version, or without.", None, **state)


class BodyTooLarge(Problem):
    """The body exceeds a limit."""

    status = 413

    def __init__(self, problem: str, fix: str = "Send it in several requests.") -> None:
        super().__init__(problem, fix)


class UrlTooLong(Problem):
    """The URL exceeds the limit."""

    status = 414

    def __init__(self, max_bytes: int) -> None:
        super().__init__(f"The address is longer than {max_bytes >> 10} KiB.", "Ask with shorter parameters.")


class RateLimited(Problem):
    """A source address exceeded the rate limit."""

    status = 429

    def __init__(self, limit: int, retry_after_ms: int) -> None:
        super().__init__(
            "Rate limit exceeded.",
            f"Wait {-(-retry_after_ms // 1_000)} s: {limit} requests per minute are answered for each source address.",
            retryAfter=retry_after_ms,
            limit=limit,
            remaining=0,
        )


class HeadersTooLarge(Problem):
    """The headers exceed a limit."""

    status = 431

    def __init__(self) -> None:
        super().__init__("The headers are too many or too large.", "Send fewer than 100, of less than 64 KiB together.")


class ClientDisconnected(Problem):
    """The client disconnected before the response. Never sent; the log shows its status instead of a failure."""

    status = 499

    def __init__(self) -> None:
        super().__init__("The client disconnected.", "Wait for the answer.")


class InternalError(Problem):
    """An unexpected error."""

    def __init__(self, message: str = "Try again; the operator finds the cause in the server's log.") -> None:
        super().__init__("The request failed.", message)


class TooSlow(Problem):
    """A query ran out of time."""

    def __init__(self, timeout: QueryTimeout) -> None:
        message = "The query took too long and was stopped; ask for fewer days or for one link."
        if isinstance(timeout, ClusterTimeout):
            message = (
                "The cluster took too long and was stopped. What it had counted is kept for five minutes: ask again."
            )
        super().__init__("The request failed.", message)


class Overloaded(Problem):
    """Too many queries or uploads at a time."""

    status = 503

    def __init__(self) -> None:
        super().__init__("The service is overloaded.", "Try again in a second.", {"Retry-After": "1"})


class ClusterDown(Problem):
    """The cluster that answers what is too much for this machine cannot be reached or was lost."""

    status = 503

    def __init__(self) -> None:
        super().__init__(
            "The cluster that counts so many visits is not available.",
            "Try again in a few seconds, or ask for fewer days.",
            {"Retry-After": "5"},
        )


class ProviderUnavailable(Problem):
    """The identity provider is down, too slow, or answers what cannot be used; the log has the reason."""

    status = 503

    def __init__(self) -> None:
        super().__init__("The identity provider does not answer.", "Try again in a few seconds.", {"Retry-After": "5"})


class StorageUnavailable(Problem):
    """The disk is full or fails, or nothing may be written into the lake now; nothing of the request was stored."""

    status = 503

    def __init__(self, error: Exception) -> None:
        reason, remedy = "the disk is full or fails", ""
        if isinstance(error, OutdatedManifest):
            reason = "the manifest of the lake is older than its files"
            remedy = ", when the operator has stopped the service and run `traffic rebuild`"
        elif getattr(error, "errno", 0) == errno.ESTALE:
            reason, remedy = "the lake was moved or replaced", ", when the operator has started the service again"
        super().__init__(f"Nothing was kept: {reason}.", f"Send the same again later{remedy}.", {"Retry-After": "5"})


class LakeReplaced(Problem):
    """The lake that was opened is no longer in its place, so what it says is out of date."""

    status = 503

    def __init__(self) -> None:
        remedy = "Ask again when the operator has started the service again."
        super().__init__("The lake was moved or replaced.", remedy, {"Retry-After": "5"})
