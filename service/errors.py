"""What can go wrong with a request, as one tree. Rendering is in responses.py.

Problem             {"error", "message"} and a status
├── BadParameter    400  a parameter has no readable value
├── BadBody         400  a body that cannot be read
├── Unauthorized    401  no valid token
├── Forbidden       403  the token's role may not do this
├── NotFound        404  no such route
├── NotAllowed      405  the route does not know the method
├── TooLarge        413  a body with more than may come at once
├── RateLimited     429  too many requests from one source
├── Failed          500  the service could not answer
├── Overloaded      503  too many requests are being computed
└── Unwritable      503  the disk takes nothing
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


class BadParameter(Problem):
    """A parameter that cannot be understood."""

    status = 400

    def __init__(self, name: str, trouble: str, remedy: str) -> None:
        super().__init__(f"The parameter {name} {trouble}.", remedy)


class BadBody(Problem):
    """A body that cannot be read."""

    status = 400

    def __init__(self, trouble: str, remedy: str) -> None:
        super().__init__(f"The body {trouble}.", remedy)


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

    def __init__(self) -> None:
        super().__init__("Viewers cannot write.", "Use an API key, or an identity token of another role.")


class NotFound(Problem):
    """There is nothing at this path."""

    status = 404

    def __init__(self) -> None:
        super().__init__("There is nothing at this path.", "The routes are listed at /openapi.json.")


class NotAllowed(Problem):
    """The path does not know this method."""

    status = 405

    def __init__(self, headers: Mapping[str, str]) -> None:
        allowed = headers.get("allow", headers.get("Allow", "GET")).replace("HEAD, ", "").replace(", HEAD", "")
        super().__init__("This path does not know this method.", f"Use {allowed}.", headers)


class TooLarge(Problem):
    """More than may come at once."""

    status = 413

    def __init__(self, trouble: str) -> None:
        super().__init__(trouble, "Send it in several requests.")


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


class Failed(Problem):
    """The service could not answer."""

    def __init__(self, message: str = "Try again; the operator finds the cause in the server's log.") -> None:
        super().__init__("The request failed.", message)


class Overloaded(Problem):
    """More requests are being computed than the service takes on."""

    status = 503

    def __init__(self) -> None:
        super().__init__("The service is overloaded.", "Try again in a second.", {"Retry-After": "1"})


class Unwritable(Problem):
    """The disk is full or fails: nothing of the request was kept."""

    status = 503

    def __init__(self) -> None:
        super().__init__(
            "Nothing was kept: the disk is full or fails.", "Send the same visits again later.", {"Retry-After": "5"}
        )
