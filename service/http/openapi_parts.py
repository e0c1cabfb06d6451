"""What the parts of the OpenAPI document are made of: responses with their headers, objects, references."""

from typing import Any, Final

ERRORS: Final = {
    "400": "A parameter or the body is invalid.",
    "401": "No valid token.",
    "408": "The request was not received in time.",
    "414": "The URL is too long.",
    "429": "Too many requests from this source address.",
    "431": "The headers are too many or too large.",
    "500": "The request failed.",
    "503": "The service is overloaded, or its disk is full or fails.",
}
WRITE_ERRORS: Final = {
    "403": "The token's role may not write.",
    "413": "The body exceeds a limit.",
}
MISSING: Final = {"404": "It does not exist."}
CONFLICTS: Final = {
    "409": "Its status does not allow that.",
    "412": "It has another version than If-Match says.",
}
HEADERS: Final = {
    "X-Request-Id": "id of this request in the server's log",
    "X-RateLimit-Limit": "requests answered per minute for one source address",
    "X-RateLimit-Remaining": "requests left in the current window",
    "X-RateLimit-Reset": "Unix time in seconds when the oldest counted request leaves the window",
    "Retry-After": "seconds to wait; 0 while requests remain",
}


def response(schema: dict[str, Any], description: str) -> dict[str, Any]:
    """A response with a body of this schema and the headers that every response has."""
    headers = {name: ref("headers", name) for name in HEADERS}
    return {"description": description, "headers": headers, "content": {"application/json": {"schema": schema}}}


def object_schema(properties: dict[str, Any]) -> dict[str, Any]:
    """The schema of an object with exactly these properties."""
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def ref(kind: str, name: str) -> dict[str, str]:
    """A reference to a component of the document."""
    return {"$ref": f"#/components/{kind}/{name}"}


def nullable(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema, or null."""
    return {**schema, "type": [schema["type"], "null"]}


def path_parameter(name: str, schema: dict[str, Any]) -> dict[str, Any]:
    """A parameter in the path."""
    return {"name": name, "in": "path", "required": True, "schema": schema}


def failures(*statuses: str) -> dict[str, dict[str, str]]:
    """References to the responses for these statuses."""
    return {status: ref("responses", status) for status in statuses}
