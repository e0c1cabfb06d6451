"""Requests that are reported while they happen: classified like the lines of a log, and kept until their file is due.

What a sender may report is in facts.py. Client addresses live here in memory only.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from typing import Any, Final

import pyarrow as pa
import re2

from data import pending
from data.addresses import Network
from data.answering import Answers
from data.classify import Classifier, Origin, Request
from data.countries import Countries
from data.errors import BadInput
from data.facts import Facts, Row, facts_of
from data.iplists import snapshots
from data.lake import Lake
from data.salts import salts_of, visitor_of
from data.verifying import Verifier
from data.visits import SHORT_CODE_PATTERN, VISITS, Classification

REFRESH_AFTER: Final = timedelta(minutes=1)
_OWN: Final = ("day", "visited_at", "domain", "short_code", "path", "method", "status", "country", "visitor",
               "is_malicious", "rules_version")  # fmt: skip
"""The columns that are a visit's own; the others are shared by all of one identity, or of one origin."""
_TABLE: Final = VISITS.insert(0, pa.field("day", pa.date32()))


@dataclass(frozen=True)
class Refused:
    """A visit that cannot be taken, by its place in what was sent, from 0."""

    index: int
    error: str


@dataclass(frozen=True)
class Received:
    """What one sender reported at once."""

    organization: str
    visits: pa.Table  # `day` and the columns of VISITS
    refused: list[Refused]


class Intake:
    """Takes visits into one lake. One thread at a time."""

    def __init__(
        self,
        lake: Lake,
        proxies: Iterable[Network] = (),
        countries: Countries | None = None,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._lake = lake
        self._now = now
        self._countries = countries
        self._classifier = Classifier()
        self._proxies = tuple(proxies)
        self._who = lru_cache(1 << 14)(self._who_uncached)
        self._place = lru_cache(1 << 14)(self._place_uncached)
        self._salts: dict[date, str] = {}
        self._refreshed_at = datetime.min.replace(tzinfo=UTC)
        self._lists_changed_at = 0
        self._refresh(now())
        self._short_code = re2.compile(SHORT_CODE_PATTERN)
        self._probe = re2.compile(self._classifier.probe_pattern)

    def read(self, rows: Sequence[Row], organization: str) -> Received:
        """Classify what was sent, JSON objects as facts.py reads them; what is wrong is refused row by row."""
        now, facts, refused = self._now(), [], []
        self._refresh(now)
        for index, row in enumerate(rows):
            try:
                facts.append(facts_of(row, now))
            except BadInput as error:
                refused.append(Refused(index, str(error)))
        return Received(organization, self._visits(facts, organization), refused)

    def keep(self, received: Sequence[Received]) -> None:
        """Make the visits of several senders durable at once. Raises sqlite3.OperationalError when the disk fails."""
        tables: dict[str, list[pa.Table]] = {}
        for one in received:
            if len(one.visits):
                tables.setdefault(one.organization, []).append(one.visits)
        if tables:
            whole = {organization: pa.concat_tables(parts) for organization, parts in tables.items()}
            pending.keep(self._lake.manifest, whole, self._now())

    def _visits(self, facts: list[Facts], organization: str) -> pa.Table:
        answers = Answers()
        salts = self._salts_of({fact.visited_at.date() for fact in facts})
        rows = [self._row(fact, organization, salts, answers) for fact in facts]
        *own, identities, origins = zip(*rows, strict=True) if rows else [()] * (len(_OWN) + 2)
        columns = dict(zip(_OWN, own, strict=True))
        tables = answers.tables()
        shared = {
            **_columns(tables["identities"], identities),
            **_columns(tables["origins"], origins),
            **{name: pa.array(columns[name], _TABLE.field(name).type) for name in _OWN},
        }
        return pa.table([shared[name].cast(_TABLE.field(name).type) for name in _TABLE.names], schema=_TABLE)

    def _refresh(self, now: datetime) -> None:
        """Forget what may have changed on disk: salts that are deleted, lists of addresses that are newer."""
        if now - self._refreshed_at < REFRESH_AFTER:
            return
        self._refreshed_at, self._salts = now, {}
        lists_changed_at = self._lake.ip_lists.stat().st_mtime_ns  # of the folder: each list is replaced as a whole
        if lists_changed_at != self._lists_changed_at:
            self._lists_changed_at = lists_changed_at
            self._verifier = Verifier(snapshots(self._lake), self._proxies)

    def _salts_of(self, days: set[date]) -> dict[date, str]:
        if days - self._salts.keys():
            self._salts |= salts_of(self._lake.salts, days, self._now())
        return self._salts

    def _row(self, fact: Facts, organization: str, salts: dict[date, str], answers: Answers) -> tuple[Any, ...]:
        """The values of _OWN, then the numbers of identity and origin."""
        says, origin, user_agent = self._who(fact.user_agent, fact.method, fact.referrer, fact.target.query)
        day = fact.visited_at.date()
        if fact.ip and self._verifier.can_tell(says):
            says = self._verifier.confirmed(says, fact.ip, day)
        short_code, is_malicious = self._place(fact.target.path)
        return (
            day, fact.visited_at, fact.target.domain or None, short_code, fact.target.path, fact.method, fact.status,
            fact.country or (self._countries.of(fact.ip) if self._countries and fact.ip else None),
            visitor_of(salts[day], organization, fact.ip, user_agent) if fact.ip else None,
            is_malicious, self._classifier.rules_version,
            answers.identity(says, user_agent), answers.origin(origin),
        )  # fmt: skip

    def _who_uncached(self, *request: str) -> tuple[Classification, Origin, str]:
        """What the rules say of a request, from where it came, and its user agent in readable form."""
        logged = Request.logged(*request)
        return self._classifier.classify(logged), self._classifier.origin(logged), logged.user_agent

    def _place_uncached(self, path: str) -> tuple[str | None, bool]:
        """The short code of a path, if it is one, and whether only probes ask for it."""
        code = self._short_code.search(path)
        return (code[1] or None if code else None), self._probe.search(path) is not None


def _columns(table: pa.Table, numbers: Sequence[int]) -> dict[str, pa.ChunkedArray]:
    taken = table.take(pa.array(numbers, pa.int64()))
    return {name: taken[name] for name in table.column_names[1:]}
