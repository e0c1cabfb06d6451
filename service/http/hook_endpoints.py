"""What the operations on Agent Hooks do. All are about hooks of the caller's organization: another's do not exist."""

from msgspec.structs import asdict

from service.hooks.records import Hook, HookWithSecret, StartedDelivery
from service.hooks.registry import Hooks
from service.http.endpoints import Call, Handler


def hook_handlers(hooks: Hooks) -> dict[str, Handler]:
    """What answers the operations on hooks, by their names."""
    read, write = hooks.database.read, hooks.database.write

    async def create(call: Call) -> HookWithSecret:
        organization, creator, fields = call.organization, call.caller.name, asdict(call.body)
        return _with_secret(*await write(lambda: hooks.create(organization, **fields, created_by=creator)))

    async def rotate(call: Call) -> HookWithSecret:
        return _with_secret(*await write(hooks.rotate, call.organization, call.path["id"]))

    async def test(call: Call) -> StartedDelivery:
        return StartedDelivery(await write(hooks.send_test, call.organization, call.path["id"]))

    async def replay(call: Call) -> StartedDelivery:
        return StartedDelivery(await write(hooks.replay, call.organization, call.path["id"], call.path["delivery"]))

    return {
        "list-hooks": lambda call: read(hooks.of, call.organization),
        "create-hook": create,
        "read-hook": lambda call: read(hooks.hook, call.organization, call.path["id"]),
        "change-hook": lambda call: write(hooks.change, call.organization, call.path["id"], call.body),
        "delete-hook": lambda call: write(hooks.delete, call.organization, call.path["id"]),
        "test-hook": test,
        "rotate-hook-secret": rotate,
        "list-deliveries": lambda call: read(hooks.deliveries, call.organization, call.path["id"]),
        "replay-delivery": replay,
    }


def _with_secret(hook: Hook, secret: str) -> HookWithSecret:
    """A hook and its secret, this once."""
    return HookWithSecret(**asdict(hook), secret=secret)
