"""The endpoints under /jobs. Each function returns the endpoint for the jobs of a service."""

import hashlib
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from msgspec.json import encode
from msgspec.structs import asdict
from starlette.requests import Request
from starlette.responses import Response

from data import BadInput
from queries import PARAMETERS, Warehouse
from service.clock import Clock
from service.http.authentication import Caller
from service.http.bodies import read_body, reject_body
from service.http.compression import negotiated
from service.http.errors import (
    BodyTooLarge,
    Forbidden,
    InvalidBody,
    NotFound,
    PreconditionFailed,
    StateConflict,
)
from service.http.lanes import Workers
from service.http.query_string import parse_parameters
from service.http.responses import JsonResponse
from service.http.routing import Endpoint
from service.http.schemas import ImplementationProgress, JobDecision, NewJob
from service.jobs.implementations import Approval, Draft
from service.jobs.manual import manual_job
from service.jobs.records import Actor, ImplementationWithContent, JobRecord
from service.jobs.redirects import ADD_REDIRECT, RedirectGuess, redirect_guesses
from service.jobs.states import JobChanged, JobConflict, JobNotFound, TooLarge
from service.jobs.store import Jobs

MAX_BODY_BYTES: Final = 64 << 10
MAX_IMPLEMENTATION_BYTES: Final = 2 << 20
"""Of the body with an implementation: its content has 256 KiB, and JSON may escape each of its letters."""
_VERSION: Final = re.compile(r'"(\d{1,15})"')


def jobs(store: Jobs, clock: Clock) -> Endpoint:
    """List the jobs of the caller's organization (GET), or write one by hand (POST)."""

    async def endpoint(request: Request) -> Response:
        if request.method != "POST":
            reject_body(request)
            organization = request.scope["caller"].organization
            headers = request.scope["headers"]
            listed, how = await store.database.read(lambda: negotiated(headers, encode(store.of(organization))))
            return JsonResponse(listed, headers=how)
        caller = _writer(request)
        body = await read_body(request, NewJob, MAX_BODY_BYTES)
        actor, now = actor_of(caller), clock()
        return await _written(
            store,
            lambda: store.create(manual_job(caller.organization, **asdict(body), actor=actor, now=now), actor, now),
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


def job_guesses(store: Jobs, warehouse: Warehouse, workers: Workers, clock: Clock) -> Endpoint:
    """Return where the dead path of a job may be redirected to."""

    async def endpoint(request: Request) -> Response:
        reject_body(request)
        with _problems():
            found = await guesses_for(
                store, warehouse, workers, clock, request.scope["caller"], request.path_params["id"]
            )
        return JsonResponse(encode(found))

    return endpoint


async def guesses_for(  # noqa: PLR0917  # what answers, and who asks for what
    store: Jobs, warehouse: Warehouse, workers: Workers, clock: Clock, caller: Caller, job_id: str
) -> list[RedirectGuess]:
    """Where the path of a job may be redirected to. Raises JobNotFound, Overloaded and what queries raise."""
    job = await store.database.read(store.job, caller.organization, job_id)
    if job.action_id != ADD_REDIRECT:
        return []
    today = store.database.lake.manifest.today(caller.organization, clock())
    with workers.admitted(caller.organization, caller.asker):
        return await workers.compute(*caller.turn, lambda: redirect_guesses(warehouse, job, today))


def active_implementations(store: Jobs) -> Endpoint:
    """Return the shipped redirects, or 304 while they are those of If-None-Match."""

    async def endpoint(request: Request) -> Response:
        reject_body(request)
        asked = parse_parameters(request.scope["query_string"], ("domain",))
        domain = PARAMETERS["domain"].parse(asked.get("domain", ""))
        organization = request.scope["caller"].organization
        body = encode(await store.database.read(store.redirects, organization, domain))
        tag = f'"{hashlib.sha256(body).hexdigest()[:32]}"'
        known = [one.strip().removeprefix("W/") for one in request.headers.get("if-none-match", "").split(",")]
        if tag in known or "*" in known:
            return Response(status_code=304, headers={"ETag": tag})
        return JsonResponse(body, headers={"ETag": tag})

    return endpoint


def job_actions(store: Jobs, clock: Clock) -> Endpoint:
    """Review, approve, dismiss, resolve or reopen a job."""

    async def endpoint(request: Request) -> Response:
        caller, job_id, version = _writer(request), request.path_params["id"], _expected_version(request)
        body = await read_body(request, JobDecision, MAX_BODY_BYTES)
        kind, number = body.implementation_type, body.implementation_id
        approval = None if kind is None and number is None else Approval(kind, None if number is None else int(number))
        return await _written(
            store,
            lambda: store.act(
                caller.organization,
                job_id,
                body.action_id,
                actor_of(caller),
                clock(),
                version=version,
                note=body.note,
                approval=approval,
            ),
        )

    return endpoint


def job_implementations(store: Jobs, clock: Clock) -> Endpoint:
    """Attach an implementation to a job."""

    async def endpoint(request: Request) -> Response:
        caller, job_id, version = _writer(request), request.path_params["id"], _expected_version(request)
        draft = await read_body(request, Draft, MAX_IMPLEMENTATION_BYTES)
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
        body = await read_body(request, ImplementationProgress, MAX_BODY_BYTES)
        return await _written(
            store,
            lambda: store.set_implementation_status(
                caller.organization,
                job_id,
                number,
                actor_of(caller),
                clock(),
                version=version,
                **asdict(body),
            ),
        )

    return endpoint


async def _written(
    store: Jobs, write: Callable[[], JobRecord | ImplementationWithContent], status: int = 200
) -> JsonResponse:
    """The response to a write, done in the writing thread."""
    with _problems():
        return _record_response(await store.database.write(write), status)


def _record_response(record: JobRecord | ImplementationWithContent, status: int = 200) -> JsonResponse:
    """A record as JSON; the version of a job is its entity tag, too."""
    headers = {"ETag": f'"{record.version}"'} if isinstance(record, JobRecord) else {}
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
        raise InvalidBody("The body is invalid.", _sentence(error)) from error


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


def _number(request: Request) -> int:
    """The number of an implementation in the path. Raises NotFound."""
    text = request.path_params["number"]
    if not re.fullmatch(r"[1-9]\d{0,5}", text, re.ASCII):
        raise NotFound("Implementation not found.", "They are numbered from 1.")
    return int(text)


def _expected_version(request: Request) -> int | None:
    """The version in If-Match; None without one, or for *. Any text that is not a version matches none."""
    header = request.headers.get("if-match")
    if header is None or header == "*":
        return None
    match = _VERSION.fullmatch(header.strip())
    return int(match[1]) if match else -1
