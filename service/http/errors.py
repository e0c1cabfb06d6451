"""What can go wrong with a request, as one tree. Rendering is in responses.py.

Problem             {"error", "message"} and a status
├── MalformedRequest       400  bytes that are no HTTP request
├── InvalidParameter    400  a parameter has no readable value
├── InvalidBody         400  a body that cannot be read
├── Unauthorized    401  no valid token
├── Forbidden       403  the token's role may not do this
├── NotFound        404  no such route
├── MethodNotAllowed      405  the route does not know the method
├── RequestTimeout        408  a request that does not come whole in time
├── BodyTooLarge        413  a body with more than may come at once
├── UrlTooLong      414  an address longer than any of ours
├── RateLimited     429  too many requests from one source
├── HeadersTooLarge 431  more headers than a request needs
├── ClientDisconnected      499  nobody waits for the answer
├── Failed          500  the service could not answer
├── Overloaded      503  too many requests are being computed
└── StorageUnavailable      503  the disk takes nothing
"""

from collections.abc import Mapping
from typing import ClassVar


class Problem(Exception):
    """Root of the errors that a client sees."""

    status: ClassVar[int] = 500

    def __init__(self, error: str, message: str, headers: Mapping[str, str] | None = None, **more: int) -> None:
        super().__init__(f"{error} {message}")
        self.headers = dict(headers or {})
        self.body = {"error": error, "message": message, **more}


class MalformedRequest(Problem):
    """Bytes that are no HTTP request."""

    status = 400

    def __init__(
        self, error: str = "This is no HTTP request.", message: str = "Send a well-formed HTTP/1.1 request."
    ) -> None:
        super().__init__(error, message)


class InvalidParameter(Problem):
    """A parameter that cannot be understood."""

    status = 400

    def __init__(self, name: str, problem: str, fix: str) -> None:
        super().__init__(f"The parameter {name} {problem}.", fix)


class InvalidBody(Problem):
    """A body that cannot be read."""

    status = 400

    def __init__(self, problem: str, fix: str) -> None:
        super().__init__(f"The body {problem}.", fix)


class Unauthorized(Problem):
    """The request carries no token that is valid now. Why it is not is nobody's business."""

    status = 401

    def __init__(self) -> None:
        super().__init__(
            "Authentication failed.",
            "Send the header Authorization: Bearer <token> with an active API key or a valid identity token.",
            {"WWW-Authenticate": "Bearer"},
        )


class Forbidden(Problem):
    """The caller is known and may not do this."""

    status = 403

    def __init__(
        self,
        error: str = "Viewers cannot write.",
        message: str = "Use an API key, or an identity token of another role.",
    ) -> None:
        super().__init__(error, message)


class NotFound(Problem):
    """There is nothing at this path."""

    status = 404

    def __init__(self) -> None:
        super().__init__("There is nothing at this path.", "The routes are listed at /openapi.json.")


class MethodNotAllowed(Problem):
    """The path does not know this method."""

    status = 405

    def __init__(self, headers: Mapping[str, str]) -> None:
        allowed = headers.get("allow", headers.get("Allow", "GET")).replace("HEAD, ", "").replace(", HEAD", "")
        super().__init__("This path does not know this method.", f"Use {allowed}.", headers)


class RequestTimeout(Problem):
    """Part of a request that does not come in time."""

    status = 408

    def __init__(self, part: str) -> None:
        super().__init__(f"The {part} of the request did not come in time.", "Send it without pauses.")


class BodyTooLarge(Problem):
    """More than may come at once."""

    status = 413

    def __init__(self, problem: str) -> None:
        super().__init__(problem, "Send it in several requests.")


class UrlTooLong(Problem):
    """An address longer than any of ours."""

    status = 414

    def __init__(self, max_bytes: int) -> None:
        super().__init__(f"The address is longer than {max_bytes >> 10} KiB.", "Ask with shorter parameters.")


class RateLimited(Problem):
    """A source sent more requests than it may."""

    status = 429

    def __init__(self, limit: int, retry_after_ms: int) -> None:
        super().__init__(
            "Rate limit exceeded.",
            f"Wait {retry_after_ms} ms: {limit} requests per minute are answered for each source address.",
            retryAfter=retry_after_ms,
            limit=limit,
            remaining=0,
        )


class HeadersTooLarge(Problem):
    """More headers than a request needs."""

    status = 431

    def __init__(self) -> None:
        super().__init__("The headers are too many or too large.", "Send fewer than 100, of less than 64 KiB together.")


class ClientDisconnected(Problem):
    """The client did not wait for its answer; nobody reads this one, but the log tells it from a failure."""

    status = 499

    def __init__(self) -> None:
        super().__init__("The client left.", "Wait for the answer.")


class InternalError(Problem):
    """The service could not answer."""

    def __init__(self, message: str = "Try again; the operator finds the cause in the server's log.") -> None:
        super().__init__("The request failed.", message)


class Overloaded(Problem):
    """More requests are being computed than the service takes on."""

    status = 503

    def __init__(self) -> None:
        super().__init__("The service is overloaded.", "Try again in a second.", {"Retry-After": "1"})


class StorageUnavailable(Problem):
    """The disk is full or fails: nothing of the request was kept."""

    status = 503

    def __init__(self) -> None:
        super().__init__(
            "Nothing was kept: the disk is full or fails.", "Send the same visits again later.", {"Retry-After": "5"}
        )
