"""What the operations on API keys do. All are about keys of the caller's organization."""

import msgspec

from data import BadInput
from service.api_keys import ApiKeys, Key, key_id_of
from service.http.endpoints import Call, Handler
from service.http.errors import NotFound
from service.http.schemas import ApiKey, CreatedApiKey, NewApiKey


def key_handlers(keys: ApiKeys) -> dict[str, Handler]:
    """What answers the operations on API keys, by their names."""
    database = keys.database

    async def list_keys(call: Call) -> list[ApiKey]:
        return [_record(key) for key in await database.read(keys.all_keys, call.organization)]

    async def create(call: Call) -> CreatedApiKey:
        body: NewApiKey = call.body
        key = await database.write(keys.create_key, call.organization, body.name, call.caller.name, body.expires_at)
        created = _record(await database.read(keys.key, key_id_of(key)))
        return CreatedApiKey(**msgspec.structs.asdict(created), key=key)

    async def revoke(call: Call) -> ApiKey:
        key_id = call.path["id"]
        try:
            await database.write(keys.revoke_key, key_id, call.organization)
        except BadInput as error:
            raise NotFound("No active key has this id.", "List the keys to see which are active.") from error
        return _record(await database.read(keys.key, key_id))

    return {"list-api-keys": list_keys, "create-api-key": create, "revoke-api-key": revoke}


def _record(key: Key) -> ApiKey:
    """A key in responses."""
    return msgspec.convert(key, ApiKey, from_attributes=True)
