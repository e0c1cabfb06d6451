"""Routing of requests to endpoints, and conversion of raised Problems to responses."""

from collections.abc import Awaitable, Callable, Iterable
from contextlib import AbstractAsyncContextManager

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route, Router
from starlette.types import Receive, Scope, Send

from service.core.http.errors import MethodNotAllowed, NotFound
from service.core.http.problems import PROBLEMS, TEMPORARY, problem_of
from service.core.http.responses import render

Endpoint = Callable[[Request], Awaitable[Response]]


class RouteTable(Router):
    """Routes in a dict by path; only paths with a parameter are matched one by one with regular expressions.

    Exceptions in PROBLEMS become the response. RequestMiddleware logs those in TEMPORARY, and handles all other
    exceptions.
    """

    def __init__(
        self,
        routes: Iterable[Route],
        lifespan: Callable[[Starlette], AbstractAsyncContextManager[None]] | None = None,
        base_path: str = "",
    ) -> None:
        super().__init__(lifespan=lifespan)
        self._base_path = base_path
        all_routes = list(routes)
        self._by_path = {route.path: route for route in all_routes if "{" not in route.path}
        self._with_parameters = [route for route in all_routes if "{" in route.path]

    def path_of(self, path: str) -> str:
        """Return the path of the matching route as declared, such as /settings/api-keys/{id}; "" if there is none."""
        route = self._route_of(path)
        return route.path if route else ""

    async def app(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or handle the server's lifespan events."""
        if scope["type"] != "http":
            await super().app(scope, receive, send)
            return
        if scope["method"] == "HEAD":  # answered like GET; the server leaves the body out
            scope = {**scope, "method": "GET"}
        failure = None
        try:
            response = await self.response(scope, receive)
        except PROBLEMS as error:
            response = render(problem_of(error))
            failure = error if isinstance(error, TEMPORARY) else None
        await response(scope, receive, send)
        if failure:  # raised after the answer, so that it is logged
            raise failure

    async def response(self, scope: Scope, receive: Receive) -> Response:
        """Return the endpoint's response. Raises NotFound, MethodNotAllowed, and the exceptions of the endpoint."""
        route = self._route_of(scope["path"])
        if route is None:
            raise NotFound(message=f"The routes are listed at {self._base_path}/openapi.json.")
        methods = route.methods or set()
        if scope["method"] not in methods:
            fix = f"Use {', '.join(sorted(methods - {'HEAD'}))}."
            raise MethodNotAllowed(message=fix, headers={"Allow": ", ".join(sorted(methods))})
        if "{" in route.path and (match := route.path_regex.match(scope["path"])):
            scope["path_params"] = match.groupdict()
        endpoint: Endpoint = route.endpoint
        return await endpoint(Request(scope, receive))

    def _route_of(self, path: str) -> Route | None:
        route = self._by_path.get(path)
        if route is None:
            return next((route for route in self._with_parameters if route.path_regex.match(path)), None)
        return route
