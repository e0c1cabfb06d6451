"""Declarations of the API's operations other than the reports. Routes and OpenAPI are derived from these rows."""

from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Any, Final, Generic, NamedTuple, TypeVar

from starlette.requests import Request

from service.core.http.caller import Caller
from service.core.http.errors import Forbidden

Part = TypeVar("Part")
Json = dict[str, Any]
KIB: Final = 1 << 10


def any_caller(_: Caller) -> None:
    """Allow every caller, including viewers."""


def writer(caller: Caller) -> None:
    """Raise Forbidden for viewers."""
    if not caller.may_write:
        raise Forbidden


class Operation(NamedTuple):
    """The declaration of one operation of the API: its route, permissions, types and documentation."""

    route: str  # method and path
    name: str
    summary: str
    answers: dict[str, Any]  # type of the body by status, success first; None: no body
    check: Callable[[Caller], None] = any_caller
    body: Any = None  # the type of the request's body, or types by media type
    max_bytes: int = 0  # maximum size of the request's body in bytes; 0: the handler reads it
    errors: str = ""  # statuses not implied by the row; 412 means that the operation accepts If-Match
    description: str = ""
    examples: Mapping[str, Json] = MappingProxyType({})  # of the body, by name
    is_public: bool = False
    query: tuple[str, ...] = ()  # keys of PARAMETERS

    @property
    def error_statuses(self) -> list[str]:
        """The statuses of errors specific to this operation, in addition to the errors of every operation."""
        possible = {"403": self.check is not any_caller, "404": "{" in self.route, "413": self.body is not None}
        return [*(status for status, is_possible in possible.items() if is_possible), *self.errors.split()]


@dataclass(frozen=True)
class Call:
    """A permitted request for an operation."""

    request: Request
    body: Any = None
    """The decoded body, of the type that the operation declares; None if the handler reads the body."""

    @property
    def caller(self) -> Caller:
        """The sender of the request."""
        found: Caller = self.request.scope["caller"]
        return found

    @property
    def organization(self) -> str:
        """The caller's organization. The operation reads and changes no other organization."""
        return self.caller.organization

    @property
    def path(self) -> Mapping[str, str]:
        """The path parameters by name."""
        return self.request.path_params


Handler = Callable[[Call], Awaitable[object]]
"""A function that answers a call: it returns a value to encode as JSON, or a complete response."""
RoomHandler = Callable[[Part, Call], Awaitable[object]]
"""A handler with two arguments: its room's part of the service, and the call."""


class Operations(Generic[Part]):
    """The operations of one room, each with its handler.

    Each handler is called with the room's part of the service and the call.
    """

    def __init__(self) -> None:
        self._handlers: list[tuple[Operation, RoomHandler[Part]]] = []

    def __iter__(self) -> Iterator[Operation]:
        """Iterate over the operations, in the order in which they were added."""
        return (one for one, _ in self._handlers)

    def handles(self, one: Operation) -> Callable[[RoomHandler[Part]], RoomHandler[Part]]:
        """Add an operation with the decorated function as its handler."""

        def add(handler: RoomHandler[Part]) -> RoomHandler[Part]:
            self._handlers.append((one, handler))
            return handler

        return add

    def bound(self, part: Part) -> list[tuple[Operation, Handler]]:
        """Return the operations, each with its handler bound to this part of the service."""
        return [(one, partial(handler, part)) for one, handler in self._handlers]
