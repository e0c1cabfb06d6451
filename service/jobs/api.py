"""API operations on the jobs of the caller's organization."""

import hashlib
import re
from functools import partial
from typing import Annotated, Final

import orjson
from msgspec import Meta, Struct
from msgspec.json import encode
from msgspec.structs import asdict
from starlette.responses import Response

from queries import PARAMETERS
from service.core.clock import Time
from service.core.http.compression import negotiated
from service.core.http.errors import NotFound
from service.core.http.operations import KIB, Call, Operation, Operations, writer
from service.core.http.responses import JsonResponse
from service.jobs.implementations import MAX_IMPLEMENTATIONS, RULE, Approval, Draft, Note, Url
from service.jobs.manual import MAX_SUMMARY_LENGTH, MAX_TITLE_LENGTH, manual_job
from service.jobs.records import ImplementationWithContent, JobRecord, JobRow
from service.jobs.redirects import RedirectGuess, ShippedRedirect
from service.jobs.service import JobService, actor_of
from service.jobs.states import IMPLEMENTATION_TYPES, NewImplementationStatus
from service.reports.query_string import parse_parameters

MAX_IMPLEMENTATION_BYTES: Final = 2_048 * KIB
"""Maximum size of a body with an implementation: the content has up to 256 KiB, and JSON may escape each character."""
OPERATIONS = Operations[JobService]()


class NewJob(Struct, frozen=True, forbid_unknown_fields=True):
    """A job that an editor writes by hand."""

    title: Annotated[str, Meta(min_length=1, extra_json_schema={"maxLength": MAX_TITLE_LENGTH})]
    summary: Annotated[str, Meta(min_length=1, extra_json_schema={"maxLength": MAX_SUMMARY_LENGTH})]
    domain: str | None = None
    short_code: str | None = None


class JobDecision(Struct, frozen=True, forbid_unknown_fields=True):
    """A decision about a job."""

    action_id: Annotated[str, Meta(min_length=1)]
    implementation_type: Annotated[str | None, Meta(description=", ".join(IMPLEMENTATION_TYPES))] = None
    implementation_id: Annotated[
        Annotated[int, Meta(ge=1, le=MAX_IMPLEMENTATIONS)] | Annotated[str, Meta(pattern="^[0-9]{1,2}$")] | None,
        Meta(description="the number of an earlier implementation of the job, which takes effect again"),
    ] = None
    note: Note | None = None


class ImplementationProgress(Struct, frozen=True, forbid_unknown_fields=True):
    """A change to an implementation's status."""

    status: NewImplementationStatus
    shipped_at: Annotated[Time, Meta(description="not in the future; default: now")] | None = None
    url: Url | None = None


@OPERATIONS.handles(
    Operation("GET /jobs", "jobs", "Every job of the organization, newest first.", {"200": list[JobRow]})
)  # fmt: skip
async def list_jobs(jobs: JobService, call: Call) -> Response:
    headers, organization = call.request.scope["headers"], call.organization
    body, how = await jobs.in_turn(call.caller, lambda: negotiated(headers, encode(jobs.store.of(organization))))
    return JsonResponse(body, headers=how)


@OPERATIONS.handles(
    Operation(
        "POST /jobs", "create-job", "Write a job by hand. Its title and summary are kept as written.",
        {"201": JobRecord}, writer, NewJob, 64 * KIB, "409",
        examples={"link": {"title": "The launch link is old", "summary": "Redirect it to v2.", "short_code": "launch"}},
    )
)  # fmt: skip
async def create(jobs: JobService, call: Call) -> JobRecord:
    actor, now = actor_of(call.caller), jobs.clock()
    job = manual_job(call.organization, **asdict(call.body), actor=actor, now=now)
    return await jobs.written(call.caller, lambda: jobs.store.create(job, actor, now))


@OPERATIONS.handles(
    Operation(
        "GET /jobs/{id}", "job", "One job, with its evidence, actions, implementation, outcome and history.",
        {"200": JobRecord},
    )
)  # fmt: skip
async def read(jobs: JobService, call: Call) -> JobRecord:
    return await jobs.store.database.read(jobs.store.record, *_job_of(call))


@OPERATIONS.handles(
    Operation(
        "GET /jobs/{id}/guesses", "redirect-guesses",
        "Probable targets for a job's dead path: at most three guesses, the likeliest first.",
        {"200": list[RedirectGuess]},
        description="Links, and paths answered in the last 28 days, that are spelled like the dead path. A guess "
        "proves nothing: open it before you redirect there. There are no guesses for jobs about several paths, or "
        "for jobs that no redirect resolves.",
    )
)  # fmt: skip
async def redirect_guesses(jobs: JobService, call: Call) -> list[RedirectGuess]:
    return await jobs.guesses(call.caller, call.path["id"])


@OPERATIONS.handles(
    Operation(
        "POST /jobs/{id}/actions", "act-on-job", "Review, approve, undo, dismiss, resolve or reopen a job.",
        {"200": JobRecord}, writer, JobDecision, 64 * KIB, "409 412",
        "`action_id` is review, dismiss, resolve, reopen, undo (an approval that no hook has taken), `approve_fix` "
        "(which approves the job's own action) or the id of that action. An action that the status does not allow is "
        "a 409.",
        {"approve": {"action_id": "approve_fix", "implementation_type": "patch"},
         "dismiss": {"action_id": "dismiss", "note": "The page is gone for good."}},
    )
)  # fmt: skip
async def act(jobs: JobService, call: Call) -> JobRecord:
    body: JobDecision = call.body
    kind, number = body.implementation_type, body.implementation_id
    approval = None if kind is None and number is None else Approval(kind, None if number is None else int(number))
    one, actor, version = _job_of(call), actor_of(call.caller), _version(call)
    act_on = partial(jobs.store.act, *one, body.action_id, actor, version=version, note=body.note, approval=approval)
    return await jobs.written(call.caller, lambda: act_on(now=jobs.clock()))


@OPERATIONS.handles(
    Operation(
        "POST /jobs/{id}/implementations", "attach-implementation",
        "Attach an implementation to an approved job. This ships nothing.",
        {"201": ImplementationWithContent}, writer, Draft, MAX_IMPLEMENTATION_BYTES, "409 412",
        "Send content with its content_type, or the content's https url. A patch of the type application/json is a "
        "redirect rule from a path of the job, or a list of rules; `redirect_to` alone makes a rule from each path; "
        "if the path is a short code, the address also becomes the target of its link. `subject` is the number of "
        "the only subject that the implementation is about.",
        {
            "redirect": {"implementation_type": "patch", "redirect_to": "https://example.com/guide"},
            "rule": {"implementation_type": "patch", "content_type": "application/json",
                     "content": orjson.dumps(RULE).decode()},
            "pull request": {"implementation_type": "patch", "url": "https://git.example.com/site/pulls/7"},
        },
    )
)  # fmt: skip
async def attach(jobs: JobService, call: Call) -> ImplementationWithContent:
    one, actor, version, add = _job_of(call), actor_of(call.caller), _version(call), jobs.store.add_implementation
    added = await jobs.written(call.caller, lambda: add(*one, call.body, actor, jobs.clock(), version=version))
    if call.body.redirect_to:
        await jobs.write_links(call.organization)
    return added


@OPERATIONS.handles(
    Operation(
        "GET /jobs/{id}/implementations/{number}", "implementation",
        "One implementation, with its content as a string.", {"200": ImplementationWithContent},
    )
)  # fmt: skip
async def implementation(jobs: JobService, call: Call) -> ImplementationWithContent:
    return await jobs.store.database.read(jobs.store.implementation, *_job_of(call), _number(call))


@OPERATIONS.handles(
    Operation(
        "POST /jobs/{id}/implementations/{number}/status", "set-implementation-status",
        "Mark an implementation as accepted, shipped or withdrawn. Shipping starts the measurement of the outcome.",
        {"200": JobRecord}, writer, ImplementationProgress, 64 * KIB, "409 412",
        examples={"shipped": {"status": "shipped", "shipped_at": "2026-11-20T10:00:00Z"}},
    )
)  # fmt: skip
async def set_status(jobs: JobService, call: Call) -> JobRecord:
    one, actor, set_to = (*_job_of(call), _number(call)), actor_of(call.caller), jobs.store.set_implementation_status
    work = partial(set_to, *one, actor, version=_version(call), **asdict(call.body))
    record = await jobs.written(call.caller, lambda: work(now=jobs.clock()))
    if call.body.status == "withdrawn":
        await jobs.write_links(
            call.organization
        )  # waits for a write in progress, so that the link is not written after this response
    return record


@OPERATIONS.handles(
    Operation(
        "GET /implementations/active", "active-implementations",
        "Every redirect that was shipped and not withdrawn, for edge workers that poll.",
        {"200": list[ShippedRedirect], "304": None}, description="`If-None-Match` with the last `ETag`: 304 while "
        "nothing has changed.", query=("domain",),
    )
)  # fmt: skip
async def active_implementations(jobs: JobService, call: Call) -> Response:
    asked = parse_parameters(call.request.scope["query_string"], ("domain",))
    domain = PARAMETERS["domain"].parse(asked.get("domain", ""))
    tag = _tag(await jobs.store.database.read(jobs.store.redirects_version, call.organization), domain)
    if _has(call, tag):
        return Response(status_code=304, headers={"ETag": tag})
    # redirects shipped in between are sent with the older tag, and again with the next
    body = await jobs.in_turn(call.caller, lambda: encode(jobs.store.redirects(call.organization, domain)))
    return JsonResponse(body, headers={"ETag": tag})


def _tag(version: str, domain: str) -> str:
    """Return the entity tag for a version of the shipped redirects that work on a domain."""
    return f'"{hashlib.sha256(f"{version} {domain}".encode()).hexdigest()[:32]}"'


def _has(call: Call, tag: str) -> bool:
    """Return whether the client already has the response with this entity tag."""
    known = [one.strip().removeprefix("W/") for one in call.request.headers.get("if-none-match", "").split(",")]
    return tag in known or "*" in known


def _job_of(call: Call) -> tuple[str, str]:
    """Return the caller's organization, and the job id in the path."""
    return call.organization, call.path["id"]


def _number(call: Call) -> int:
    """Return the implementation number in the path. Raises NotFound for any other text."""
    text = call.path["number"]
    if not re.fullmatch(r"[1-9]\d{0,5}", text, re.ASCII):
        raise NotFound("Implementation not found.", "Implementations are numbered from 1.")
    return int(text)


def _version(call: Call) -> int | None:
    """Return the version in If-Match: None without the header or for `*`, and -1, which matches no job, for any value
    that is not a single quoted number.
    """
    header = call.request.headers.get("if-match")
    if header is None or header == "*":
        return None
    match = re.fullmatch(r'"(\d{1,15})"', header.strip())
    return int(match[1]) if match else -1
