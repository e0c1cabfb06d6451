"""The part of the OpenAPI document about Agent Hooks."""

from collections.abc import Sequence
from typing import Any, Final

from service.hooks.outbox import EVENTS, MAX_DELIVERIES, TEST_EVENT
from service.hooks.registry import DEFAULT_EVENTS, MAX_HOOKS, MAX_NAME_LENGTH
from service.hooks.urls import MAX_URL_LENGTH
from service.http.openapi_parts import ERRORS, WRITE_ERRORS, failures, nullable, object_schema, path_parameter, response
from service.outgoing.connection import ERRORS as DELIVERY_ERRORS

_TEXT: Final = {"type": "string"}
_COUNT: Final = {"type": "integer", "minimum": 0}
_TIME: Final = {"type": "string", "format": "date-time"}
_EVENTS: Final = {
    "type": "array",
    "items": {"type": "string", "enum": list(EVENTS)},
    "minItems": 1,
    "default": list(DEFAULT_EVENTS),
    "description": "what is sent to it",
}
_FIELDS: Final = {
    "name": {"type": "string", "minLength": 1, "maxLength": MAX_NAME_LENGTH, "description": "printable characters"},
    "url": {
        "type": "string",
        "maxLength": MAX_URL_LENGTH,
        "description": "https, without user and fragment; http only into networks that the operator names",
    },
    "events": _EVENTS,
    "active": {"type": "boolean", "default": True, "description": "whether messages are sent"},
}
_HOOK: Final = {
    "id": _TEXT,
    **_FIELDS,
    "created_at": _TIME,
    "created_by": {**nullable(_TEXT), "description": "key id or `sub` of the caller; null for the command line"},
    "secret_last4": {**_TEXT, "description": "the last four characters of the secret"},
    "secret_rotated_at": nullable(_TIME),
    "previous_secret_until": {**nullable(_TIME), "description": "until then, messages have two signatures"},
    "last_success_at": nullable(_TIME),
    "last_failure_at": nullable(_TIME),
    "consecutive_failures": _COUNT,
    "disabled_reason": {**nullable(_TEXT), "description": "why the service made it inactive"},
}
_SECRET: Final = {"secret": {**_TEXT, "description": "shown only once: whsec_ and a key in base64"}}
_DELIVERY: Final = {
    "id": {**_TEXT, "description": "the header webhook-id of the message"},
    "hook_id": _TEXT,
    "event": {"type": "string", "enum": [*EVENTS, TEST_EVENT]},
    "job_id": nullable(_TEXT),
    "status": {"type": "string", "enum": ["pending", "delivered", "dead"]},
    "attempts": _COUNT,
    "status_code": {"type": ["integer", "null"], "description": "of the last response"},
    "error": {"type": ["string", "null"], "enum": [*DELIVERY_ERRORS, None], "description": "why there was no response"},
    "ms": {"type": ["integer", "null"], "description": "duration of the last attempt"},
    "created_at": _TIME,
    "attempted_at": nullable(_TIME),
    "next_attempt_at": nullable(_TIME),
}
_STARTED: Final = object_schema({"delivery_id": _TEXT})


def paths() -> dict[str, Any]:
    """The paths below /agent-hooks."""
    hook, made = object_schema(_HOOK), object_schema({**_HOOK, **_SECRET})
    hooks, deliveries = {"type": "array", "items": hook}, {"type": "array", "items": object_schema(_DELIVERY)}
    return {
        "/agent-hooks": {
            "get": _route("list-hooks", "Every Agent Hook of the organization, oldest first.", "200", hooks),
            "post": _route(
                "create-hook",
                f"Create an Agent Hook, to which signed messages about jobs are sent. At most {MAX_HOOKS}.",
                "201",
                made,
                body=["name", "url"],
            ),
        },
        "/agent-hooks/{id}": {
            "get": _route("read-hook", "One Agent Hook.", "200", hook, "id"),
            "patch": _route(
                "change-hook",
                "Change a hook. Making it active clears its failures; making it inactive ends what waits for it.",
                "200",
                hook,
                "id",
                body=[],
            ),
            "delete": _route("delete-hook", "Delete a hook with its deliveries.", "200", hook, "id"),
        },
        "/agent-hooks/{id}/test": {
            "post": _route(
                "test-hook", f"Send a made-up job, with the event {TEST_EVENT}. While one is pending, that is 409.",
                "202", _STARTED, "id", errors=["409"],
            )
        },
        "/agent-hooks/{id}/secret": {
            "post": _route(
                "rotate-hook-secret",
                "Make a new secret. For 24 hours, messages are signed with the old one, too.",
                "200",
                made,
                "id",
            )
        },
        "/agent-hooks/{id}/deliveries": {
            "get": _route(
                "list-deliveries",
                f"The newest {MAX_DELIVERIES} messages to a hook with the outcome of their last attempt.",
                "200",
                deliveries,
                "id",
            )
        },
        "/agent-hooks/{id}/deliveries/{delivery}/replay": {
            "post": _route(
                "replay-delivery", "Send a message again, with the same id.", "202", _STARTED, "id", "delivery",
            )
        },
    }  # fmt: skip


def _route(
    name: str,
    summary: str,
    status: str,
    schema: dict[str, Any],
    *parameters: str,
    body: list[str] | None = None,
    errors: Sequence[str] = (),
) -> dict[str, Any]:
    """An operation. `body` names the fields that are required in its body; None: it has no body.

    `errors` are the statuses of its own, besides those that every operation has.
    """
    errors = [*ERRORS, *WRITE_ERRORS, *(["404"] if parameters else []), *errors]
    route = {
        "operationId": name,
        "summary": summary,
        "parameters": [path_parameter(one, _TEXT) for one in parameters],
        "responses": {status: response(schema, "Done."), **failures(*errors)},
    }
    if body is not None:
        fields = {"type": "object", "properties": _FIELDS, "required": body, "additionalProperties": False}
        route["requestBody"] = {"required": True, "content": {"application/json": {"schema": fields}}}
    return route
