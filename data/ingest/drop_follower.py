"""Follows a folder or bucket with complete log objects from other programs; lands each distinct content exactly once.

All objects are listed in each pass, because new keys may sort before older keys. Each version that lands gets a row in
the table `objects`, in the transaction that lands its visits. Rows for versions with content that had already landed
are inserted together, at the end of the pass at the latest.
"""

import sqlite3
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from data.buckets.object_errors import ObjectUnavailable, TargetUnavailable
from data.errors import BadInput, Conflict
from data.ingest.dropped import Drop, DroppedObject
from data.ingest.follower import FollowTotals
from data.ingest.importer import Importer, Options
from data.ingest.visitor_ids import LIFETIME, delete_old_salts
from data.logs.source import LogUnavailable
from data.manifest.logs import ObjectVersion
from data.progress import Progress, ignore_progress
from data.store.lake import Lake
from data.text import plural

_FAILURES: Final = 3
"""Number of consecutive failures of the folder or bucket after which a pass ends."""
_FIRST_WAIT_SECONDS, _MAX_WAIT_SECONDS = 60, 3_600
"""First and maximum delay before retrying an object that cannot be read; the delay doubles each time."""
_NAMED: Final = 3
"""Maximum number of unread objects named in the messages of one pass; any further unread objects are only counted."""
_NOTED_AT_ONCE: Final = 1_000


@dataclass
class DropTotals(FollowTotals):
    """Statistics since the program started."""

    objects: int = 0
    repeated: int = 0  # objects with content that had already landed
    refused: int = 0  # objects that are not logs, or have odd keys

    @property
    def read(self) -> str:
        """The number of objects read, as part of a sentence."""
        repeated = f", {self.repeated:,} of them with content that was already imported" if self.repeated else ""
        refused = f"; {plural(self.refused, 'object')} refused" if self.refused else ""
        return f"{plural(self.objects, 'object')} read{repeated}{refused}"


@dataclass
class _Wait:
    """The delay before retrying an object that could not be read."""

    seconds: int = _FIRST_WAIT_SECONDS
    ends_at: float = 0.0  # 0: the folder or bucket failed, so retry at the next pass, after all others


class DropFollower:
    """Follows one folder or bucket. `notify` receives messages for the operator, in whole sentences."""

    def __init__(
        self,
        lake: Lake,
        importer: Importer,
        drop: Drop,
        options: Options,
        *,
        notify: Callable[[str], None],
        progress: Progress = ignore_progress,
    ) -> None:
        self.totals = DropTotals()
        self.is_stopping = False  # set this to end a tick early, after the current object
        self._lake, self._importer, self._drop, self._options = lake, importer, drop, options
        self._notify, self._progress = notify, progress
        self._done: set[ObjectVersion] = set()  # rejected or empty: read again only after a restart
        self._waiting: dict[ObjectVersion, _Wait] = {}
        self._messages: list[str] = []  # about single unread objects, sent after each pass
        self._repeated: list[tuple[ObjectVersion, int]] = []  # landed earlier by these batches; not yet recorded
        self._last_error = ""
        self._has_warned_of_old = False

    def tick(self) -> None:
        """Land all new objects. A failure to read or store an object is reported once; a later tick tries again."""
        try:
            error = self._pass()
        except TargetUnavailable as unavailable:
            error = str(unavailable)
        except (OSError, sqlite3.OperationalError) as failed:
            reason = (isinstance(failed, OSError) and failed.strerror) or str(failed)
            error = f"visits cannot be stored: {reason}."
        if error and error != self._last_error:
            self._notify(f"{error} Nothing is lost; retrying.")
        elif self._last_error and not error:
            self._notify("objects can be read again.")
        self._last_error = error

    @property
    def has_failed(self) -> bool:
        """Whether the last tick left anything unread, or any tick rejected an object."""
        return bool(self._last_error or self.totals.refused or self._waiting)

    def close(self) -> None:
        """Do nothing: no file is open between ticks."""

    def _pass(self) -> str:
        """Land all new objects; return the last problem with the folder or bucket, or '' if there was none."""
        self._importer.refresh_rules()
        delete_old_salts(self._lake.salts, datetime.now(UTC))  # also when nothing lands
        new = self._new_objects()
        size, done, failures, error = sum(dropped.size for dropped in new), 0, 0, ""
        self.totals.size = size
        try:
            for dropped in new:
                if self.is_stopping or failures == _FAILURES:
                    break
                try:
                    self._land(dropped)
                    self._waiting.pop(dropped.version, None)
                    failures = 0
                except (ObjectUnavailable, LogUnavailable, Conflict) as unreadable:
                    self._wait(dropped.version, str(unreadable))
                except TargetUnavailable as unavailable:
                    error, failures = str(unavailable), failures + 1
                    self._waiting.setdefault(dropped.version, _Wait())
                self.totals.position = done = done + dropped.size
                self._progress(done, size)
        finally:
            self._note_repeated()
            self._report_objects()
        return error

    def _new_objects(self) -> list[DroppedObject]:
        """Return the objects to read now; objects that failed before come last, so that they do not delay others."""
        manifest, organization, new = self._lake.manifest, self._options.organization, list[DroppedObject]()
        for page in self._drop.pages():
            keys = [dropped.version.key for dropped in page]
            known = manifest.objects.known_versions(organization, self._drop.bucket, keys) | self._done
            new += [dropped for dropped in page if dropped.version not in known]
        for dropped in new:
            if dropped.is_odd:
                self._done.add(dropped.version)
                self.totals.refused += 1
                self._messages.append(
                    f"{dropped.version.key!r} is skipped: a key must not have empty parts, `.`, `..` or control "
                    "characters; rename it."
                )
        listed, now = {dropped.version for dropped in new}, time.monotonic()
        self._waiting = {version: wait for version, wait in self._waiting.items() if version in listed}
        ready = [one for one in new if not one.is_odd and self._waiting.get(one.version, _Wait()).ends_at <= now]
        return sorted(ready, key=lambda one: one.version in self._waiting)

    def _wait(self, version: ObjectVersion, problem: str) -> None:
        """Delay the next attempt to read an object."""
        wait = self._waiting.setdefault(version, _Wait())
        if not wait.ends_at:
            self._messages.append(f"{problem} It will be retried.")
        wait.ends_at = time.monotonic() + wait.seconds
        wait.seconds = min(2 * wait.seconds, _MAX_WAIT_SECONDS)

    def _report_objects(self) -> None:
        """Send the messages about unread objects; if there are many, the first few and the number of the rest."""
        for text in self._messages[:_NAMED]:
            self._notify(text)
        if (more := len(self._messages) - _NAMED) > 0:
            self._notify(f"{plural(more, 'more object')} could not be read.")
        self._messages = []

    def _land(self, dropped: DroppedObject) -> None:
        source = self._drop.source(dropped)
        if source is None:  # deleted since the listing
            return
        try:
            summary = self._importer.run(source, self._options, version=dropped.version)
        except LogUnavailable:
            raise
        except BadInput as error:
            self._done.add(dropped.version)
            self.totals.refused += 1
            self._notify(f"{error} This object is ignored until it changes.")
            return
        self.totals.objects += 1
        self.totals.add(summary)
        if summary.is_truncated:
            self._notify(f"{source} is truncated: only its readable part was imported.")
        oldest = (datetime.now(UTC) - LIFETIME - timedelta(days=1)).date()
        if summary.first_day and summary.first_day < oldest and not self._has_warned_of_old:
            self._has_warned_of_old = True
            self._notify(
                f"{source} has visits on {summary.first_day}, more than 48 hours ago. They count, but a visitor "
                "counts twice if their other visits of the same day were imported more than 48 hours ago."
            )
        if summary.batch:
            self.totals.repeated += 1
            self._repeated.append((dropped.version, summary.batch))
        elif not summary.lines:
            self._done.add(dropped.version)
        if len(self._repeated) == _NOTED_AT_ONCE:
            self._note_repeated()

    def _note_repeated(self) -> None:
        self._lake.manifest.objects.note(self._options.organization, self._repeated)
        self._repeated = []
