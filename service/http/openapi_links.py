"""The part of the OpenAPI document about links."""

from typing import Any, Final

from service.http.openapi_parts import ERRORS, WRITE_ERRORS, failures, object_schema, path_parameter, response

_LINK: Final = {
    "short_code": {"type": "string"},
    "domain": {"type": "string", "description": "in its normal form; * for every domain"},
    "target_url": {"type": "string"},
    "created_at": {"type": "string", "format": "date-time", "description": "when it was added, or last changed"},
}
_TARGET: Final = {
    "type": "object",
    "required": ["target_url"],
    "additionalProperties": False,
    "properties": {"target_url": {"type": "string", "maxLength": 2048, "description": "an http or https address"}},
}


def paths() -> dict[str, Any]:
    """The route of one link."""
    name = {"type": "string", "minLength": 1}
    domain = path_parameter("domain", {**name, "description": "a host, or * for the link for every domain"})
    common = {"parameters": [domain, path_parameter("short_code", name)]}
    writing = failures(*ERRORS, *WRITE_ERRORS, "404")

    def link(description: str) -> dict[str, Any]:
        return response(object_schema(_LINK), description)

    return {
        "/links/{domain}/{short_code}": {
            "get": {
                "operationId": "get-link",
                "summary": "Where a short code leads.",
                **common,
                "responses": {"200": link("The link."), **failures(*ERRORS, "404")},
            },
            "put": {
                "operationId": "put-link",
                "summary": "Add a link, or change where it leads. Roles that may write only.",
                **common,
                "requestBody": {"required": True, "content": {"application/json": {"schema": _TARGET}}},
                "responses": {"200": link("The link, which existed."), "201": link("The new link."), **writing},
            },
            "delete": {
                "operationId": "delete-link",
                "summary": "Remove a link; its visits stay. Roles that may write only.",
                **common,
                "responses": {"200": link("The removed link."), **writing},
            },
        }
    }
