"""The JSON bodies of the API that no records.py below declares: a struct validates, documents and encodes each."""

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from data.links.links import MAX_TARGET_URL_LENGTH
from data.logs.reported import RefusedVisit
from service.api_keys import MAX_NAME_LENGTH
from service.clock import Time
from service.jobs.implementations import MAX_IMPLEMENTATIONS, Note, Url
from service.jobs.manual import MAX_SUMMARY_LENGTH, MAX_TITLE_LENGTH
from service.jobs.states import IMPLEMENTATION_TYPES, NewImplementationStatus


class NewJob(Struct, frozen=True, forbid_unknown_fields=True):
    """A job to be written by hand."""

    title: Annotated[str, Meta(min_length=1, extra_json_schema={"maxLength": MAX_TITLE_LENGTH})]
    summary: Annotated[str, Meta(min_length=1, extra_json_schema={"maxLength": MAX_SUMMARY_LENGTH})]
    domain: str | None = None
    short_code: str | None = None


class JobDecision(Struct, frozen=True, forbid_unknown_fields=True):
    """What is decided about a job."""

    action_id: Annotated[str, Meta(min_length=1)]
    implementation_type: Annotated[str | None, Meta(description=", ".join(IMPLEMENTATION_TYPES))] = None
    implementation_id: Annotated[
        Annotated[int, Meta(ge=1, le=MAX_IMPLEMENTATIONS)] | Annotated[str, Meta(pattern="^[0-9]{1,2}$")] | None,
        Meta(description="the number of an earlier implementation of the job, which is in force again"),
    ] = None
    note: Note | None = None


class ImplementationProgress(Struct, frozen=True, forbid_unknown_fields=True):
    """What became of an implementation."""

    status: NewImplementationStatus
    shipped_at: Annotated[Time, Meta(description="not in the future; default: now")] | None = None
    url: Url | None = None


class LinkTarget(Struct, frozen=True, forbid_unknown_fields=True):
    """Where a link is to lead."""

    target_url: Annotated[str, Meta(max_length=MAX_TARGET_URL_LENGTH, description="an http or https address")]


class StoredLink(Struct, frozen=True, forbid_unknown_fields=True):
    """A link."""

    short_code: str
    domain: Annotated[str, Meta(description="in its normal form; * for every domain")]
    target_url: str
    created_at: Annotated[Time, Meta(description="when it was added, or last changed")]


class NewApiKey(Struct, frozen=True):
    """An API key to be created."""

    name: Annotated[str, Meta(min_length=1, max_length=MAX_NAME_LENGTH)]
    expires_at: Annotated[
        str | None, Meta(description="a time such as 2027-01-31T12:00:00Z, or a day, whose end by UTC is meant")
    ] = None


class ApiKey(Struct, frozen=True, forbid_unknown_fields=True):
    """An API key, without the key itself."""

    id: Annotated[str, Meta(description="the first characters of the key")]
    name: str
    created_by: Annotated[str | None, Meta(description="the identity token's `sub`; null for the command line")]
    created_at: Time
    last_used_at: Annotated[Time | None, Meta(description="to the hour, not before created_at")]
    expires_at: Annotated[Time | None, Meta(description="from when on it is refused; null: never")]
    revoked_at: Time | None


class CreatedApiKey(ApiKey, frozen=True):
    """A new API key."""

    key: Annotated[str, Meta(description="shown only once")]


class RpcRequest(Struct, frozen=True):
    """One message of the Model Context Protocol."""

    jsonrpc: Literal["2.0"]
    method: Literal["server/discover", "initialize", "ping", "tools/list", "tools/call"]
    id: str | int | UnsetType = UNSET
    params: dict[str, Any] | UnsetType = UNSET


class ReceivedVisits(Struct, frozen=True, forbid_unknown_fields=True):
    """How many visits were stored, and why others were not."""

    accepted: int
    refused: int
    errors: list[RefusedVisit]


class Error(Struct, frozen=True, rename={"retry_after": "retryAfter"}):
    """Why a request was refused."""

    error: str
    message: str | UnsetType = UNSET
    retry_after: Annotated[int, Meta(description="milliseconds; with 429 only")] | UnsetType = UNSET
    limit: int | UnsetType = UNSET
    remaining: int | UnsetType = UNSET
    accepted: (
        Annotated[int, Meta(description="0; with 400 of POST /visits when every visit was refused")] | UnsetType
    ) = UNSET
    refused: int | UnsetType = UNSET
    errors: list[RefusedVisit] | UnsetType = UNSET
    status: Annotated[str, Meta(description="of the job; with 409 and 412")] | UnsetType = UNSET
    version: Annotated[int, Meta(description="of the job; with 409 and 412")] | UnsetType = UNSET
