"""What the operations on jobs do. All are about jobs of the caller's organization."""

import hashlib
import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from msgspec.json import encode
from msgspec.structs import asdict
from starlette.responses import Response

from queries import PARAMETERS, Warehouse
from service.clock import Clock
from service.http.authentication import Caller
from service.http.compression import negotiated
from service.http.endpoints import Call, Handler
from service.http.errors import NotFound
from service.http.group_commit import GroupCommit
from service.http.lanes import Workers
from service.http.query_string import parse_parameters
from service.http.responses import JsonResponse
from service.http.schemas import JobDecision
from service.jobs.implementations import Approval
from service.jobs.manual import manual_job
from service.jobs.records import Actor, ImplementationWithContent, JobRecord
from service.jobs.redirects import ADD_REDIRECT, RedirectGuess, redirect_guesses
from service.jobs.store import Jobs
from service.threads import Result, lower_priority

LinkWrites = GroupCommit[None, None]
"""Writes the links that redirects ask for. All of an organization are one change, for which all who asked wait."""


def link_writes(store: Jobs, serves_others: Callable[[str], bool]) -> LinkWrites:
    """The thread that writes the links of redirects. An organization rests while queries of others run or wait."""

    def write(organization: str, waiting: list[None]) -> list[None]:
        store.write_links(organization)
        return waiting

    thread = ThreadPoolExecutor(1, thread_name_prefix="redirects-write", initializer=lower_priority)
    return GroupCommit(write, thread, serves_others)


def job_handlers(
    store: Jobs, links: LinkWrites, warehouse: Warehouse, workers: Workers, clock: Clock
) -> dict[str, Handler]:
    """What answers the operations on jobs, by their names."""
    read = store.database.read

    async def list_jobs(call: Call) -> Response:
        headers, organization = call.request.scope["headers"], call.organization
        body, how = await _in_turn(workers, call, lambda: negotiated(headers, encode(store.of(organization))))
        return JsonResponse(body, headers=how)

    async def create(call: Call) -> JobRecord:
        actor, now = actor_of(call.caller), clock()
        job = manual_job(call.organization, **asdict(call.body), actor=actor, now=now)
        return await _written(workers, call, lambda: store.create(job, actor, now))

    async def act(call: Call) -> JobRecord:
        body: JobDecision = call.body
        kind, number = body.implementation_type, body.implementation_id
        approval = None if kind is None and number is None else Approval(kind, None if number is None else int(number))
        one, actor, version = _job_of(call), actor_of(call.caller), _version(call)
        act_on = partial(store.act, *one, body.action_id, actor, version=version, note=body.note, approval=approval)
        return await _written(workers, call, lambda: act_on(now=clock()))

    async def attach(call: Call) -> ImplementationWithContent:
        one, actor, add = _job_of(call), actor_of(call.caller), store.add_implementation
        added = await _written(workers, call, lambda: add(*one, call.body, actor, clock(), version=_version(call)))
        if call.body.redirect_to:
            await links.add(call.organization, None)
        return added

    async def set_status(call: Call) -> JobRecord:
        one, actor, set_to = (*_job_of(call), _number(call)), actor_of(call.caller), store.set_implementation_status
        work = partial(set_to, *one, actor, version=_version(call), **asdict(call.body))
        record = await _written(workers, call, lambda: work(now=clock()))
        if call.body.status == "withdrawn":
            await links.add(call.organization, None)  # so that a link which is being written is not written later
        return record

    async def active_implementations(call: Call) -> Response:
        asked = parse_parameters(call.request.scope["query_string"], ("domain",))
        domain = PARAMETERS["domain"].parse(asked.get("domain", ""))
        tag = _tag(await read(store.redirects_version, call.organization), domain)
        if _has(call, tag):
            return Response(status_code=304, headers={"ETag": tag})
        # what is shipped meanwhile comes with the older tag, and is sent again with the next
        body = await _in_turn(workers, call, lambda: encode(store.redirects(call.organization, domain)))
        return JsonResponse(body, headers={"ETag": tag})

    return {
        "jobs": list_jobs,
        "create-job": create,
        "job": lambda call: read(store.record, *_job_of(call)),
        "redirect-guesses": lambda call: guesses_for(store, warehouse, workers, clock, call.caller, call.path["id"]),
        "act-on-job": act,
        "attach-implementation": attach,
        "implementation": lambda call: read(store.implementation, *_job_of(call), _number(call)),
        "set-implementation-status": set_status,
        "active-implementations": active_implementations,
    }


async def guesses_for(  # noqa: PLR0917  # what answers, and who asks for what
    store: Jobs, warehouse: Warehouse, workers: Workers, clock: Clock, caller: Caller, job_id: str
) -> list[RedirectGuess]:
    """Where the path of a job may be redirected to. Raises JobNotFound, Overloaded and what queries raise."""
    job = await store.database.read(store.job, caller.organization, job_id)
    if job.action_id != ADD_REDIRECT:
        return []
    today = store.database.lake.manifest.organizations.today(caller.organization, clock())
    with workers.admitted(*caller.turn):
        return await workers.compute(*caller.turn, lambda: redirect_guesses(warehouse, job, today))


def _tag(version: str, domain: str) -> str:
    """The entity tag of the shipped redirects of a version that work on a domain."""
    return f'"{hashlib.sha256(f"{version} {domain}".encode()).hexdigest()[:32]}"'


def _has(call: Call, tag: str) -> bool:
    """Whether the sender has the answer of an entity tag already."""
    known = [one.strip().removeprefix("W/") for one in call.request.headers.get("if-none-match", "").split(",")]
    return tag in known or "*" in known


async def _written(workers: Workers, call: Call, work: Callable[[], Result]) -> Result:
    """The result of a write, in the turn of its organization."""
    return await workers.writes.compute(*call.caller.turn, work)


async def _in_turn(workers: Workers, call: Call, work: Callable[[], Result]) -> Result:
    """The result of work that takes longer the more an organization has stored. Raises Overloaded."""
    with workers.texts.admitted(*call.caller.turn):
        return await workers.texts.compute(*call.caller.turn, work)


def actor_of(caller: Caller) -> Actor:
    """The caller of a request, as the history of a job names it."""
    return Actor(caller.name, "key" if caller.is_key else "user")


def _job_of(call: Call) -> tuple[str, str]:
    """The caller's organization, and the id of the job in the path."""
    return call.organization, call.path["id"]


def _number(call: Call) -> int:
    """The number of an implementation in the path. Raises NotFound."""
    text = call.path["number"]
    if not re.fullmatch(r"[1-9]\d{0,5}", text, re.ASCII):
        raise NotFound("Implementation not found.", "They are numbered from 1.")
    return int(text)


def _version(call: Call) -> int | None:
    """The version in If-Match; None without one, or for *. Any text that is not a version matches none."""
    header = call.request.headers.get("if-match")
    if header is None or header == "*":
        return None
    match = re.fullmatch(r'"(\d{1,15})"', header.strip())
    return int(match[1]) if match else -1
