"""The job pages: the list, and one job with its evidence, actions and outcome."""

import re
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import date, timedelta
from functools import partial
from typing import Any, Final

import orjson
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from data import BadInput, TrafficError
from queries import DETECTED_DAYS, JOB_KINDS, InvalidParameter, measure_all
from service.access.page_context import PageContext, PageLink
from service.access.sessions import Session
from service.core.http.caller import Caller
from service.core.http.errors import NotFound, Overloaded
from service.core.pages.charts import measured_days
from service.core.pages.forms import editors_form
from service.jobs import states
from service.jobs.findings import rank
from service.jobs.implementations import CONTENT_TYPES, MAX_CONTENT_BYTES, Draft
from service.jobs.page_content import (
    WORDS,
    approval_of,
    days_of,
    evidence_of,
    expected_days,
    filled_days,
    outcome_sentences,
    requests_of,
)
from service.jobs.rates import summed
from service.jobs.records import JobAction, JobRecord
from service.jobs.redirects import ADD_REDIRECT, RedirectGuess, rules_of
from service.jobs.service import JobService, actor_of
from service.jobs.snippets import Snippet, snippets_of
from service.jobs.states import OPEN, STATUSES, UNDECIDED, JobChanged, JobConflict, JobNotFound, TooLarge
from service.jobs.subjects import chosen
from service.jobs.texts import cut

MAX_FORM_BYTES: Final = 4 * MAX_CONTENT_BYTES
"""Maximum size in bytes of a form with an implementation: a form may encode each byte as three."""
_NUMBER: Final = re.compile(r"[1-9]\d?", re.ASCII)
_VERSION: Final = re.compile(r"\d{1,15}", re.ASCII)
_SAME_DAYS: Final = re.compile(r"From \S+ to \S+, (.)")
"""The beginning of most summaries, which would be the same in every row of the list."""
_KINDS: Final = [(kind, content_type) for kind, types in CONTENT_TYPES.items() for content_type in types or ("",)]


NAVIGATION: Final = PageLink("jobs", "To do", "g j", section="jobs")


def routes(context: PageContext, jobs: JobService) -> list[Route]:
    """Return the routes of the job pages."""
    pages, root = _JobPages(context, jobs), f"{context.root}/jobs"
    return [
        Route(root, pages.list),
        Route(f"{root}/{{id}}", pages.job),
        Route(f"{root}/{{id}}/actions", pages.act, methods=["POST"]),
        Route(f"{root}/{{id}}/implementations", pages.attach, methods=["POST"]),
        Route(f"{root}/{{id}}/implementations/{{number}}/status", pages.set_status, methods=["POST"]),
    ]


def _in_list(summary: str) -> str:
    """Return a summary without the days at its beginning."""
    return _SAME_DAYS.sub(lambda found: found[1].upper(), summary, count=1)


def _is_possible(job: JobRecord, action: JobAction) -> bool:
    """Return whether an action is possible: only undecided jobs can be approved, and nothing shipped can be undone."""
    if action.is_default:
        return job.status in UNDECIDED
    return action.id != "undo" or job.outcome_status != "waiting"


class _JobPages:
    def __init__(self, context: PageContext, jobs: JobService) -> None:
        self._context = context
        self._service = jobs
        self._jobs = jobs.store

    def _unseen_days(self, organization: str) -> dict[str, date | None]:
        """Return the newest day with visits as `newest_day` and the day after it as `as_of`, if the daily run no longer
        examines `newest_day`; otherwise, `newest_day` is None.
        """
        services = self._context.services
        newest = services.lake.manifest.statistics.stored_span(organization).last_day
        if newest is None or newest >= services.today(organization) - timedelta(DETECTED_DAYS):
            return {"newest_day": None}
        return {"newest_day": newest, "as_of": newest + timedelta(1)}

    async def list(self, request: Request) -> Response:
        """Show the organization's open jobs, or its jobs with the requested status."""
        session: Session = request.scope["session"]
        status = request.query_params.get("status", "")
        if status and status not in STATUSES:
            raise InvalidParameter("status", "is not a job status", f"Use {', '.join(STATUSES)}.")
        rows = await self._context.in_thread(request, self._jobs.of, session.organization)
        counts = Counter(row.status for row in rows)
        listed = [row for row in rows if row.status in ((status,) if status else OPEN)]
        listed.sort(key=lambda row: rank(row.priority, row.type))  # newest first within a rank
        of_each = [(one.capitalize(), one, counts[one]) for one in STATUSES]
        tabs = [("Open", "", sum(counts[one] for one in OPEN)), *of_each]
        shown = {
            **self._context.layout(request, "jobs"),
            "jobs": listed,
            "tabs": tabs,
            "status": status,
            "cut": cut,
            "in_list": _in_list,
        }
        if not rows:
            shown |= await self._context.in_thread(request, self._unseen_days, session.organization)
        return await self._context.renderer.response(request, "jobs.html", shown | {"has_jobs": bool(rows)})

    async def act(self, request: Request) -> Response:
        """Review, approve, undo, dismiss, resolve or reopen the job, as the form requests."""
        fields = await editors_form(request)
        note = fields.get("note", "").strip() or None
        return await self._write_and_show(request, fields, self._jobs.act, fields.get("action_id", ""), note=note)

    async def attach(self, request: Request) -> Response:
        """Attach the implementation in a form: a redirect, content, an address or only a note."""
        fields = await editors_form(request, MAX_FORM_BYTES)
        kind, _, content_type = fields.get("kind", "").partition(" ")
        content = fields.get("content", "").replace("\r\n", "\n")  # browsers end lines in forms with CRLF
        has_content = bool(content.strip())
        draft = Draft(
            "patch" if "redirect_to" in fields else kind,
            content_type or None if has_content else None,
            content if has_content else None,
            fields.get("url", "").strip() or None,
            fields.get("note", "").strip() or None,
            fields["redirect_to"].strip() if "redirect_to" in fields else None,
            int(chosen_subject) if _NUMBER.fullmatch(chosen_subject := fields.get("subject", "")) else None,
        )
        return await self._write_and_show(request, fields, self._jobs.add_implementation, draft)

    async def set_status(self, request: Request) -> Response:
        """Record that an implementation is accepted, shipped or withdrawn."""
        fields, number = await editors_form(request), request.path_params["number"]
        if not _VERSION.fullmatch(number):
            raise NotFound
        write = self._jobs.set_implementation_status
        return await self._write_and_show(request, fields, write, int(number), status=fields.get("status", ""))

    async def _write_and_show(
        self, request: Request, fields: dict[str, str], write: Callable[..., object], what: object, **more: str | None
    ) -> Response:
        """Write and redirect to the job; on failure, show it with the reason and the values entered. Raises NotFound.

        `write` is a method of Jobs that takes an organization, a job, `what`, an actor, the time, `version` and `more`.
        """
        caller, job_id = request.scope["session"].caller, request.path_params["id"]
        who, now, text = actor_of(caller), self._context.services.clock(), fields.get("version", "")
        version = int(text) if _VERSION.fullmatch(text) else -1  # any other text matches no version
        try:
            await self._service.written(
                caller, lambda: write(caller.organization, job_id, what, who, now, version=version, **more)
            )
            if "redirect_to" in fields or fields.get("status") == "withdrawn":
                await self._service.write_links(caller.organization)
        except JobNotFound:
            raise
        except JobChanged as error:
            changed = f"Nothing was done: the job has changed since you opened it. It is {error.job_status} now."
            return await self.job(request, 412, f"{changed} Review it below, then decide again.", fields)
        except JobConflict as error:
            return await self.job(request, 409, f"Nothing was done. {error}", fields)
        except BadInput as error:
            status = 413 if isinstance(error, TooLarge) else 400
            return await self.job(request, status, f"Nothing was done: {error}", fields)
        return RedirectResponse(f"{self._context.root}/jobs/{job_id}", 303)

    async def job(
        self, request: Request, status: int = 200, problem: str = "", fields: dict[str, str] | None = None
    ) -> Response:
        """Show a job; after a rejected form, also its problem and the values entered."""
        session: Session = request.scope["session"]
        organization, job_id = session.organization, request.path_params["id"]
        job, content = await self._jobs.database.read(self._jobs.with_content, organization, job_id)
        implementation = job.implementation
        takes_implementation = job.status in {"approved", "sent"}
        takes_redirect = session.caller.may_write and takes_implementation and job.action_id == ADD_REDIRECT
        guesses: Sequence[RedirectGuess] = ()
        if takes_redirect:
            with suppress(TrafficError, Overloaded):  # they cannot be read now
                guesses = await self._service.guesses(session.caller, job_id)
        target, is_meant = self._target(job, content, guesses)
        snippets: Sequence[Snippet] = ()
        stored = await self._jobs.database.read(self._jobs.job, organization, job_id)
        if job.status in OPEN:
            lake = self._context.services.lake
            with suppress(TrafficError):  # the lake's own tables of agents cannot be read, as `traffic doctor` reports
                snippets = await self._context.in_thread(request, snippets_of, stored, lake, target)
        shown: dict[str, Any] = {
            **self._context.layout(request, "jobs/job"),
            "snippets": snippets,
            "is_meant": is_meant,
            "job": job,
            "content": content,
            "evidence": evidence_of(job, self._context.command),
            "requests": requests_of(stored, job.evidence),
            "outcome": outcome_sentences(job.outcome),
            "measure": await self._measure(session.caller, job),
            "actions": [one for one in job.actions if _is_possible(job, one)],
            "is_attached": implementation is not None and implementation.status != "withdrawn",
            "is_shipped": takes_implementation and job.implementation_status == "shipped",
            "statuses": states.IMPLEMENTATION_TRANSITIONS[implementation.status] if implementation else (),
            "takes_implementation": takes_implementation,
            "takes_redirect": takes_redirect,
            "guesses": guesses,
            "kinds": _KINDS,
            "may_write": session.caller.may_write,
            "problem": problem,
            "fields": fields or {},
        }
        return await self._context.renderer.response(request, "job.html", shown, status)

    def _target(self, job: JobRecord, content: str | None, guesses: Sequence[RedirectGuess]) -> tuple[str, bool]:
        """Return the target of a job's redirects, and whether an editor chose it; otherwise it is a guess or the home
        page.
        """
        content_type = job.implementation.content_type if job.implementation else None
        for rule in rules_of(content_type, content.encode() if content else None):
            return rule.target, True
        return (guesses[0].redirect_to if guesses else f"https://{job.domain or 'example.com'}/"), False

    async def _measure(self, caller: Caller, job: JobRecord) -> dict[str, Any] | None:
        """Return the chart and the days of a shipped job, both empty if its visits cannot be counted now. Return None
        for a job without a measure, a shipped implementation or subjects.
        """
        kind, shipped_at = JOB_KINDS.get(job.type), job.implementation.shipped_at if job.implementation else None
        if kind is None or shipped_at is None:
            return None
        services, organization = self._context.services, caller.organization
        day_of = partial(services.lake.manifest.organizations.today, organization)
        approved_on, shipped_on = day_of(approval_of(job, shipped_at)), day_of(shipped_at)
        stored = orjson.loads((await self._jobs.database.read(self._jobs.job, organization, job.id)).subjects)
        subjects = chosen(stored, job.implementation.subject if job.implementation else None)
        if not subjects or any(set(one) != set(kind.subject) for one in subjects):  # they were erased
            return None
        first, last = days_of(approved_on, shipped_on, services.today(organization))
        try:
            with services.workers.admitted(*caller.turn):
                counts = await services.workers.compute(
                    *caller.turn,
                    lambda: measure_all(self._service.warehouse, kind, organization, subjects, first, last),
                )
        except (TrafficError, Overloaded):  # such as QueryTimeout: the rest of the page does not depend on it
            return {"description": kind.measure.description, "chart": "", "days": []}
        days = filled_days([(one.day, one.events, one.visits) for one in summed(counts)], first, last)
        expected = expected_days(days, shipped_on, job.outcome)
        has_events = any(events or visits for _, events, visits in days)
        words, steps = WORDS[kind.sql or kind.type], {approved_on: "approved", shipped_on: "shipped"}
        chart = ""
        if has_events:
            chart = measured_days(days, steps, expected, are_apart=words.are_apart)
        return {"description": kind.measure.description, "chart": chart, "words": words,
                "days": days, "expected": expected, "others": job.outcome.others,
                "name": kind.measure.name, "steps": steps}  # fmt: skip
