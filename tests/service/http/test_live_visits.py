"""What is made of a body that does not come whole."""

import pytest
from starlette.requests import Request

from service.api_keys import ApiKeys
from service.http.authentication import Caller
from service.http.endpoints import endpoint_of
from service.http.errors import InvalidBody
from service.http.key_endpoints import key_handlers
from service.http.operations import OPERATIONS


async def test_a_client_that_leaves_before_it_has_named_a_key_sent_a_bad_body_and_gets_none(control):
    pieces = iter([{"type": "http.request", "body": b'{"name":', "more_body": True}, {"type": "http.disconnect"}])

    async def receive():
        return next(pieces)

    keys = ApiKeys(control)
    caller = Caller("acme", "editor", "somebody", is_key=False)
    request = Request({"type": "http", "method": "POST", "headers": [], "caller": caller}, receive)
    operation = next(one for one in OPERATIONS if one.name == "create-api-key")
    endpoint = endpoint_of(operation, key_handlers(keys)["create-api-key"])
    with pytest.raises(InvalidBody, match="Incomplete body"):
        await endpoint(request)
    assert keys.all_keys("acme") == []
