"""The statuses of a job and of its implementation, and the moves between them. Pure tables; the store applies them.

    new ──review──▶ reviewed
    new, reviewed ──approve──▶ approved ──deliver──▶ sent ──resolve──▶ resolved
    every open status ──dismiss──▶ dismissed;  resolved, dismissed ──reopen──▶ new

Three things are kept apart: `status` (who decided what), `implementation_status` (was it done) and `outcome_status`
(did it help).
"""

from typing import Final, Literal, get_args

from data import BadInput, TrafficError

OPEN: Final = ("new", "reviewed", "approved", "sent")
CLOSED: Final = ("resolved", "dismissed")
STATUSES: Final = (*OPEN, *CLOSED)
ImplementationType = Literal["patch", "edge_page", "manual", "agent_hook"]
NewImplementationStatus = Literal["accepted", "shipped", "withdrawn"]
ImplementationStatus = Literal["attached", NewImplementationStatus]
OutcomeStatus = Literal["none", "waiting", "improved", "unchanged", "worse", "not_measurable"]
IMPLEMENTATION_TYPES: Final = get_args(ImplementationType)
PRIORITIES: Final = ("low", "medium", "high")
"""Ascending."""
APPROVE_FIX: Final = "approve_fix"
"""The action that approves a job's own action, whatever its id."""

PERSONS_MOVES: Final = {
    "review": ({"new": "reviewed"}, "Note that somebody has looked at it"),
    "approve": ({"new": "approved", "reviewed": "approved"}, "Approve it"),
    "resolve": ({"approved": "resolved", "sent": "resolved"}, "It is done"),
    "dismiss": (dict.fromkeys(OPEN, "dismissed"), "Nothing should be done about it"),
    "reopen": (dict.fromkeys(CLOSED, "new"), "Take it up again"),
}
"""What a person may do: from which status to which, and a label. `approve` is asked for by the id of an action."""

SYSTEM_MOVES: Final = {
    "deliver": {"approved": "sent"},  # a hook answered 2xx for the first time
    "improve": {"approved": "resolved", "sent": "resolved"},  # the outcome is: improved
    "fail": {"approved": "reviewed", "sent": "reviewed"},  # the outcome is: unchanged or worse
    "expire": {"new": "dismissed", "reviewed": "dismissed"},  # not found for a long time, or others weigh more
    "return": {"resolved": "new", "dismissed": "new"},  # found again
    "erase": dict.fromkeys(OPEN, "dismissed"),  # what it is about was erased
}
"""What the service itself does: from which status to which."""

EVENTS: Final = {
    "create": "job.created",
    "approve": "job.approved",
    "update": "job.updated",
    "attach": "job.implementation_attached",
    "resolve": "job.resolved",
    "improve": "job.resolved",
    "dismiss": "job.dismissed",
    "expire": "job.dismissed",
    "erase": "job.dismissed",
    "reopen": "job.reopened",
    "return": "job.reopened",
    "fail": "job.reopened",
}
"""What hooks are told of an action; nothing of any other."""

IMPLEMENTATION_MOVES: Final = {
    "attached": ("accepted", "shipped", "withdrawn"),
    "accepted": ("shipped", "withdrawn"),
    "shipped": ("withdrawn",),
    "withdrawn": (),
}
"""From which status of an implementation to which others."""


class JobNotFound(BadInput):
    """The organization has no job, or the job no implementation, with this id."""


class JobConflict(TrafficError):
    """The job's status does not allow what was asked. `status` and `version` are the job's; None for a new one."""

    def __init__(self, problem: str, status: str | None = None, version: int | None = None) -> None:
        super().__init__(problem)
        self.status = status
        self.version = version


class JobChanged(JobConflict):
    """The job has another version than the one that the caller knows."""


class TooLarge(BadInput):
    """A text exceeds its limit."""


def next_status(action: str, status: str) -> str | None:
    """The status after an action of a person or of the system; None if the status does not allow it."""
    moves = PERSONS_MOVES[action][0] if action in PERSONS_MOVES else SYSTEM_MOVES[action]
    return moves.get(status)


def next_implementation_status(status: str, wanted: str) -> str | None:
    """`wanted`, if an implementation may go there from `status`; else None."""
    return wanted if wanted in IMPLEMENTATION_MOVES.get(status, ()) else None
