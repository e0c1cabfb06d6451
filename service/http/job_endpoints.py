"""The endpoints under /jobs. Each function returns the endpoint for the jobs of a service."""

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response

from data import BadInput
from service.clock import Clock
from service.encoding import encode
from service.http.authentication import Caller
from service.http.bodies import read_object
from service.http.endpoints import reject_body
from service.http.errors import (
    BodyTooLarge,
    Forbidden,
    InvalidBody,
    NotFound,
    PreconditionFailed,
    StateConflict,
)
from service.http.responses import JsonResponse
from service.http.routing import Endpoint
from service.jobs.checks import Approval
from service.jobs.implementations import Draft
from service.jobs.records import Actor
from service.jobs.states import JobChanged, JobConflict, JobNotFound, TooLarge
from service.jobs.store import Jobs

MAX_BODY_BYTES: Final = 64 << 10
MAX_IMPLEMENTATION_BYTES: Final = 2 << 20
"""Of the body with an implementation: its content has 256 KiB, and JSON may escape each of its letters."""
_VERSION: Final = re.compile(r'"(\d{1,15})"')

Record = dict[str, Any]


def jobs(store: Jobs, clock: Clock) -> Endpoint:
    """List the jobs of the caller's organization (GET), or write one by hand (POST)."""

    async def endpoint(request: Request) -> Response:
        if request.method != "POST":
            reject_body(request)
            organization = request.scope["caller"].organization
            return JsonResponse(await store.database.read(lambda: encode(store.of(organization))))
        caller = _writer(request)
        body = await _read_members(request, {"title", "summary"}, {"domain", "short_code"})
        title, summary = _text(body, "title") or "", _text(body, "summary") or ""
        about = {"domain": _text(body, "domain"), "short_code": _text(body, "short_code")}
        return await _written(
            store,
            lambda: store.create_manual(caller.organization, title, summary, actor_of(caller), clock(), **about),
            201,
        )

    return endpoint


def job(store: Jobs) -> Endpoint:
    """Return one job."""

    async def endpoint(request: Request) -> Response:
        reject_body(request)
        organization, job_id = request.scope["caller"].organization, request.path_params["id"]
        with _problems():
            return _record_response(await store.database.read(store.record, organization, job_id))

    return endpoint


def job_actions(store: Jobs, clock: Clock) -> Endpoint:
    """Review, approve, dismiss, resolve or reopen a job."""

    async def endpoint(request: Request) -> Response:
        caller, job_id, version = _writer(request), request.path_params["id"], _expected_version(request)
        body = await _read_members(request, {"action_id"}, {"implementation_type", "implementation_id", "note"})
        action_id, note, approval = _text(body, "action_id") or "", _text(body, "note"), _approval(body)
        return await _written(
            store,
            lambda: store.act(
                caller.organization,
                job_id,
                action_id,
                actor_of(caller),
                clock(),
                version=version,
                note=note,
                approval=approval,
            ),
        )

    return endpoint


def job_implementations(store: Jobs, clock: Clock) -> Endpoint:
    """Attach an implementation to a job."""

    async def endpoint(request: Request) -> Response:
        caller, job_id, version = _writer(request), request.path_params["id"], _expected_version(request)
        optional = {"content_type", "content", "url", "note"}
        body = await _read_members(request, {"implementation_type"}, optional, MAX_IMPLEMENTATION_BYTES)
        draft = Draft(**{name: _text(body, name) for name in body})  # type: ignore[arg-type]  # the first is required
        return await _written(
            store,
            lambda: store.attach(caller.organization, job_id, draft, actor_of(caller), clock(), version=version),
            201,
        )

    return endpoint


def job_implementation(store: Jobs) -> Endpoint:
    """Return one implementation of a job with its content, as a JSON string."""

    async def endpoint(request: Request) -> Response:
        reject_body(request)
        organization, job_id = request.scope["caller"].organization, request.path_params["id"]
        with _problems():
            found = await store.database.read(store.implementation, organization, job_id, _number(request))
        return JsonResponse(encode(found))

    return endpoint


def job_implementation_status(store: Jobs, clock: Clock) -> Endpoint:
    """Say that an implementation is accepted, shipped or withdrawn."""

    async def endpoint(request: Request) -> Response:
        caller, job_id, version = _writer(request), request.path_params["id"], _expected_version(request)
        number = _number(request)
        body = await _read_members(request, {"status"}, {"shipped_at", "url"})
        status, shipped_at, url = _text(body, "status") or "", _moment(body, "shipped_at"), _text(body, "url")
        return await _written(
            store,
            lambda: store.set_implementation_status(
                caller.organization,
                job_id,
                number,
                actor_of(caller),
                clock(),
                status=status,
                version=version,
                shipped_at=shipped_at,
                url=url,
            ),
        )

    return endpoint


async def _written(store: Jobs, write: Callable[[], Record], status: int = 200) -> JsonResponse:
    """The response to a write, done in the writing thread."""
    with _problems():
        return _record_response(await store.database.write(write), status)


def _record_response(record: Record, status: int = 200) -> JsonResponse:
    """A record as JSON; the version of a job is its entity tag, too."""
    headers = {"ETag": f'"{record["version"]}"'} if "version" in record else {}
    return JsonResponse(encode(record), status, headers)


@contextmanager
def _problems() -> Iterator[None]:
    """Turn the errors of the store into problems of the API."""
    try:
        yield
    except JobNotFound as error:
        raise NotFound(_sentence(error), "GET /jobs lists the jobs of the organization.") from error
    except JobConflict as error:
        known = {"status": error.status, "version": error.version}
        state = {name: value for name, value in known.items() if value is not None}
        raise (PreconditionFailed if isinstance(error, JobChanged) else StateConflict)(str(error), **state) from error
    except TooLarge as error:
        raise BodyTooLarge(_sentence(error), "Send less text.") from error
    except BadInput as error:
        raise InvalidBody("cannot be used", _sentence(error)) from error


def _sentence(error: Exception) -> str:
    text = str(error)
    return text[:1].upper() + text[1:]


def _writer(request: Request) -> Caller:
    """The caller of a request. Raises Forbidden for viewers."""
    caller: Caller = request.scope["caller"]
    if not caller.may_write:
        raise Forbidden
    return caller


def actor_of(caller: Caller) -> Actor:
    """The caller of a request, as the history of a job names who did something."""
    return Actor(caller.name, "key" if caller.is_key else "user")


async def _read_members(
    request: Request, required: set[str], optional: set[str], max_bytes: int = MAX_BODY_BYTES
) -> dict[str, object]:
    """The JSON object in the body of a request, with just these members. Raises InvalidBody or BodyTooLarge."""
    names = ", ".join([*sorted(required), *(f"{name} (optional)" for name in sorted(optional))])
    fix = f"Send a JSON object with {names}."
    members = await read_object(request, max_bytes, fix)
    if not required <= members.keys() <= required | optional:
        raise InvalidBody("is not an object with just the known members", fix)
    missing = [name for name in required if not members[name]]
    if missing:
        raise InvalidBody(f"has no {missing[0]}", fix)
    return members


def _text(body: Mapping[str, object], name: str) -> str | None:
    """A text of a body; None if it is left out or null. Raises InvalidBody for anything else."""
    value = body.get(name)
    if value is not None and not isinstance(value, str):
        raise InvalidBody(f"has a {name} that is no text", f"Send {name} as a string.")
    return value


def _approval(body: Mapping[str, object]) -> Approval | None:
    """How an approved job is to be carried out; None if the body does not say."""
    kind, number = _text(body, "implementation_type"), body.get("implementation_id")
    if kind is None and number is None:
        return None
    if isinstance(number, str) and re.fullmatch(r"\d{1,9}", number, re.ASCII):
        number = int(number)
    if number is not None and (not isinstance(number, int) or isinstance(number, bool)):
        raise InvalidBody("has an implementation_id that is no number", "Send the number of an implementation.")
    return Approval(kind, number)


def _moment(body: Mapping[str, object], name: str) -> datetime | None:
    """A time of a body, which must say its offset. Raises InvalidBody."""
    text = _text(body, name)
    if text is None:
        return None
    try:
        moment = datetime.fromisoformat(text)
        if moment.tzinfo is not None:
            return moment.astimezone(UTC)
    except (ValueError, OverflowError):  # or a time before the year 1 in UTC
        pass
    raise InvalidBody(f"has a {name} that is no time", "Send RFC 3339, such as 2026-11-20T10:00:00Z.")


def _number(request: Request) -> int:
    """The number of an implementation in the path. Raises NotFound."""
    text = request.path_params["number"]
    if not re.fullmatch(r"[1-9]\d{0,5}", text, re.ASCII):
        raise NotFound("There is no such implementation.", "They are numbered from 1.")
    return int(text)


def _expected_version(request: Request) -> int | None:
    """The version in If-Match; None without one, or for *. What is no version matches none."""
    header = request.headers.get("if-match")
    if header is None or header == "*":
        return None
    match = _VERSION.fullmatch(header.strip())
    return int(match[1]) if match else -1
