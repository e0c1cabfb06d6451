"""Published copies of a lake: their targets, and the erasures not yet applied to them."""

import secrets
from datetime import datetime
from typing import NamedTuple

from data.manifest.clock import format_time, parse_time
from data.manifest.database import Database


class Copy(NamedTuple):
    """A copy of one organization's visits at one target."""

    target: str
    organization: str
    version: int  # version of the Delta log of its visits; -1 before the first
    published_at: datetime | None  # when it last matched the manifest
    erasures: int
    followed: int
    due_since: datetime | None
    """Time of the oldest erasure not yet applied: the copy may contain erased visits. None if all have been applied."""
    problem: str = ""  # why the last publication failed
    is_putting: bool = False  # objects are being written, or a program was killed while writing them
    settles_at: datetime | None = None
    """Time until which objects written by a killed program may still appear; None if no such objects are expected."""
    content: str = ""  # the SHA-256 of its visit files' names; "": unknown, as in copies made by 1.0.0

    @property
    def upload_problem(self) -> str:
        """The reason why objects written earlier may still appear in the copy; "" if no such objects are expected."""
        until = self.settles_at
        return f"an interrupted upload may still appear until {until:%Y-%m-%d %H:%M} UTC." if until else ""


class Copies:
    """The copies of a lake."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def find(self, target: str = "", organization: str = "") -> list[Copy]:
        """Return all copies, or only copies at one target or of one organization, sorted by target and organization."""
        rows = self._database.rows(
            "SELECT target, organization, version, published_at, erasures, followed, due_since, problem, is_putting, "
            "settles_at, content FROM copies "
            "WHERE ? IN ('', target) AND ? IN ('', organization) ORDER BY target, organization",
            [target, organization],
        )
        return [
            Copy(
                name,
                owner,
                version,
                parse_time(at),
                erasures,
                followed,
                parse_time(since),
                problem,
                bool(putting),
                parse_time(settles),
                content,
            )
            for name, owner, version, at, erasures, followed, since, problem, putting, settles, content in rows
        ]

    def begin(self, target: str, organization: str) -> Copy:
        """Return the copy of an organization at a target; record it if it is new.

        Call this before writing the first object, since erasures must reach the copy from then on.
        """
        found = self.find(target, organization)
        if not found:
            with self._database.transaction() as db:
                db.execute(
                    "INSERT INTO copies (target, organization, version, erasures, followed) VALUES (?, ?, -1, 0, 0)",
                    [target, organization],
                )
            found = self.find(target, organization)
        return found[0]

    def record(self, copy: Copy, version: int, content: str, now: datetime) -> None:
        """Record that a copy matches the manifest, which the caller read after `copy`.

        The copy then contains no erased visits, unless objects written earlier may still appear.
        """
        followed = copy.followed if copy.settles_at else copy.erasures
        with self._database.transaction() as db:
            db.execute(
                "UPDATE copies SET version = ?, published_at = ?, followed = ?, problem = '', content = ?, "
                "due_since = iif(erasures > ?, due_since, NULL) WHERE target = ? AND organization = ?",
                [version, format_time(now), followed, content, followed, copy.target, copy.organization],
            )

    def record_putting(self, copy: Copy, *, is_putting: bool, settles_at: datetime | None) -> None:
        """Record whether objects are being written, and until when objects written earlier may still appear."""
        with self._database.transaction() as db:
            db.execute(
                "UPDATE copies SET is_putting = ?, settles_at = ? WHERE target = ? AND organization = ?",
                [is_putting, settles_at and format_time(settles_at), copy.target, copy.organization],
            )

    def record_problem(self, target: str, organization: str, problem: str) -> None:
        """Record why a copy could not be published, if the copy exists and the problem is new."""
        if any(copy.problem != problem for copy in self.find(target, organization)):
            with self._database.transaction() as db:
                db.execute(
                    "UPDATE copies SET problem = ? WHERE target = ? AND organization = ?",
                    [problem, target, organization],
                )

    def forget(self, target: str) -> int:
        """Forget a target without deleting anything there. Returns the number of copies forgotten."""
        with self._database.transaction() as db:
            return db.execute("DELETE FROM copies WHERE target = ?", [target]).rowcount

    def mark(self) -> str:
        """Return the lake's random id, which targets store to identify the lake; create the id if it is missing."""
        with self._database.transaction() as db:
            db.execute("INSERT OR IGNORE INTO marks VALUES (1, ?)", [secrets.token_hex(16)])
            ((mark,),) = db.execute("SELECT mark FROM marks").fetchall()
            return str(mark)

    def existing_mark(self) -> str:
        """Return the lake's random id; "" if the lake was never published."""
        return next((str(mark) for (mark,) in self._database.rows("SELECT mark FROM marks")), "")
