"""JSON bodies: every route that takes one refuses in the same words what is too large or not JSON."""

import pytest

from tests import identity

LIMITS = {"/settings/api-keys": 4 << 10, "/jobs": 64 << 10, "/agent-hooks": 16 << 10, "/mcp": 64 << 10}
"""Bytes of a body by path."""
NOT_JSON = {
    "empty": b"",
    "cut off": b'{"name":',
    "two values": b"{} {}",
    "no UTF-8": b'{"name": "\xff"}',
    "half a surrogate pair": b'{"name": "\\ud800"}',
    "NaN": b'{"name": NaN}',
    "too deep": b"[" * 2_000 + b"]" * 2_000,
}


@pytest.fixture(scope="module")
def client(shared_lake, opened, tmp_path_factory):
    with opened(shared_lake, "", **identity.settings_of(tmp_path_factory.mktemp("identity"))) as client:
        client.headers |= {"Authorization": f"Bearer {identity.token('acme', 'editor')}"}
        yield client


@pytest.mark.parametrize("body", NOT_JSON.values(), ids=NOT_JSON)
@pytest.mark.parametrize("path", LIMITS)
def test_what_is_not_json_is_400(client, path, body):
    response = client.post(path, content=body)
    assert (response.status_code, response.json()["error"]) == (400, "The body is not JSON.")


@pytest.mark.parametrize("body", [b"[]", b"null", b'"name"', b"1"])
@pytest.mark.parametrize("path", [path for path in LIMITS if path != "/mcp"])
def test_what_is_not_an_object_is_400(client, path, body):
    response = client.post(path, content=body)
    assert (response.status_code, response.json()["error"]) == (400, "The body is not a JSON object.")


@pytest.mark.parametrize(("path", "limit"), LIMITS.items())
def test_one_byte_more_than_the_limit_is_413(client, path, limit):
    assert client.post(path, content=b"{}".ljust(limit)).status_code == 400
    response = client.post(path, content=b"{}".ljust(limit + 1))
    assert response.status_code == 413
    assert response.json() == {"error": f"The body is larger than {limit >> 10} KiB.", "message": "Send less text."}
