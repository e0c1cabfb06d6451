"""What is made of a body that does not come whole."""

import asyncio

import pytest
from starlette.requests import Request

from service.api_keys import ApiKeys
from service.control_database import ControlDatabase
from service.http.authentication import Caller
from service.http.endpoints import endpoint_of
from service.http.errors import InvalidBody
from service.http.key_endpoints import key_handlers
from service.http.operations import OPERATIONS


def test_a_client_that_leaves_before_it_has_named_a_key_sent_a_bad_body_and_gets_none(lake):
    pieces = iter([{"type": "http.request", "body": b'{"name":', "more_body": True}, {"type": "http.disconnect"}])

    async def receive():
        return next(pieces)

    control = ApiKeys(ControlDatabase(lake))
    caller = Caller("acme", "editor", "somebody", is_key=False)
    request = Request({"type": "http", "method": "POST", "headers": [], "caller": caller}, receive)
    operation = next(one for one in OPERATIONS if one.name == "create-api-key")
    endpoint = endpoint_of(operation, key_handlers(control)["create-api-key"])
    with pytest.raises(InvalidBody, match="Incomplete body"):
        asyncio.run(endpoint(request))
    assert control.keys_of("acme") == []
    control.database.close()
