"""Operations on the API keys of the caller's organization."""

from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from data import BadInput
from service.access.api_keys import MAX_NAME_LENGTH, ApiKeys, Key, key_id_of
from service.core.clock import Time
from service.core.http.caller import Caller
from service.core.http.errors import Forbidden, NotFound
from service.core.http.operations import KIB, Call, Operation, Operations

OPERATIONS = Operations[ApiKeys]()


class NewApiKey(Struct, frozen=True):
    """An API key to be created."""

    name: Annotated[str, Meta(min_length=1, max_length=MAX_NAME_LENGTH)]
    expires_at: Annotated[
        str | None,
        Meta(description="expiry: a time such as 2027-01-31T12:00:00Z, or the last day of validity (UTC)"),
    ] = None


class ApiKey(Struct, frozen=True, forbid_unknown_fields=True):
    """The record of an API key, without the key itself."""

    id: Annotated[str, Meta(description="the first characters of the key")]
    name: str
    created_by: Annotated[
        str | None, Meta(description="user (`sub`) or browser session that created it; null if the command line did")
    ]
    created_at: Time
    last_used_at: Annotated[Time | None, Meta(description="to the hour, but not before created_at")]
    expires_at: Annotated[Time | None, Meta(description="time from which the key is rejected; null: never")]
    revoked_at: Time | None


class CreatedApiKey(ApiKey, frozen=True):
    """A new API key."""

    key: Annotated[str, Meta(description="shown only once")]


def key_manager(caller: Caller) -> None:
    """Raise Forbidden unless a caller may manage API keys."""
    if not caller.may_manage_keys:
        fix = "Use an identity token with a role that may write, or `traffic keys` on the server."
        raise Forbidden("This token may not manage API keys.", fix)


@OPERATIONS.handles(
    Operation(
        "GET /settings/api-keys", "list-api-keys",
        "The organization's API keys, oldest first. Requires an identity token with a role that may write.",
        {"200": list[ApiKey]}, key_manager,
    )
)  # fmt: skip
async def list_keys(keys: ApiKeys, call: Call) -> list[ApiKey]:
    return [_record(key) for key in await keys.database.read(keys.all_keys, call.organization)]


@OPERATIONS.handles(
    Operation(
        "POST /settings/api-keys", "create-api-key",
        "Create an API key. Requires an identity token with a role that may write.",
        {"201": CreatedApiKey}, key_manager, NewApiKey, 4 * KIB,
    )
)  # fmt: skip
async def create(keys: ApiKeys, call: Call) -> CreatedApiKey:
    body: NewApiKey = call.body
    key = await keys.database.write(keys.create_key, call.organization, body.name, call.caller.name, body.expires_at)
    created = _record(await keys.database.read(keys.key, key_id_of(key)))
    return CreatedApiKey(**msgspec.structs.asdict(created), key=key)


@OPERATIONS.handles(
    Operation(
        "DELETE /settings/api-keys/{id}", "revoke-api-key",
        "Revoke an API key; a running server rejects it within 5 s.", {"200": ApiKey}, key_manager,
    )
)  # fmt: skip
async def revoke(keys: ApiKeys, call: Call) -> ApiKey:
    key_id = call.path["id"]
    try:
        await keys.database.write(keys.revoke_key, key_id, call.organization)
    except BadInput as error:
        raise NotFound("No active key has this id.", "List the keys to see which are active.") from error
    return _record(await keys.database.read(keys.key, key_id))


def _record(key: Key) -> ApiKey:
    """Return a key as it appears in responses."""
    return msgspec.convert(key, ApiKey, from_attributes=True)
