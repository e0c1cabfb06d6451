"""The copies of a lake: where its visits were published, and which erasures these copies do not follow yet."""

import secrets
from datetime import datetime
from typing import NamedTuple

from data.manifest.clock import format_time, parse_time
from data.manifest.database import Database


class Copy(NamedTuple):
    """The visits of one organization at one target."""

    target: str
    organization: str
    version: int  # of the log of its visits; -1 until one was written
    published_at: datetime | None  # when it was last found to be what the manifest says
    erasures: int
    followed: int
    due_since: datetime | None
    """Time of the oldest unapplied erasure: it may hold erased visits. None: all are applied."""
    problem: str = ""  # why it was not published last time
    is_putting: bool = False  # objects are put, or were when a program ended
    settles_at: datetime | None = None
    """Until when what a program put that ended early may still appear there; None: nothing may."""
    content: str = ""  # the SHA-256 of the names of its files of visits; "": unknown, as of a copy by 1.0.0

    @property
    def upload_problem(self) -> str:
        """Why it may still get objects that were put before; "" if it cannot."""
        until = self.settles_at
        return f"an upload that was cut off may still appear until {until:%Y-%m-%d %H:%M} UTC." if until else ""


class Copies:
    """The copies of a lake."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def find(self, target: str = "", organization: str = "") -> list[Copy]:
        """The copies at one target or at all, of one organization or of all."""
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
        """The copy, which is recorded before its first object is written: from then on erasures must reach it."""
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
        """Record that a copy is now what the manifest said after `copy` was read.

        It holds nothing that was erased, unless something that was put may still appear.
        """
        followed = copy.followed if copy.settles_at else copy.erasures
        with self._database.transaction() as db:
            db.execute(
                "UPDATE copies SET version = ?, published_at = ?, followed = ?, problem = '', content = ?, "
                "due_since = iif(erasures > ?, due_since, NULL) WHERE target = ? AND organization = ?",
                [version, format_time(now), followed, content, followed, copy.target, copy.organization],
            )

    def record_putting(self, copy: Copy, *, is_putting: bool, settles_at: datetime | None) -> None:
        """Record that objects are being put, or that all have been, and until when others may still appear."""
        with self._database.transaction() as db:
            db.execute(
                "UPDATE copies SET is_putting = ?, settles_at = ? WHERE target = ? AND organization = ?",
                [is_putting, settles_at and format_time(settles_at), copy.target, copy.organization],
            )

    def record_problem(self, target: str, organization: str, problem: str) -> None:
        """Record why a copy could not be published, if it is one and that is new."""
        if any(copy.problem != problem for copy in self.find(target, organization)):
            with self._database.transaction() as db:
                db.execute(
                    "UPDATE copies SET problem = ? WHERE target = ? AND organization = ?",
                    [problem, target, organization],
                )

    def forget(self, target: str) -> int:
        """Forget a target; what is there stays. Returns how many copies were forgotten."""
        with self._database.transaction() as db:
            return db.execute("DELETE FROM copies WHERE target = ?", [target]).rowcount

    def mark(self) -> str:
        """A random name of this lake, by which a target shows whose copy it holds."""
        with self._database.transaction() as db:
            db.execute("INSERT OR IGNORE INTO marks VALUES (1, ?)", [secrets.token_hex(16)])
            ((mark,),) = db.execute("SELECT mark FROM marks").fetchall()
            return str(mark)

    def existing_mark(self) -> str:
        """The random name of this lake; "" if it was never published."""
        return next((str(mark) for (mark,) in self._database.rows("SELECT mark FROM marks")), "")
