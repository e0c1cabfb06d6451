"""The copies of a lake: where its visits were published, and which erasures these copies do not follow yet."""

import secrets
from datetime import datetime
from typing import NamedTuple

from data.store.clock import format_time, parse_time
from data.store.lake import Lake


class Copy(NamedTuple):
    """The visits of one organization at one target."""

    target: str
    organization: str
    version: int  # of the log of its visits; -1 until one was written
    published_at: datetime | None  # when it was last found to be what the manifest says
    erasures: int
    followed: int
    due_since: datetime | None
    """When the first erasure was that it does not follow yet: it may hold erased visits. None: it follows all."""


def copies(lake: Lake, target: str = "", organization: str = "") -> list[Copy]:
    """The copies at one target or at all, of one organization or of all."""
    rows = lake.manifest.rows(
        "SELECT target, organization, version, published_at, erasures, followed, due_since FROM copies "
        "WHERE ? IN ('', target) AND ? IN ('', organization) ORDER BY target, organization",
        [target, organization],
    )
    return [
        Copy(name, owner, version, parse_time(at), erasures, followed, parse_time(since))
        for name, owner, version, at, erasures, followed, since in rows
    ]


def begin_copy(lake: Lake, target: str, organization: str) -> Copy:
    """The copy, which is recorded before its first object is written: from then on erasures must reach it."""
    found = copies(lake, target, organization)
    if not found:
        with lake.manifest.transaction() as db:
            db.execute(
                "INSERT INTO copies (target, organization, version, erasures, followed) VALUES (?, ?, -1, 0, 0)",
                [target, organization],
            )
        found = copies(lake, target, organization)
    return found[0]


def record_copy(lake: Lake, copy: Copy, version: int, now: datetime) -> None:
    """Record that a copy is now what the manifest said after `copy` was read, and holds nothing that was erased."""
    with lake.manifest.transaction() as db:
        db.execute(
            "UPDATE copies SET version = ?, published_at = ?, followed = ?, "
            "due_since = iif(erasures > ?, due_since, NULL) WHERE target = ? AND organization = ?",
            [version, format_time(now), copy.erasures, copy.erasures, copy.target, copy.organization],
        )


def forget_copies(lake: Lake, target: str) -> int:
    """Forget a target; what is there stays. Returns how many copies were forgotten."""
    with lake.manifest.transaction() as db:
        return db.execute("DELETE FROM copies WHERE target = ?", [target]).rowcount


def mark_of(lake: Lake) -> str:
    """A random name of this lake, by which a target shows whose copy it holds."""
    with lake.manifest.transaction() as db:
        db.execute("INSERT OR IGNORE INTO marks VALUES (1, ?)", [secrets.token_hex(16)])
        ((mark,),) = db.execute("SELECT mark FROM marks").fetchall()
        return str(mark)
