"""The OpenAPI document, generated from the catalog."""

from collections.abc import Sequence
from typing import Any, Final

from data.logs.reported import MAX_ROWS, SCHEMA
from queries import CATALOG, DEFAULT_RANGE, JOBS, RANGES, TRAFFIC_TYPES, Entry, Field, parameters_of
from service.http import openapi_hooks, openapi_jobs, openapi_links
from service.http.openapi_parts import CONFLICTS, ERRORS, HEADERS, MISSING, WRITE_ERRORS, object_schema, ref, response

_PARAMETERS: Final = {
    "range": (
        {"type": "string", "enum": list(RANGES), "default": DEFAULT_RANGE},
        "days ending today (inclusive)",
    ),
    "start_date": ({"type": "string"}, "first day, YYYY-MM-DD or RFC 3339; ignored without end_date"),
    "end_date": ({"type": "string"}, "last day (inclusive), like start_date; future days are capped at today"),
    "short_code": ({"type": "string"}, "only visits to this short code"),
    "target_url": ({"type": "string"}, "only visits to the link with this target; takes precedence over short_code"),
    "domain": ({"type": "string"}, "only visits to this domain"),
    "traffic_type": (
        {"type": "string"},
        f"only this category or group, case-insensitive: {', '.join(TRAFFIC_TYPES)}",
    ),
}


def document(base_path: str) -> dict[str, Any]:
    """The OpenAPI 3.1 document of a service under `base_path`."""
    routes = {f"/analytics/{entry.name}": _route(entry, parameters_of(entry)) for entry in CATALOG}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Traffic Analytics",
            "version": "1.0.0",
            "description": "Traffic to short links: people, four kinds of AI traffic, other automated traffic. Counts "
            "are of HTTP requests, not of people, sessions or citations. Days, hours and weeks are UTC.",
            "license": {"name": "MIT", "identifier": "MIT"},
        },
        "servers": [{"url": base_path or "/"}],
        "security": [{"bearer": []}],
        "paths": {
            **routes,
            **openapi_jobs.paths(_route(JOBS, []), json_schema(JOBS)["items"]),
            **openapi_hooks.paths(),
            "/visits": _visits(),
            "/mcp": _mcp(),
            **openapi_links.paths(),
            "/settings/api-keys": _api_keys(),
            "/settings/api-keys/{id}": _api_key(),
            "/healthz": _public("health", "Whether the service can answer queries."),
            "/openapi.json": _public("openapi", "This document."),
        },
        "components": {
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer", "description": "An API key or an identity token."}
            },
            "parameters": {
                name: {"name": name, "in": "query", "required": False, "description": meaning, "schema": schema}
                for name, (schema, meaning) in _PARAMETERS.items()
            },
            "headers": {
                name: {"description": meaning, "schema": {"type": "string" if name == "X-Request-Id" else "integer"}}
                for name, meaning in HEADERS.items()
            },
            "schemas": {"Error": _ERROR_SCHEMA},
            "responses": {
                name: response(ref("schemas", "Error"), text)
                for name, text in (ERRORS | WRITE_ERRORS | MISSING | CONFLICTS).items()
            },
        },
    }


_REFUSED: Final = {
    "type": "array",
    "items": {
        "type": "object",
        "required": ["index", "error"],
        "additionalProperties": False,
        "properties": {
            "index": {"type": "integer", "description": "index of the visit in the request, from 0"},
            "error": {"type": "string", "description": "reason for the refusal"},
        },
    },
}
_ERROR_SCHEMA: Final = {
    "type": "object",
    "required": ["error"],
    "properties": {
        "error": {"type": "string"},
        "message": {"type": "string"},
        "retryAfter": {"type": "integer", "description": "milliseconds; with 429 only"},
        "limit": {"type": "integer"},
        "remaining": {"type": "integer"},
        "accepted": {"type": "integer", "description": "0; with 400 of POST /visits when every visit was refused"},
        "refused": {"type": "integer"},
        "errors": _REFUSED,
        "status": {"type": "string", "description": "of the job; with 409 and 412"},
        "version": {"type": "integer", "description": "of the job; with 409 and 412"},
    },
}


def json_schema(entry: Entry) -> dict[str, Any]:
    """The JSON Schema of the answer of an entry."""
    if entry.shape == "parts":
        return object_schema({name: json_schema(part) for name, part in entry.members})
    row = object_schema({field.name: _property(field) for field in entry.fields})
    return row if entry.shape == "row" else {"type": "array", "items": row}


def _route(entry: Entry, parameters: Sequence[str]) -> dict[str, Any]:
    return {
        "get": {
            "operationId": entry.name,
            "summary": entry.description,
            "parameters": [ref("parameters", name) for name in parameters],
            "responses": {
                "200": response(json_schema(entry), "The answer."),
                **{status: ref("responses", status) for status in ERRORS},
            },
        }
    }


def _visits() -> dict[str, Any]:
    """The route that accepts live visits."""
    counts = object_schema({"accepted": {"type": "integer"}, "refused": {"type": "integer"}, "errors": _REFUSED})
    rows = {"type": "array", "items": {"type": "object", **SCHEMA, "title": "Visit"}, "maxItems": MAX_ROWS}
    body = {"application/json": {"schema": rows}, "application/x-ndjson": {"schema": {"type": "string"}}}
    return {
        "post": {
            "operationId": "visits",
            "summary": "Send live visits. Durable when acknowledged; included in answers computed 12 s later.",
            "description": "Refused visits are reported by their index; the others are stored. If all are "
            "refused, the answer is 400. Visits sent twice count twice. A request that timed out may have been stored "
            "or not.",
            "requestBody": {"required": True, "content": body},
            "responses": {
                "202": response(counts, "Numbers of accepted and refused visits, and the reasons."),
                **{status: ref("responses", status) for status in (*ERRORS, *WRITE_ERRORS)},
            },
        }
    }


def _mcp() -> dict[str, Any]:
    """The route for assistants."""
    message = {
        "type": "object",
        "required": ["jsonrpc", "method"],
        "properties": {
            "jsonrpc": {"const": "2.0"},
            "id": {"type": ["string", "integer"]},
            "method": {"enum": ["server/discover", "initialize", "ping", "tools/list", "tools/call"]},
            "params": {"type": "object"},
        },
    }
    result = response({"type": "object"}, "The result, or an error of JSON-RPC.")
    return {
        "post": {
            "operationId": "mcp",
            "summary": "One message of the Model Context Protocol: the reports as tools of an assistant.",
            "description": "Stateless: one JSON-RPC request, one answer. A notification has no answer.",
            "requestBody": {"required": True, "content": {"application/json": {"schema": message}}},
            "responses": {
                **{status: ref("responses", status) for status in (*ERRORS, "413")},
                **dict.fromkeys(("200", "400", "404"), result),
                "202": {**response({}, "A notification has no answer."), "content": {}},
            },
        }
    }


_KEY: Final = {
    "id": {"type": "string", "description": "the first characters of the key"},
    "name": {"type": "string"},
    "created_by": {"type": ["string", "null"], "description": "the identity token's `sub`; null for the command line"},
    "created_at": {"type": "string", "format": "date-time"},
    "last_used_at": {
        "type": ["string", "null"],
        "format": "date-time",
        "description": "to the hour, not before created_at",
    },
    "revoked_at": {"type": ["string", "null"], "format": "date-time"},
}
_NEW_KEY: Final = {
    "type": "object",
    "required": ["name"],
    "properties": {"name": {"type": "string", "minLength": 1, "maxLength": 100}},
}


def _api_keys() -> dict[str, Any]:
    """The routes that list and create API keys."""
    errors = {status: ref("responses", status) for status in (*ERRORS, *WRITE_ERRORS)}
    created = object_schema({**_KEY, "key": {"type": "string", "description": "shown only once"}})
    return {
        "get": {
            "operationId": "list-api-keys",
            "summary": "Every API key of the organization, oldest first. Identity tokens of roles that may write only.",
            "responses": {"200": response({"type": "array", "items": object_schema(_KEY)}, "The keys."), **errors},
        },
        "post": {
            "operationId": "create-api-key",
            "summary": "Create an API key. Identity tokens of roles that may write only.",
            "requestBody": {"required": True, "content": {"application/json": {"schema": _NEW_KEY}}},
            "responses": {"201": response(created, "The key, shown only once."), **errors},
        },
    }


def _api_key() -> dict[str, Any]:
    """The route that revokes an API key."""
    errors = {status: ref("responses", status) for status in (*ERRORS, *WRITE_ERRORS, "404")}
    identity = {"name": "id", "in": "path", "required": True, "schema": {"type": "string"}}
    return {
        "delete": {
            "operationId": "revoke-api-key",
            "summary": "Revoke an API key; a running server refuses it within 5 s.",
            "parameters": [identity],
            "responses": {"200": response(object_schema(_KEY), "The revoked key."), **errors},
        }
    }


def _public(name: str, summary: str) -> dict[str, Any]:
    ok = response({"type": "object"}, "The answer.")
    return {"get": {"operationId": name, "summary": summary, "security": [], "responses": {"200": ok}}}


def _property(field: Field) -> dict[str, Any]:
    schema = {**field.kind.schema, "description": field.meaning}
    return {**schema, "type": [schema["type"], "null"]} if field.nullable else schema
