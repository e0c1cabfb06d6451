"""The errors of the HTTP API. Each is rendered as {"error", "message"} with its status by responses.py.

Problem
├── MalformedRequest    400  not a valid HTTP request
├── ParameterRefused    400  a query parameter is invalid
├── InvalidBody         400  the body cannot be parsed
├── AllRefused          400  the body has visits, but none of them is valid
├── CrossOriginRefused  400  a page from another origin may not send this request
├── Unauthorized        401  no valid token
├── Forbidden           403  the caller may not do this
├── NotFound            404  no such route or resource
├── MethodNotAllowed    405  the route does not support the method
├── RequestTimeout      408  the request was not received in time
├── StateConflict       409  the resource's state does not allow the request
├── PreconditionFailed  412  the resource's version differs from If-Match
├── BodyTooLarge        413  the body exceeds a limit
├── UrlTooLong          414  the URL exceeds the limit
├── RateLimited         429  too many requests from one source address
├── HeadersTooLarge     431  the headers exceed a limit
├── ClientDisconnected  499  the client disconnected before the response
├── InternalError       500  an unexpected error
├── TooSlow             500  a query ran out of time
├── TooMuchMemory       500  a query ran out of memory
├── Interrupted         500  an answer was interrupted by another program or query
├── Overloaded          503  too many concurrent queries, edits or request bodies
├── ClusterDown         503  the query cluster is not available
├── LakeReplaced        503  the open lake was moved or replaced
├── ProviderUnavailable 503  the identity provider does not respond
└── StorageUnavailable  503  the disk is full or fails, or the lake cannot be written to now
"""

import errno
from collections.abc import Mapping
from typing import ClassVar

from data import OutdatedManifest


class Problem(Exception):
    """Base class of the errors sent to clients, each with what is wrong and what to do."""

    status: ClassVar[int] = 500
    error: ClassVar[str] = "The request failed."
    message: ClassVar[str] = ""
    sent_headers: ClassVar[Mapping[str, str]] = {}

    def __init__(
        self,
        error: str = "",
        message: str = "",
        headers: Mapping[str, str] | None = None,
        text: str = "",
        **more: object,
    ) -> None:
        """Omitted arguments default to the class's attributes. `more` are further members of the body.

        `text` is what str() returns instead of error and message. For a Problem that is also BadInput or another
        TrafficError, `text` is only the reason: pages and commands print it without the advice for callers of the API.
        """
        self.headers = dict(headers or self.sent_headers)
        self.body: dict[str, object] = {"error": error or self.error, "message": message or self.message, **more}
        super().__init__(text or f"{self.body['error']} {self.body['message']}")


class MalformedRequest(Problem):
    status = 400
    error = "Not a valid HTTP request."
    message = "Send a well-formed HTTP/1.1 request."


class ParameterRefused(Problem):
    status = 400


class InvalidBody(Problem):
    status = 400


class AllRefused(Problem):
    status = 400
    error = "Every visit was rejected."
    message = "Correct the problems in `errors`, then send the visits again."


class CrossOriginRefused(Problem):
    status = 400
    error = "Cross-origin request refused."


class Unauthorized(Problem):
    """The response reveals the reason only if an API key has expired."""

    status = 401
    error = "Authentication failed."
    message = "Send the header Authorization: Bearer <token> with an active API key or valid identity token."
    sent_headers: ClassVar = {"WWW-Authenticate": "Bearer"}


class Forbidden(Problem):
    status = 403
    error = "Viewers cannot write."
    message = "Use an API key, or an identity token with another role."


class NotFound(Problem):
    status = 404
    error = "Not found."
    message = "Check the address."


class MethodNotAllowed(Problem):
    status = 405
    error = "This path does not support this method."


class RequestTimeout(Problem):
    status = 408
    message = "Send the request without pauses."


class StateConflict(Problem):
    """For a job, the body has its current status and version."""

    status = 409
    message = "Fetch the job again and decide based on its current status."


class PreconditionFailed(Problem):
    """Nothing was changed. For a job, the body has its current status and version."""

    status = 412
    message = "Fetch the link or job again and retry with its current ETag, or without If-Match."


class BodyTooLarge(Problem):
    status = 413
    message = "Send it in several requests."


class UrlTooLong(Problem):
    status = 414
    message = "Send shorter parameters."


class RateLimited(Problem):
    status = 429
    error = "Rate limit exceeded."


class HeadersTooLarge(Problem):
    status = 431
    error = "There are too many headers, or they are too large."
    message = "Send fewer than 100 headers, of less than 64 KiB in total."


class ClientDisconnected(Problem):
    """Never sent; the log shows its status instead of a failure."""

    status = 499
    error = "The client disconnected."
    message = "Wait for the response."


class InternalError(Problem):
    message = "Retry; the operator can find the cause in the server's log."


class TooSlow(Problem):
    error = "The query took too long and was stopped."
    message = "Request fewer days or a single link, or retry when the service is less busy."


class TooMuchMemory(Problem):
    error = "The query needs more memory than is free."
    message = "Request fewer days or a single link, or retry when the service is less busy."


class Interrupted(Problem):
    """The query's files or database were changed or locked while it ran, or another query ended the engine."""

    error = "The answer was interrupted."
    message = "Retry in a few seconds; the operator can find the cause in the server's log."


class Overloaded(Problem):
    status = 503
    error = "The service is overloaded."
    message = "Retry in a second."
    sent_headers: ClassVar = {"Retry-After": "1"}


class ClusterDown(Problem):
    status = 503
    error = "The query cluster is unavailable."
    message = "Retry in a few seconds, or request fewer days."
    sent_headers: ClassVar = {"Retry-After": "5"}


class LakeReplaced(Problem):
    status = 503
    error = "The lake was moved or replaced."
    message = "Retry when the operator has restarted the service."
    sent_headers: ClassVar = {"Retry-After": "5"}


class ProviderUnavailable(Problem):
    """The provider is down or too slow, or its response is invalid; the log has the reason."""

    status = 503
    error = "The identity provider does not respond."
    message = "Retry in a few seconds."
    sent_headers: ClassVar = {"Retry-After": "5"}


class StorageUnavailable(Problem):
    """Nothing in the request was stored."""

    status = 503
    sent_headers: ClassVar = {"Retry-After": "5"}

    def __init__(self, error: Exception) -> None:
        reason, remedy = "the disk is full or failing", ""
        if isinstance(error, OutdatedManifest):
            reason = "the lake's manifest is older than its files"
            remedy = ", when the operator has stopped the service and run `traffic rebuild`"
        elif getattr(error, "errno", 0) == errno.ESTALE:
            reason, remedy = "the lake was moved or replaced", ", when the operator has restarted the service"
        super().__init__(f"Nothing was stored: {reason}.", f"Retry later{remedy}.")


def sentence(error: Exception | str) -> str:
    """Return the message of an error, capitalized for a response."""
    text = str(error)
    return text[:1].upper() + text[1:]
