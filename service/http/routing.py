"""From a request to its endpoint by one look-up, and from whatever an endpoint raises to its answer."""

from collections.abc import Awaitable, Callable, Iterable
from contextlib import AbstractAsyncContextManager
from typing import Final

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route, Router
from starlette.types import Receive, Scope, Send

from queries import QueryTimeout
from service.http.errors import InternalError, MethodNotAllowed, NotFound, Problem
from service.http.responses import render

Endpoint = Callable[[Request], Awaitable[Response]]

_TOO_SLOW: Final = "The query took too long and was stopped; ask for fewer days or for one link."


class RouteTable(Router):
    """Routes in a dict by their paths; only paths with a parameter are matched one after the other.

    What an endpoint raises as a Problem is its answer. Any other exception is left to RequestMiddleware.
    """

    def __init__(
        self, routes: Iterable[Route], lifespan: Callable[[Starlette], AbstractAsyncContextManager[None]]
    ) -> None:
        super().__init__(lifespan=lifespan)
        every = list(routes)
        self._by_path = {route.path: route for route in every if "{" not in route.path}
        self._with_parameters = [route for route in every if "{" in route.path]

    def path_of(self, path: str) -> str:
        """The path of a request's route as the route is declared, "" for none: logs know no other paths."""
        route = self._route_of(path)
        return route.path if route else ""

    async def app(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or take part in the start and end of the server."""
        if scope["type"] != "http":
            await super().app(scope, receive, send)
            return
        try:
            response = await self._answer(scope, receive)
        except Problem as problem:
            response = render(problem)
        except QueryTimeout:
            response = render(InternalError(_TOO_SLOW))
        await response(scope, receive, send)

    async def _answer(self, scope: Scope, receive: Receive) -> Response:
        route = self._route_of(scope["path"])
        if route is None:
            raise NotFound
        methods = route.methods or set()
        if scope["method"] not in methods:
            raise MethodNotAllowed({"Allow": ", ".join(sorted(methods))})
        if "{" in route.path and (match := route.path_regex.match(scope["path"])):
            scope["path_params"] = match.groupdict()
        endpoint: Endpoint = route.endpoint
        return await endpoint(Request(scope, receive))

    def _route_of(self, path: str) -> Route | None:
        route = self._by_path.get(path)
        if route is None:
            return next((route for route in self._with_parameters if route.path_regex.match(path)), None)
        return route
