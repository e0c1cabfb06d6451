"""API operations on the Agent Hooks of the caller's organization. Other organizations' hooks are not found."""

from msgspec.structs import asdict

from service.core.http.caller import Caller
from service.core.http.errors import Forbidden
from service.core.http.operations import KIB, Call, Operation, Operations
from service.hooks.outbox import MAX_DELIVERIES, TEST_EVENT
from service.hooks.records import Delivery, Hook, HookChanges, HookWithSecret, NewHook, StartedDelivery
from service.hooks.registry import MAX_HOOKS, Hooks

OPERATIONS = Operations[Hooks]()


def hook_editor(caller: Caller) -> None:
    """Raise Forbidden for viewers: hook URLs are often secrets themselves."""
    if not caller.may_write:
        raise Forbidden("Viewers may neither see nor change hooks.")


@OPERATIONS.handles(
    Operation(
        "GET /agent-hooks", "list-hooks", "Every Agent Hook of the organization, oldest first.",
        {"200": list[Hook]}, hook_editor,
    )
)  # fmt: skip
async def list_hooks(hooks: Hooks, call: Call) -> list[Hook]:
    return await hooks.database.read(hooks.of, call.organization)


@OPERATIONS.handles(
    Operation(
        "POST /agent-hooks", "create-hook",
        f"Create an Agent Hook, which gets signed messages about jobs. The maximum is {MAX_HOOKS} hooks.",
        {"201": HookWithSecret}, hook_editor, NewHook, 16 * KIB,
    )
)  # fmt: skip
async def create(hooks: Hooks, call: Call) -> HookWithSecret:
    organization, creator, fields = call.organization, call.caller.name, asdict(call.body)
    return _with_secret(*await hooks.database.write(lambda: hooks.create(organization, **fields, created_by=creator)))


@OPERATIONS.handles(Operation("GET /agent-hooks/{id}", "read-hook", "One Agent Hook.", {"200": Hook}, hook_editor))
async def read(hooks: Hooks, call: Call) -> Hook:
    return await hooks.database.read(hooks.hook, call.organization, call.path["id"])


@OPERATIONS.handles(
    Operation(
        "PATCH /agent-hooks/{id}", "change-hook",
        "Change a hook. Activating it clears its failures; deactivating it ends its pending messages.",
        {"200": Hook}, hook_editor, HookChanges, 16 * KIB,
    )
)  # fmt: skip
async def change(hooks: Hooks, call: Call) -> Hook:
    return await hooks.database.write(hooks.change, call.organization, call.path["id"], call.body)


@OPERATIONS.handles(
    Operation(
        "DELETE /agent-hooks/{id}", "delete-hook", "Delete a hook and its deliveries.", {"200": Hook}, hook_editor
    )
)
async def delete(hooks: Hooks, call: Call) -> Hook:
    return await hooks.database.write(hooks.delete, call.organization, call.path["id"])


@OPERATIONS.handles(
    Operation(
        "POST /agent-hooks/{id}/test", "test-hook",
        f"Send a test job, with the event {TEST_EVENT}. 409 while another test is pending.",
        {"202": StartedDelivery}, hook_editor, errors="409",
    )
)  # fmt: skip
async def test(hooks: Hooks, call: Call) -> StartedDelivery:
    return StartedDelivery(await hooks.database.write(hooks.send_test, call.organization, call.path["id"]))


@OPERATIONS.handles(
    Operation(
        "POST /agent-hooks/{id}/secret", "rotate-hook-secret",
        "Create a new secret. For 24 hours, messages are also signed with the old secret.",
        {"200": HookWithSecret}, hook_editor,
    )
)  # fmt: skip
async def rotate(hooks: Hooks, call: Call) -> HookWithSecret:
    return _with_secret(*await hooks.database.write(hooks.rotate, call.organization, call.path["id"]))


@OPERATIONS.handles(
    Operation(
        "GET /agent-hooks/{id}/deliveries", "list-deliveries",
        f"The newest {MAX_DELIVERIES} messages to a hook, with the outcome of their last attempt.",
        {"200": list[Delivery]}, hook_editor,
    )
)  # fmt: skip
async def list_deliveries(hooks: Hooks, call: Call) -> list[Delivery]:
    return await hooks.database.read(hooks.deliveries, call.organization, call.path["id"])


@OPERATIONS.handles(
    Operation(
        "POST /agent-hooks/{id}/deliveries/{delivery}/replay", "replay-delivery",
        "Send a message again, with the same id.", {"202": StartedDelivery}, hook_editor, errors="409",
    )
)  # fmt: skip
async def replay(hooks: Hooks, call: Call) -> StartedDelivery:
    ids = call.path
    return StartedDelivery(await hooks.database.write(hooks.replay, call.organization, ids["id"], ids["delivery"]))


def _with_secret(hook: Hook, secret: str) -> HookWithSecret:
    """Return a hook with its secret, which is shown only once."""
    return HookWithSecret(**asdict(hook), secret=secret)
