"""What is shown of hooks and of deliveries to them."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypedDict

from service.clock import from_text

Row = tuple[Any, ...]


@dataclass(frozen=True)
class Hook:
    """The record of a hook, which does not contain its secret."""

    id: str
    organization: str
    name: str
    url: str
    events: tuple[str, ...]
    active: bool
    created_at: datetime
    created_by: str | None
    secret_last4: str
    secret_rotated_at: datetime | None
    previous_secret_until: datetime | None
    last_success_at: datetime | None
    last_failure_at: datetime | None
    consecutive_failures: int
    disabled_reason: str | None

    @classmethod
    def from_row(cls, row: Row) -> "Hook":
        """A hook from its columns in this order: events as JSON, times as text."""
        created_at, times = from_text(row[6]), map(from_text, row[9:13])
        values = [*row[:4], tuple(json.loads(row[4])), bool(row[5]), created_at, *row[7:9], *times]
        return cls(*values, *row[13:])


@dataclass(frozen=True)
class Delivery:
    """The record of a message to a hook: of its last attempt, and without anything that the receiver answered."""

    id: str
    hook_id: str
    event: str
    job_id: str | None
    status: str  # pending, delivered or dead
    attempts: int
    status_code: int | None  # of the last attempt, as are error and ms
    error: str | None
    ms: int | None
    created_at: datetime
    attempted_at: datetime | None
    next_attempt_at: datetime | None

    @classmethod
    def from_row(cls, row: Row) -> "Delivery":
        """A delivery from its columns in this order: times as text."""
        values = [*row[:9], *map(from_text, row[9:])]
        return cls(*values)


class HookChanges(TypedDict, total=False):
    """What can be changed of a hook."""

    name: str
    url: str
    events: Sequence[str]
    active: bool
