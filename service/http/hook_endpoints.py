"""The endpoints of Agent Hooks: their settings and their deliveries."""

from collections.abc import Callable
from typing import Final

from msgspec.json import encode
from msgspec.structs import asdict
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from data import BadInput
from service.hooks.outbox import HookConflict
from service.hooks.records import Hook, HookChanges, HookWithSecret, NewHook, StartedDelivery
from service.hooks.registry import Hooks, NoSuchHook
from service.http.authentication import Caller
from service.http.bodies import read_body, reject_body
from service.http.errors import Forbidden, InvalidBody, NotFound, StateConflict
from service.http.responses import JsonResponse
from service.threads import Arguments, Result

MAX_BODY_BYTES: Final = 16_384


def hook_routes(base: str, hooks: Hooks) -> list[Route]:
    """The routes below /agent-hooks."""
    endpoints = _HookEndpoints(hooks)
    path = f"{base}/agent-hooks"
    return [
        Route(path, endpoints.hooks, methods=["GET", "POST"]),
        Route(f"{path}/{{id}}", endpoints.hook, methods=["GET", "PATCH", "DELETE"]),
        Route(f"{path}/{{id}}/test", endpoints.test, methods=["POST"]),
        Route(f"{path}/{{id}}/secret", endpoints.secret, methods=["POST"]),
        Route(f"{path}/{{id}}/deliveries", endpoints.deliveries, methods=["GET"]),
        Route(f"{path}/{{id}}/deliveries/{{delivery}}/replay", endpoints.replay, methods=["POST"]),
    ]


class _HookEndpoints:
    """Every endpoint is about hooks of the caller's organization: another's do not exist."""

    def __init__(self, hooks: Hooks) -> None:
        self._hooks = hooks

    async def hooks(self, request: Request) -> Response:
        """List the hooks (GET), or create one (POST)."""
        caller = _editor(request)
        if request.method != "POST":
            reject_body(request)
            listed = await self._hooks.database.read(self._hooks.of, caller.organization)
            return JsonResponse(encode(listed))
        fields = asdict(await read_body(request, NewHook, MAX_BODY_BYTES))

        def create() -> tuple[Hook, str]:
            return self._hooks.create(caller.organization, **fields, created_by=caller.name)

        return _with_secret(*await self._write(create), 201)

    async def hook(self, request: Request) -> Response:
        """Return (GET), change (PATCH) or delete (DELETE) a hook."""
        organization, hook_id = _editor(request).organization, request.path_params["id"]
        if request.method == "DELETE":
            hook = await self._write(self._hooks.delete, organization, hook_id)
        elif request.method == "PATCH":
            changes = await read_body(request, HookChanges, MAX_BODY_BYTES)
            hook = await self._write(self._hooks.change, organization, hook_id, changes)
        else:
            reject_body(request)
            hook = await self._read(self._hooks.hook, organization, hook_id)
        return JsonResponse(encode(hook))

    async def test(self, request: Request) -> Response:
        """Send a made-up job to a hook."""
        organization, hook_id = _editor(request).organization, request.path_params["id"]
        delivery_id = await self._write(self._hooks.send_test, organization, hook_id)
        return JsonResponse(encode(StartedDelivery(delivery_id)), 202)

    async def secret(self, request: Request) -> Response:
        """Give a hook a new secret."""
        hook, secret = await self._write(self._hooks.rotate, _editor(request).organization, request.path_params["id"])
        return _with_secret(hook, secret)

    async def deliveries(self, request: Request) -> Response:
        """List the newest deliveries to a hook."""
        organization = _editor(request).organization
        reject_body(request)
        found = await self._read(self._hooks.deliveries, organization, request.path_params["id"])
        return JsonResponse(encode(found))

    async def replay(self, request: Request) -> Response:
        """Send a message again."""
        organization, ids = _editor(request).organization, request.path_params
        delivery_id = await self._write(self._hooks.replay, organization, ids["id"], ids["delivery"])
        return JsonResponse(encode(StartedDelivery(delivery_id)), 202)

    async def _read(self, work: Callable[[*Arguments], Result], *arguments: *Arguments) -> Result:
        """The result of a method that only reads. Raises NotFound."""
        try:
            return await self._hooks.database.read(work, *arguments)
        except NoSuchHook as error:
            raise NotFound("Hook or delivery not found.", "List the hooks to see their ids.") from error

    async def _write(self, work: Callable[[*Arguments], Result], *arguments: *Arguments) -> Result:
        """The result of a method that writes. Raises NotFound, StateConflict or InvalidBody."""
        try:
            return await self._hooks.database.write(work, *arguments)
        except NoSuchHook as error:
            raise NotFound("Hook or delivery not found.", "List the hooks to see their ids.") from error
        except HookConflict as error:
            raise StateConflict(str(error)) from error
        except BadInput as error:
            raise InvalidBody("The body is invalid.", str(error)) from error


def _with_secret(hook: Hook, secret: str, status: int = 200) -> JsonResponse:
    """A hook and its secret, this once."""
    return JsonResponse(encode(HookWithSecret(**asdict(hook), secret=secret)), status)


def _editor(request: Request) -> Caller:
    """The caller of a request. Raises Forbidden unless it may write: URLs of hooks often are secrets themselves."""
    caller: Caller = request.scope["caller"]
    if not caller.may_write:
        raise Forbidden("Viewers may neither see nor change hooks.")
    return caller
