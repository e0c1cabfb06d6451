"""The endpoints of Agent Hooks: who is sent messages about jobs, and what came of it."""

from collections.abc import Callable
from dataclasses import asdict
from typing import Any, Final, cast

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from data import BadInput
from service.encoding import encode
from service.hooks.records import Hook, HookChanges
from service.hooks.registry import HookConflict, Hooks, NoSuchHook
from service.http.authentication import Caller
from service.http.bodies import read_object
from service.http.endpoints import reject_body
from service.http.errors import Forbidden, InvalidBody, NotFound, StateConflict
from service.http.responses import JsonResponse
from service.threads import Arguments, Result

MAX_BODY_BYTES: Final = 16_384
_FIX: Final = "Send the fields name, url, events and active as /openapi.json describes them."
_KINDS: Final[dict[str, type]] = {"name": str, "url": str, "events": list, "active": bool}


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
            return JsonResponse(encode([hook_fields(hook) for hook in listed]))
        fields = await _read_fields(request)
        if not fields.keys() >= {"name", "url"}:
            raise InvalidBody("names no hook", 'Send {"name": "...", "url": "https://..."}.')

        def create() -> tuple[Hook, str]:
            return self._hooks.create(caller.organization, **fields, created_by=caller.name)

        hook, secret = await self._write(create)
        return JsonResponse(encode({**hook_fields(hook), "secret": secret}), 201)

    async def hook(self, request: Request) -> Response:
        """Return (GET), change (PATCH) or delete (DELETE) a hook."""
        organization, hook_id = _editor(request).organization, request.path_params["id"]
        if request.method == "DELETE":
            hook = await self._write(self._hooks.delete, organization, hook_id)
        elif request.method == "PATCH":
            changes = cast("HookChanges", await _read_fields(request))
            hook = await self._write(self._hooks.change, organization, hook_id, changes)
        else:
            reject_body(request)
            hook = await self._read(self._hooks.hook, organization, hook_id)
        return JsonResponse(encode(hook_fields(hook)))

    async def test(self, request: Request) -> Response:
        """Send a made-up job to a hook."""
        organization, hook_id = _editor(request).organization, request.path_params["id"]
        delivery_id = await self._write(self._hooks.send_test, organization, hook_id)
        return JsonResponse(encode({"delivery_id": delivery_id}), 202)

    async def secret(self, request: Request) -> Response:
        """Give a hook a new secret."""
        hook, secret = await self._write(self._hooks.rotate, _editor(request).organization, request.path_params["id"])
        return JsonResponse(encode({**hook_fields(hook), "secret": secret}))

    async def deliveries(self, request: Request) -> Response:
        """List the newest deliveries to a hook."""
        organization = _editor(request).organization
        reject_body(request)
        found = await self._read(self._hooks.deliveries, organization, request.path_params["id"])
        return JsonResponse(encode([asdict(delivery) for delivery in found]))

    async def replay(self, request: Request) -> Response:
        """Send a message again."""
        organization, ids = _editor(request).organization, request.path_params
        delivery_id = await self._write(self._hooks.replay, organization, ids["id"], ids["delivery"])
        return JsonResponse(encode({"delivery_id": delivery_id}), 202)

    async def _read(self, work: Callable[[*Arguments], Result], *arguments: *Arguments) -> Result:
        """The result of a method that only reads. Raises NotFound."""
        try:
            return await self._hooks.database.read(work, *arguments)
        except NoSuchHook as error:
            raise NotFound("There is no such hook or delivery.", "List the hooks to see which there are.") from error

    async def _write(self, work: Callable[[*Arguments], Result], *arguments: *Arguments) -> Result:
        """The result of a method that writes. Raises NotFound, StateConflict or InvalidBody."""
        try:
            return await self._hooks.database.write(work, *arguments)
        except NoSuchHook as error:
            raise NotFound("There is no such hook or delivery.", "List the hooks to see which there are.") from error
        except HookConflict as error:
            raise StateConflict(str(error)) from error
        except BadInput as error:
            raise InvalidBody("cannot be used", str(error)) from error


def hook_fields(hook: Hook) -> dict[str, Any]:
    """A hook in responses: its secret is not in it."""
    return {name: value for name, value in asdict(hook).items() if name != "organization"}


def _editor(request: Request) -> Caller:
    """The caller of a request. Raises Forbidden unless it may write: URLs of hooks often are secrets themselves."""
    caller: Caller = request.scope["caller"]
    if not caller.may_write:
        raise Forbidden("Viewers may neither see nor change hooks.")
    return caller


async def _read_fields(request: Request) -> dict[str, Any]:
    """The fields of a hook in a JSON body. Raises InvalidBody for unknown ones and other types, or BodyTooLarge."""
    fields = await read_object(request, MAX_BODY_BYTES, _FIX)
    for name, value in fields.items():
        if name not in _KINDS:
            raise InvalidBody(f"has an unknown field {name[:40]!r}", _FIX)
        if not isinstance(value, _KINDS[name]) or (isinstance(value, list) and not all(map(_is_text, value))):
            raise InvalidBody(f"has a {name} of another type", _FIX)
    return fields


def _is_text(value: object) -> bool:
    return isinstance(value, str)
