"""The OpenAPI document, generated from the catalog of reports and the rows of all other operations."""

import re
from collections.abc import Iterable, Mapping
from importlib.metadata import version
from typing import Annotated, Any, Final

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from data.logs.reported import RefusedVisit
from queries import CATALOG, PARAMETERS, Entry, parameters_of
from service.app.operations import OPERATIONS
from service.core.http.operations import Operation

Schema = dict[str, Any]
_ERRORS: Final = {
    "400": "A parameter or the body is invalid.",
    "401": "No valid token.",
    "408": "The request was not received in time.",
    "414": "The URL is too long.",
    "429": "Too many requests from this source address.",
    "431": "There are too many headers, or they are too large.",
    "500": "The request failed: the answer took too long, needed too much memory, was interrupted, or hit a bug.",
    "503": "The service is overloaded, or its disk is full or failing.",
}
"""The errors of every operation that needs a token, by status."""
_MORE_ERRORS: Final = {
    "403": "The token's role may not do this.",
    "404": "Not found.",
    "409": "The current state does not allow this.",
    "412": "The current version differs from If-Match.",
    "413": "The body exceeds a limit.",
}
"""Errors that only some operations have, by status."""
_HEADERS: Final = {
    "X-Request-Id": "id of this request in the server's log",
    "X-RateLimit-Limit": "maximum number of requests per minute for each source address",
    "X-RateLimit-Remaining": "requests left in the current window",
    "X-RateLimit-Reset": "Unix time in seconds when the oldest counted request leaves the window",
    "Retry-After": "seconds to wait; 0 while requests remain",
}
_CONDITIONS: Final = {
    "412": ("If-Match", "the ETag that the current version must have, or * if any version must exist; otherwise 412"),
    "304": ("If-None-Match", "the ETag of an earlier response; 304 without a body if it is still current"),
}
"""The request header that can cause each status, and the header's meaning."""
_PATH_PARAMETERS: Final[dict[str, Schema]] = {
    "number": {"schema": {"type": "integer", "minimum": 1}},
    "domain": {"description": "a host, or * for the link that applies to every domain"},
}
"""Schemas or descriptions of some path parameters; all others are strings without a description."""


class Error(Struct, frozen=True, rename={"retry_after": "retryAfter"}):
    """The body of an error response."""

    error: str
    message: str | UnsetType = UNSET
    retry_after: Annotated[int, Meta(description="milliseconds to wait; only with 429")] | UnsetType = UNSET
    limit: int | UnsetType = UNSET
    remaining: int | UnsetType = UNSET
    accepted: Annotated[int, Meta(description="always 0; only in a 400 from POST /visits")] | UnsetType = UNSET
    refused: int | UnsetType = UNSET
    errors: list[RefusedVisit] | UnsetType = UNSET
    status: Annotated[str, Meta(description="status of the job; only with 409 and 412")] | UnsetType = UNSET
    version: Annotated[int, Meta(description="version of the job; only with 409 and 412")] | UnsetType = UNSET


def document(base_path: str) -> dict[str, Any]:
    """Return the OpenAPI 3.1 document for a service under `base_path`."""
    types = [type_ for one in OPERATIONS for type_ in (*one.answers.values(), *_bodies(one).values()) if type_]
    schemas, components = msgspec.json.schema_components([Error, *types], ref_template="#/components/schemas/{name}")
    schema_of = dict(zip(map(repr, types), schemas[1:], strict=True))
    paths: dict[str, Any] = {
        f"/analytics/{entry.name}": {
            "get": {
                "operationId": entry.name,
                "summary": entry.description,
                "parameters": [_ref("parameters", name) for name in parameters_of(entry)],
                "responses": {"200": _response(json_schema(entry)), **_failures(_ERRORS)},
            }
        }
        for entry in CATALOG
    }
    for one in OPERATIONS:
        method, path = one.route.split()
        paths.setdefault(path, {})[method.lower()] = _operation(one, schema_of)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Traffic Analytics",
            "version": version("traffic-analytics"),
            "description": "Traffic to short links: people, four kinds of AI traffic, other automated traffic. Counts "
            "are of HTTP requests, not of people, sessions or citations. Days, hours and weeks are in the "
            "organization's time zone, which X-Time-Zone names; times are UTC.",
            "license": {"name": "MIT", "identifier": "MIT"},
        },
        "servers": [{"url": base_path or "/"}],
        "security": [{"bearer": []}],
        "paths": paths,
        "components": {
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer", "description": "An API key or an identity token."}
            },
            "parameters": {
                name: _parameter(name, "query", row.description, row.schema) for name, row in PARAMETERS.items()
            },
            "headers": {
                name: {"description": meaning, "schema": {"type": "string" if name == "X-Request-Id" else "integer"}}
                for name, meaning in _HEADERS.items()
            },
            "schemas": components,
            "responses": {name: _response(schemas[0], meaning) for name, meaning in (_ERRORS | _MORE_ERRORS).items()},
        },
    }


def json_schema(entry: Entry) -> Schema:
    """Return the JSON Schema for an entry's answer."""
    if entry.shape == "parts":
        return _object({name: json_schema(part) for name, part in entry.members})
    properties: dict[str, Schema] = {}
    for field in entry.fields:
        kind = field.kind.schema
        nullable = {"type": [kind["type"], "null"]} if field.nullable else {}
        properties[field.name] = {**kind, "description": field.meaning, **nullable}
    row = _object(properties)
    return row if entry.shape == "row" else {"type": "array", "items": row}


def _operation(one: Operation, schema_of: dict[str, Schema]) -> dict[str, Any]:
    """Return an operation of the document. `schema_of` maps the repr() of a type to its schema."""
    answers = {status: _response(schema_of[repr(type_)] if type_ else None) for status, type_ in one.answers.items()}
    errors = () if one.is_public else (*_ERRORS, *one.error_statuses)
    parameters = [
        *(
            {"name": name, "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}
            | _PATH_PARAMETERS.get(name, {})
            for name in re.findall(r"{(\w+)}", one.route)
        ),
        *(_ref("parameters", name) for name in one.query),
        *(
            _parameter(name, "header", meaning, {"type": "string"})
            for status, (name, meaning) in _CONDITIONS.items()
            if status in (*errors, *one.answers)
        ),
    ]
    operation: dict[str, Any] = {"operationId": one.name, "summary": one.summary}
    if one.description:
        operation["description"] = one.description
    if parameters:
        operation["parameters"] = parameters
    if one.body:
        content = {media: {"schema": schema_of[repr(type_)]} for media, type_ in _bodies(one).items()}
        if one.examples:
            content["application/json"]["examples"] = {name: {"value": it} for name, it in one.examples.items()}
        operation["requestBody"] = {"required": True, "content": content}
    if one.is_public:
        operation["security"] = []
    return {**operation, "responses": {**_failures(errors), **answers}}


def _parameter(name: str, place: str, description: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return an optional parameter."""
    return {"name": name, "in": place, "required": False, "description": description, "schema": schema}


def _bodies(one: Operation) -> dict[str, Any]:
    """Return the types of a request's body by media type."""
    if one.body is None:
        return {}
    return one.body if isinstance(one.body, dict) else {"application/json": one.body}


def _response(schema: Schema | None, description: str = "The answer.") -> dict[str, Any]:
    """Return a response with a body of this schema, or without a body, and with the headers of all responses."""
    content = {"application/json": {"schema": schema}} if schema else {}
    headers = {name: _ref("headers", name) for name in _HEADERS}
    return {"description": description, "headers": headers, "content": content}


def _failures(statuses: Iterable[str]) -> dict[str, dict[str, str]]:
    return {status: _ref("responses", status) for status in statuses}


def _ref(kind: str, name: str) -> dict[str, str]:
    """Return a reference to a component of the document."""
    return {"$ref": f"#/components/{kind}/{name}"}


def _object(properties: dict[str, Any]) -> Schema:
    """Return the schema of an object with exactly these properties."""
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}
