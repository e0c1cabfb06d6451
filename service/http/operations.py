"""What the API can do beside the reports: a row for each operation, from which the OpenAPI document is made."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Any, Final, NamedTuple

import orjson
from msgspec import Meta

from data.logs.reported import MAX_ROWS, Reported
from service.hooks.outbox import MAX_DELIVERIES, TEST_EVENT
from service.hooks.records import Delivery, Hook, HookChanges, HookWithSecret, NewHook, StartedDelivery
from service.hooks.registry import MAX_HOOKS
from service.http.schemas import (
    ApiKey,
    CreatedApiKey,
    ImplementationProgress,
    JobDecision,
    LinkTarget,
    NewApiKey,
    NewJob,
    ReceivedVisits,
    RpcRequest,
    StoredLink,
)
from service.jobs.implementations import RULE, Draft
from service.jobs.records import ImplementationWithContent, JobRecord, JobRow
from service.jobs.redirects import RedirectGuess, ShippedRedirect

Json = dict[str, Any]
_NO_HOOK: Final = "403 404"
_WRITE: Final = "403 413"
_WRITE_ONE: Final = "403 404 413"
_CHANGE_JOB: Final = "403 404 409 412 413"


class Operation(NamedTuple):
    """One operation of the API."""

    route: str  # method and path
    name: str
    summary: str
    answers: dict[str, Any]  # the type of the body by status; None: there is no body
    errors: str = ""  # statuses, beside those that every operation has; with 412, it takes If-Match
    body: Any = None  # the type of the request's body, or types by media type
    description: str = ""
    examples: Mapping[str, Json] = MappingProxyType({})  # of the body, by name
    is_public: bool = False
    query: tuple[str, ...] = ()  # names of PARAMETERS


JOBS: Final = (
    Operation("GET /jobs", "jobs", "Every job of the organization, newest first.", {"200": list[JobRow]}),
    Operation(
        "POST /jobs", "create-job", "Write a job by hand. Title and summary stay as they are written.",
        {"201": JobRecord}, "403 409 413", NewJob,
        examples={
            "link": {"title": "The launch link is old", "summary": "Redirect it to v2.", "short_code": "launch"}
        },
    ),
    Operation(
        "GET /jobs/{id}", "job", "One job, with its evidence, actions, implementation, outcome and history.",
        {"200": JobRecord}, "404",
    ),
    Operation(
        "GET /jobs/{id}/guesses", "redirect-guesses",
        "Where the dead path of a job may have been meant to lead: at most three guesses, the likeliest first.",
        {"200": list[RedirectGuess]}, "404",
        description="Links, and paths that were answered in the last 28 days, whose spelling is similar. A guess "
        "proves nothing: look at it before you redirect there. Jobs that no redirect resolves have none.",
    ),
    Operation(
        "POST /jobs/{id}/actions", "act-on-job", "Review, approve, dismiss, resolve or reopen a job.",
        {"200": JobRecord}, _CHANGE_JOB, JobDecision,
        "`action_id` is review, dismiss, resolve, reopen, `approve_fix` (which approves the job's own action) or the "
        "id of that action. What the status does not allow is 409.",
        {
            "approve": {"action_id": "approve_fix", "implementation_type": "patch"},
            "dismiss": {"action_id": "dismiss", "note": "The page is gone for good."},
        },
    ),
    Operation(
        "POST /jobs/{id}/implementations", "attach-implementation",
        "Attach an implementation to an approved job. Nothing is shipped by that.",
        {"201": ImplementationWithContent}, _CHANGE_JOB, Draft,
        "Send content with its content_type, or the https url where it is. A patch of the type application/json is a "
        "redirect rule from the path of the job; `redirect_to` alone makes one, and where the path is a short code, it "
        "is the link's target from now on.",
        {
            "redirect": {"implementation_type": "patch", "redirect_to": "https://example.com/guide"},
            "rule": {
                "implementation_type": "patch",
                "content_type": "application/json",
                "content": orjson.dumps(RULE).decode(),
            },
            "pull request": {"implementation_type": "patch", "url": "https://git.example.com/site/pulls/7"},
        },
    ),
    Operation(
        "GET /jobs/{id}/implementations/{number}", "implementation",
        "One implementation, with its content as a string.", {"200": ImplementationWithContent}, "404",
    ),
    Operation(
        "POST /jobs/{id}/implementations/{number}/status", "set-implementation-status",
        "Say that an implementation is accepted, shipped or withdrawn. Shipped starts the outcome.",
        {"200": JobRecord}, _CHANGE_JOB, ImplementationProgress,
        examples={"shipped": {"status": "shipped", "shipped_at": "2026-11-20T10:00:00Z"}},
    ),
    Operation(
        "GET /implementations/active", "active-implementations",
        "Every redirect that was shipped and not withdrawn, for edge workers that poll.",
        {"200": list[ShippedRedirect], "304": None}, description="`If-None-Match` with the last `ETag`: 304 while "
        "nothing has changed.", query=("domain",),
    ),
)  # fmt: skip

HOOKS: Final = (
    Operation(
        "GET /agent-hooks", "list-hooks", "Every Agent Hook of the organization, oldest first.",
        {"200": list[Hook]}, "403",
    ),
    Operation(
        "POST /agent-hooks", "create-hook",
        f"Create an Agent Hook, to which signed messages about jobs are sent. At most {MAX_HOOKS}.",
        {"201": HookWithSecret}, _WRITE, NewHook,
    ),
    Operation("GET /agent-hooks/{id}", "read-hook", "One Agent Hook.", {"200": Hook}, _NO_HOOK),
    Operation(
        "PATCH /agent-hooks/{id}", "change-hook",
        "Change a hook. Making it active clears its failures; making it inactive ends what waits for it.",
        {"200": Hook}, _WRITE_ONE, HookChanges,
    ),
    Operation(
        "DELETE /agent-hooks/{id}", "delete-hook", "Delete a hook with its deliveries.", {"200": Hook}, _WRITE_ONE
    ),
    Operation(
        "POST /agent-hooks/{id}/test", "test-hook",
        f"Send a made-up job, with the event {TEST_EVENT}. While one is pending, that is 409.",
        {"202": StartedDelivery}, f"{_WRITE_ONE} 409",
    ),
    Operation(
        "POST /agent-hooks/{id}/secret", "rotate-hook-secret",
        "Make a new secret. For 24 hours, messages are signed with the old one, too.",
        {"200": HookWithSecret}, _WRITE_ONE,
    ),
    Operation(
        "GET /agent-hooks/{id}/deliveries", "list-deliveries",
        f"The newest {MAX_DELIVERIES} messages to a hook with the outcome of their last attempt.",
        {"200": list[Delivery]}, _NO_HOOK,
    ),
    Operation(
        "POST /agent-hooks/{id}/deliveries/{delivery}/replay", "replay-delivery",
        "Send a message again, with the same id.", {"202": StartedDelivery}, _WRITE_ONE,
    ),
)  # fmt: skip

OTHERS: Final = (
    Operation(
        "POST /visits", "visits",
        "Send live visits. Durable when acknowledged; included in answers computed 12 s later.",
        {"202": ReceivedVisits}, _WRITE,
        {"application/json": Annotated[list[Reported], Meta(max_length=MAX_ROWS)], "application/x-ndjson": str},
        "Refused visits are reported by their index; the others are stored. If all are refused, the answer is 400. "
        "Visits sent twice count twice. A request that timed out may have been stored or not.",
    ),
    Operation(
        "POST /mcp", "mcp", "One message of the Model Context Protocol: the reports as tools of an assistant.",
        {"200": Json, "400": Json, "404": Json, "202": None}, "413", RpcRequest,
        "Stateless: one JSON-RPC request, one answer. A notification has no answer.",
    ),
    Operation(
        "GET /links/{domain}/{short_code}", "get-link", "Where a short code leads.", {"200": StoredLink}, "404"
    ),
    Operation(
        "PUT /links/{domain}/{short_code}", "put-link",
        "Add a link (201), or change where it leads (200). Roles that may write only.",
        {"200": StoredLink, "201": StoredLink}, _WRITE_ONE, LinkTarget,
    ),
    Operation(
        "DELETE /links/{domain}/{short_code}", "delete-link",
        "Remove a link; its visits stay. Roles that may write only.", {"200": StoredLink}, _WRITE_ONE,
    ),
    Operation(
        "GET /settings/api-keys", "list-api-keys",
        "Every API key of the organization, oldest first. Identity tokens of roles that may write only.",
        {"200": list[ApiKey]}, "403",
    ),
    Operation(
        "POST /settings/api-keys", "create-api-key",
        "Create an API key. Identity tokens of roles that may write only.", {"201": CreatedApiKey}, _WRITE, NewApiKey,
    ),
    Operation(
        "DELETE /settings/api-keys/{id}", "revoke-api-key",
        "Revoke an API key; a running server refuses it within 5 s.", {"200": ApiKey}, _WRITE_ONE,
    ),
    Operation("GET /healthz", "health", "Whether the service can answer queries.", {"200": Json}, is_public=True),
    Operation("GET /openapi.json", "openapi", "This document.", {"200": Json}, is_public=True),
)  # fmt: skip

OPERATIONS: Final = (*JOBS, *HOOKS, *OTHERS)
"""In the order in which they are documented."""
