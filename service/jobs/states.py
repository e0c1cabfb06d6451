"""The statuses of a job and of its implementation, and their transitions. Pure tables; the store applies them.

    new ──review──▶ reviewed
    new, reviewed ──approve──▶ approved ──deliver──▶ sent;  approved, sent ──resolve──▶ resolved
    approved ──undo──▶ reviewed;  every open status ──dismiss──▶ dismissed;  resolved, dismissed ──reopen──▶ new

Three values are separate: `status` (the decision), `implementation_status` (whether it was carried out) and
`outcome_status` (whether it helped).
"""

from typing import Final, Literal, get_args

from data import BadInput, TrafficError
from service.core.http.errors import BodyTooLarge, NotFound, PreconditionFailed, StateConflict, sentence

UNDECIDED: Final = ("new", "reviewed")
DECIDED: Final = ("approved", "sent")
OPEN: Final = (*UNDECIDED, *DECIDED)
CLOSED: Final = ("resolved", "dismissed")
STATUSES: Final = (*OPEN, *CLOSED)
ImplementationType = Literal["patch", "edge_page", "manual", "agent_hook"]
NewImplementationStatus = Literal["accepted", "shipped", "withdrawn"]
ImplementationStatus = Literal["attached", NewImplementationStatus]
OutcomeStatus = Literal["none", "waiting", "improved", "unchanged", "worse", "not_measurable"]
JudgedBy = Literal["answer", "rate"]
IMPLEMENTATION_TYPES: Final = get_args(ImplementationType)
PRIORITIES: Final = ("low", "medium", "high")
"""Ascending."""
APPROVE_FIX: Final = "approve_fix"
"""The action that approves a job's own action without naming its id."""

USER_TRANSITIONS: Final = {
    "review": ({"new": "reviewed"}, "Mark as reviewed"),
    "approve": ({"new": "approved", "reviewed": "approved"}, "Approve"),
    "resolve": ({"approved": "resolved", "sent": "resolved"}, "Resolve"),
    "undo": ({"approved": "reviewed"}, "Undo the approval"),
    "dismiss": (dict.fromkeys(OPEN, "dismissed"), "Dismiss"),
    "reopen": (dict.fromkeys(CLOSED, "new"), "Reopen"),
}
"""Actions of users, each with a mapping from the status before the action to the status after it, and a label. The id
of a job's own action requests `approve`."""

SYSTEM_TRANSITIONS: Final = {
    "deliver": {"approved": "sent"},  # a hook answered 2xx for the first time
    "improve": {"approved": "resolved", "sent": "resolved"},  # the outcome is: improved, and certain enough
    "fail": {"approved": "reviewed", "sent": "reviewed"},  # the outcome is: unchanged or worse
    "expire": dict.fromkeys(UNDECIDED, "dismissed"),  # not found for a long time, or displaced by a heavier one
    "return": {"resolved": "new", "dismissed": "new"},  # found again
    "merge": dict.fromkeys(UNDECIDED, "dismissed"),  # another job is about the same cause
    "erase": dict.fromkeys(OPEN, "dismissed"),  # the visits that it is about were erased
    "arrive": dict.fromkeys(OPEN, "resolved"),  # visits from a source that was silent
}
"""Actions of the service itself, each with a mapping from the status before the action to the status after it."""

EVENTS: Final = {
    "create": "job.created",
    "approve": "job.approved",
    "update": "job.updated",
    "attach": "job.implementation_attached",
    "shipped": "job.shipped",
    "improved": "job.updated",
    "not_measurable": "job.not_measurable",
    "resolve": "job.resolved",
    "improve": "job.resolved",
    "arrive": "job.resolved",
    "dismiss": "job.dismissed",
    "expire": "job.dismissed",
    "merge": "job.dismissed",
    "erase": "job.dismissed",
    "reopen": "job.reopened",
    "undo": "job.reopened",
    "return": "job.reopened",
    "fail": "job.reopened",
}
"""The event for an action, or for a measured outcome without a transition; others have none."""

IMPLEMENTATION_TRANSITIONS: Final = {
    "attached": ("accepted", "shipped", "withdrawn"),
    "accepted": ("shipped", "withdrawn"),
    "shipped": ("withdrawn",),
    "withdrawn": (),
}
"""The statuses that may follow each status of an implementation."""


class JobNotFound(NotFound, BadInput):
    """The organization has no job, or the job has no implementation, with this id."""

    def __init__(self, problem: str) -> None:
        super().__init__(sentence(problem), "GET /jobs lists the organization's jobs.", text=problem)


class JobConflict(StateConflict, TrafficError):
    """The job's status, or a limit, does not allow the request. `job_status` and `version` are None if the conflict is
    not with the state of a job.
    """

    def __init__(self, problem: str, job_status: str | None = None, version: int | None = None) -> None:
        super().__init__(problem, text=problem)
        known = {"status": job_status, "version": version}
        self.body |= {name: value for name, value in known.items() if value is not None}
        self.job_status = job_status
        self.version = version


class JobChanged(JobConflict):
    """The job no longer has the version that the caller knows."""

    status = PreconditionFailed.status
    message = PreconditionFailed.message


class TooLarge(BodyTooLarge, BadInput):
    """A value exceeds its maximum size."""

    def __init__(self, problem: str) -> None:
        super().__init__(sentence(problem), "Send less text.", text=problem)


def next_status(action: str, status: str) -> str | None:
    """Return the status after an action by a user or the system; None if the status does not allow it."""
    transitions = USER_TRANSITIONS[action][0] if action in USER_TRANSITIONS else SYSTEM_TRANSITIONS[action]
    return transitions.get(status)


def requested_action(own: str | None, action_id: str) -> str:
    """Return the action that an id requests: `approve` for APPROVE_FIX and the job's `own` action. Raises BadInput."""
    if action_id in (APPROVE_FIX, own):
        return "approve"
    known = [name for name in USER_TRANSITIONS if name != "approve"]
    if action_id not in known:
        choices = [APPROVE_FIX, *([own] if own else []), *known]
        raise BadInput(f"action_id {action_id[:100]!r} is unknown; use one of {', '.join(choices)}.")
    return action_id
