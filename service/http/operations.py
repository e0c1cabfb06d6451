"""What the API can do beside the reports: a row for each operation, from which routes and OpenAPI document are made."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Annotated, Any, Final, NamedTuple

import orjson
from msgspec import Meta

from data.logs.reported import MAX_ROWS, Reported
from service.hooks.outbox import MAX_DELIVERIES, TEST_EVENT
from service.hooks.records import Delivery, Hook, HookChanges, HookWithSecret, NewHook, StartedDelivery
from service.hooks.registry import MAX_HOOKS
from service.http import schemas
from service.http.authentication import Caller
from service.http.errors import Forbidden
from service.jobs.implementations import RULE, Draft
from service.jobs.records import ImplementationWithContent, JobRecord, JobRow
from service.jobs.redirects import RedirectGuess, ShippedRedirect

Json = dict[str, Any]
_KIB: Final = 1 << 10
MAX_IMPLEMENTATION_BYTES: Final = 2_048 * _KIB
"""Of the body with an implementation: its content has 256 KiB, and JSON may escape each of its letters."""


def any_caller(_: Caller) -> None:
    """Allow an operation to viewers, too."""


def writer(caller: Caller) -> None:
    """Raise Forbidden for viewers."""
    if not caller.may_write:
        raise Forbidden


def hook_editor(caller: Caller) -> None:
    """Raise Forbidden for viewers: URLs of hooks often are secrets themselves."""
    if not caller.may_write:
        raise Forbidden("Viewers may neither see nor change hooks.")


def key_manager(caller: Caller) -> None:
    """Raise Forbidden unless a caller may manage API keys."""
    if not caller.may_manage_keys:
        fix = "Use an identity token of a role that may write; or `traffic keys` on the server."
        raise Forbidden("This token may not manage API keys.", fix)


class Operation(NamedTuple):
    """One operation of the API."""

    route: str  # method and path
    name: str
    summary: str
    answers: dict[str, Any]  # the type of the body by status, first that of success; None: there is no body
    check: Callable[[Caller], None] = any_caller
    body: Any = None  # the type of the request's body, or types by media type
    max_bytes: int = 0  # of that body; 0: the handler reads it
    errors: str = ""  # statuses beside those that follow from the row; with 412, it takes If-Match
    description: str = ""
    examples: Mapping[str, Json] = MappingProxyType({})  # of the body, by name
    is_public: bool = False
    query: tuple[str, ...] = ()  # names of PARAMETERS

    @property
    def error_statuses(self) -> list[str]:
        """The statuses of its errors, beside those that every operation has."""
        possible = {"403": self.check is not any_caller, "404": "{" in self.route, "413": self.body is not None}
        return [*(status for status, is_possible in possible.items() if is_possible), *self.errors.split()]


JOBS: Final = (
    Operation("GET /jobs", "jobs", "Every job of the organization, newest first.", {"200": list[JobRow]}),
    Operation(
        "POST /jobs", "create-job", "Write a job by hand. Title and summary stay as they are written.",
        {"201": JobRecord}, writer, schemas.NewJob, 64 * _KIB, "409",
        examples={"link": {"title": "The launch link is old", "summary": "Redirect it to v2.", "short_code": "launch"}},
    ),
    Operation(
        "GET /jobs/{id}", "job", "One job, with its evidence, actions, implementation, outcome and history.",
        {"200": JobRecord},
    ),
    Operation(
        "GET /jobs/{id}/guesses", "redirect-guesses",
        "Where the dead path of a job may have been meant to lead: at most three guesses, the likeliest first.",
        {"200": list[RedirectGuess]},
        description="Links, and paths that were answered in the last 28 days, whose spelling is similar. A guess "
        "proves nothing: look at it before you redirect there. Jobs that no redirect resolves have none.",
    ),
    Operation(
        "POST /jobs/{id}/actions", "act-on-job", "Review, approve, dismiss, resolve or reopen a job.",
        {"200": JobRecord}, writer, schemas.JobDecision, 64 * _KIB, "409 412",
        "`action_id` is review, dismiss, resolve, reopen, `approve_fix` (which approves the job's own action) or the "
        "id of that action. What the status does not allow is 409.",
        {"approve": {"action_id": "approve_fix", "implementation_type": "patch"},
         "dismiss": {"action_id": "dismiss", "note": "The page is gone for good."}},
    ),
    Operation(
        "POST /jobs/{id}/implementations", "attach-implementation",
        "Attach an implementation to an approved job. Nothing is shipped by that.",
        {"201": ImplementationWithContent}, writer, Draft, MAX_IMPLEMENTATION_BYTES, "409 412",
        "Send content with its content_type, or the https url where it is. A patch of the type application/json is a "
        "redirect rule from the path of the job; `redirect_to` alone makes one, and where the path is a short code, it "
        "is the link's target from now on.",
        {
            "redirect": {"implementation_type": "patch", "redirect_to": "https://example.com/guide"},
            "rule": {"implementation_type": "patch", "content_type": "application/json",
                     "content": orjson.dumps(RULE).decode()},
            "pull request": {"implementation_type": "patch", "url": "https://git.example.com/site/pulls/7"},
        },
    ),
    Operation(
        "GET /jobs/{id}/implementations/{number}", "implementation",
        "One implementation, with its content as a string.", {"200": ImplementationWithContent},
    ),
    Operation(
        "POST /jobs/{id}/implementations/{number}/status", "set-implementation-status",
        "Mark an implementation as accepted, shipped or withdrawn. Shipped starts the outcome.",
        {"200": JobRecord}, writer, schemas.ImplementationProgress, 64 * _KIB, "409 412",
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
        {"200": list[Hook]}, hook_editor,
    ),
    Operation(
        "POST /agent-hooks", "create-hook",
        f"Create an Agent Hook, to which signed messages about jobs are sent. At most {MAX_HOOKS}.",
        {"201": HookWithSecret}, hook_editor, NewHook, 16 * _KIB,
    ),
    Operation("GET /agent-hooks/{id}", "read-hook", "One Agent Hook.", {"200": Hook}, hook_editor),
    Operation(
        "PATCH /agent-hooks/{id}", "change-hook",
        "Change a hook. Making it active clears its failures; making it inactive ends what waits for it.",
        {"200": Hook}, hook_editor, HookChanges, 16 * _KIB,
    ),
    Operation(
        "DELETE /agent-hooks/{id}", "delete-hook", "Delete a hook with its deliveries.", {"200": Hook}, hook_editor
    ),
    Operation(
        "POST /agent-hooks/{id}/test", "test-hook",
        f"Send a made-up job, with the event {TEST_EVENT}. While one is pending, that is 409.",
        {"202": StartedDelivery}, hook_editor, errors="409",
    ),
    Operation(
        "POST /agent-hooks/{id}/secret", "rotate-hook-secret",
        "Make a new secret. For 24 hours, messages are signed with the old one, too.",
        {"200": HookWithSecret}, hook_editor,
    ),
    Operation(
        "GET /agent-hooks/{id}/deliveries", "list-deliveries",
        f"The newest {MAX_DELIVERIES} messages to a hook with the outcome of their last attempt.",
        {"200": list[Delivery]}, hook_editor,
    ),
    Operation(
        "POST /agent-hooks/{id}/deliveries/{delivery}/replay", "replay-delivery",
        "Send a message again, with the same id.", {"202": StartedDelivery}, hook_editor, errors="409",
    ),
)  # fmt: skip

OTHERS: Final = (
    Operation(
        "POST /visits", "visits",
        "Send live visits. Durable when acknowledged; included in answers computed 12 s later.",
        {"202": schemas.ReceivedVisits}, writer,
        {"application/json": Annotated[list[Reported], Meta(max_length=MAX_ROWS)], "application/x-ndjson": str},
        description="Refused visits are reported by their index; the others are stored. If all are refused, the answer "
        "is 400. Visits sent twice count twice. A request that timed out may have been stored or not.",
    ),
    Operation(
        "POST /mcp", "mcp", "One message of the Model Context Protocol: the reports as tools of an assistant.",
        {"200": Json, "400": Json, "404": Json, "202": None}, body=schemas.RpcRequest,
        description="Stateless: one JSON-RPC request, one answer. A notification has no answer.",
    ),
    Operation(
        "GET /links/{domain}/{short_code}", "get-link", "Where a short code leads.", {"200": schemas.StoredLink}
    ),
    Operation(
        "PUT /links/{domain}/{short_code}", "put-link",
        "Add a link (201), or change where it leads (200). Roles that may write only.",
        {"200": schemas.StoredLink, "201": schemas.StoredLink}, writer, schemas.LinkTarget, 16 * _KIB,
    ),
    Operation(
        "DELETE /links/{domain}/{short_code}", "delete-link",
        "Remove a link; its visits stay. Roles that may write only.", {"200": schemas.StoredLink}, writer,
    ),
    Operation(
        "GET /settings/api-keys", "list-api-keys",
        "Every API key of the organization, oldest first. Identity tokens of roles that may write only.",
        {"200": list[schemas.ApiKey]}, key_manager,
    ),
    Operation(
        "POST /settings/api-keys", "create-api-key",
        "Create an API key. Identity tokens of roles that may write only.",
        {"201": schemas.CreatedApiKey}, key_manager, schemas.NewApiKey, 4 * _KIB,
    ),
    Operation(
        "DELETE /settings/api-keys/{id}", "revoke-api-key",
        "Revoke an API key; a running server refuses it within 5 s.", {"200": schemas.ApiKey}, key_manager,
    ),
    Operation("GET /healthz", "health", "Whether the service can answer queries.", {"200": Json}, is_public=True),
    Operation("GET /openapi.json", "openapi", "This document.", {"200": Json}, is_public=True),
)  # fmt: skip

OPERATIONS: Final = (*JOBS, *HOOKS, *OTHERS)
"""In the order in which they are documented."""
PUBLIC_PATHS: Final = frozenset(one.route.split()[1] for one in OPERATIONS if one.is_public)
"""Those that need no token."""
