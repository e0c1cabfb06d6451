"""What the operations on jobs do. All are about jobs of the caller's organization."""

import hashlib
import re
from typing import Final

from msgspec.json import encode
from msgspec.structs import asdict
from starlette.requests import Request
from starlette.responses import Response

from queries import PARAMETERS, Warehouse
from service.clock import Clock
from service.http.authentication import Caller
from service.http.compression import negotiated
from service.http.endpoints import Call, Handler
from service.http.errors import NotFound
from service.http.lanes import Workers
from service.http.query_string import parse_parameters
from service.http.responses import JsonResponse
from service.http.schemas import JobDecision
from service.jobs.implementations import Approval
from service.jobs.manual import manual_job
from service.jobs.records import Actor, ImplementationWithContent, JobRecord
from service.jobs.redirects import ADD_REDIRECT, RedirectGuess, redirect_guesses
from service.jobs.store import Jobs

_VERSION: Final = re.compile(r'"(\d{1,15})"')


def job_handlers(store: Jobs, warehouse: Warehouse, workers: Workers, clock: Clock) -> dict[str, Handler]:
    """What answers the operations on jobs, by their names."""
    operations = _JobOperations(store, clock)
    return {
        "jobs": operations.list_jobs,
        "create-job": operations.create,
        "job": operations.read,
        "redirect-guesses": lambda call: guesses_for(store, warehouse, workers, clock, call.caller, call.path["id"]),
        "act-on-job": operations.act,
        "attach-implementation": operations.attach,
        "implementation": operations.implementation,
        "set-implementation-status": operations.set_status,
        "active-implementations": operations.active_implementations,
    }


class _JobOperations:
    def __init__(self, store: Jobs, clock: Clock) -> None:
        self._store = store
        self._database = store.database
        self._clock = clock

    async def list_jobs(self, call: Call) -> Response:
        headers, organization = call.request.scope["headers"], call.organization
        body, how = await self._database.read(lambda: negotiated(headers, encode(self._store.of(organization))))
        return JsonResponse(body, headers=how)

    async def create(self, call: Call) -> JobRecord:
        actor, now = actor_of(call.caller), self._clock()
        job = manual_job(call.organization, **asdict(call.body), actor=actor, now=now)
        return await self._database.write(self._store.create, job, actor, now)

    async def read(self, call: Call) -> JobRecord:
        return await self._database.read(self._store.record, call.organization, call.path["id"])

    async def act(self, call: Call) -> JobRecord:
        body: JobDecision = call.body
        kind, number = body.implementation_type, body.implementation_id
        approval = None if kind is None and number is None else Approval(kind, None if number is None else int(number))
        actor, version = actor_of(call.caller), _expected_version(call.request)
        return await self._database.write(
            lambda: self._store.act(
                call.organization, call.path["id"], body.action_id, actor, self._clock(),
                version=version, note=body.note, approval=approval,
            )
        )  # fmt: skip

    async def attach(self, call: Call) -> ImplementationWithContent:
        job_id, actor, version = call.path["id"], actor_of(call.caller), _expected_version(call.request)
        return await self._database.write(
            lambda: self._store.attach(call.organization, job_id, call.body, actor, self._clock(), version=version)
        )

    async def implementation(self, call: Call) -> ImplementationWithContent:
        number = _number(call)
        return await self._database.read(self._store.implementation, call.organization, call.path["id"], number)

    async def set_status(self, call: Call) -> JobRecord:
        number, actor, version = _number(call), actor_of(call.caller), _expected_version(call.request)
        return await self._database.write(
            lambda: self._store.set_implementation_status(
                call.organization, call.path["id"], number, actor, self._clock(), version=version, **asdict(call.body)
            )
        )

    async def active_implementations(self, call: Call) -> Response:
        asked = parse_parameters(call.request.scope["query_string"], ("domain",))
        domain = PARAMETERS["domain"].parse(asked.get("domain", ""))
        body = encode(await self._database.read(self._store.redirects, call.organization, domain))
        tag = f'"{hashlib.sha256(body).hexdigest()[:32]}"'
        known = [one.strip().removeprefix("W/") for one in call.request.headers.get("if-none-match", "").split(",")]
        if tag in known or "*" in known:
            return Response(status_code=304, headers={"ETag": tag})
        return JsonResponse(body, headers={"ETag": tag})


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


def actor_of(caller: Caller) -> Actor:
    """The caller of a request, as the history of a job names it."""
    return Actor(caller.name, "key" if caller.is_key else "user")


def _number(call: Call) -> int:
    """The number of an implementation in the path. Raises NotFound."""
    text = call.path["number"]
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
