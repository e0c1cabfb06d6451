"""What the operations on Agent Hooks do. All are about hooks of the caller's organization: another's do not exist."""

from msgspec.structs import asdict

from service.hooks.records import Delivery, Hook, HookWithSecret, StartedDelivery
from service.hooks.registry import Hooks
from service.http.endpoints import Call, Handler


def hook_handlers(hooks: Hooks) -> dict[str, Handler]:
    """What answers the operations on hooks, by their names."""
    database = hooks.database

    async def list_hooks(call: Call) -> list[Hook]:
        return await database.read(hooks.of, call.organization)

    async def create(call: Call) -> HookWithSecret:
        organization, creator, fields = call.organization, call.caller.name, asdict(call.body)
        return _with_secret(*await database.write(lambda: hooks.create(organization, **fields, created_by=creator)))

    async def read(call: Call) -> Hook:
        return await database.read(hooks.hook, call.organization, call.path["id"])

    async def change(call: Call) -> Hook:
        return await database.write(hooks.change, call.organization, call.path["id"], call.body)

    async def delete(call: Call) -> Hook:
        return await database.write(hooks.delete, call.organization, call.path["id"])

    async def test(call: Call) -> StartedDelivery:
        return StartedDelivery(await database.write(hooks.send_test, call.organization, call.path["id"]))

    async def rotate(call: Call) -> HookWithSecret:
        return _with_secret(*await database.write(hooks.rotate, call.organization, call.path["id"]))

    async def deliveries(call: Call) -> list[Delivery]:
        return await database.read(hooks.deliveries, call.organization, call.path["id"])

    async def replay(call: Call) -> StartedDelivery:
        ids = call.path
        return StartedDelivery(await database.write(hooks.replay, call.organization, ids["id"], ids["delivery"]))

    return {
        "list-hooks": list_hooks,
        "create-hook": create,
        "read-hook": read,
        "change-hook": change,
        "delete-hook": delete,
        "test-hook": test,
        "rotate-hook-secret": rotate,
        "list-deliveries": deliveries,
        "replay-delivery": replay,
    }


def _with_secret(hook: Hook, secret: str) -> HookWithSecret:
    """A hook and its secret, this once."""
    return HookWithSecret(**asdict(hook), secret=secret)
