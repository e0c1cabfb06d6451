"""Requests that are reported while they happen: classified like the lines of a log, and kept until their file is due.

What a sender may report is in facts.py. Client addresses live here in memory only.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from typing import Any, Final, NamedTuple

import pyarrow as pa
import re2

from data import pending
from data.addresses import Network
from data.answering import Answers
from data.classify import Classifier, Request
from data.countries import Countries
from data.errors import BadInput
from data.facts import Facts, Row, Sent, facts_of
from data.iplists import snapshots
from data.lake import Lake
from data.salts import salts_of, visitor_of
from data.verifying import Verifier
from data.visits import SHORT_CODE_PATTERN, VISITS, Classification

MOST_DAYS: Final = 366
"""Days of the visits that one sender reports at once: each day becomes a file."""
REFRESH_AFTER: Final = timedelta(minutes=1)
_OWN: Final = ("visited_at", "domain", "short_code", "path", "method", "status", "country", "visitor", "is_malicious")
"""The columns that are a visit's own; the others are shared by all of one identity, or of one origin."""
_TABLE: Final = VISITS.insert(0, pa.field("day", pa.date32()))


@dataclass(frozen=True)
class Refused:
    """A visit that cannot be taken, by its place in what was sent, from 0."""

    index: int
    error: str


class Landed(NamedTuple):
    """What became of what one sender reported."""

    accepted: int
    refused: list[Refused]


class _Who(NamedTuple):
    """Who made a request, and the numbers under which the tables of answers know that."""

    says: Classification
    user_agent: str  # in readable form
    is_claim: bool  # which an address may confirm or contradict
    identity: int
    origin: int


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
        self._place = lru_cache(1 << 12)(self._place_uncached)
        self._short_code = re2.compile(SHORT_CODE_PATTERN)
        self._probe = re2.compile(self._classifier.probe_pattern)
        self._salts: dict[date, str] = {}
        self._refreshed_at = datetime.min.replace(tzinfo=UTC)
        self._lists_changed_at = 0
        self._refresh(now())

    def land(self, sent: Sequence[Sent]) -> list[Landed]:
        """Classify what was sent and make it durable, of all senders at once; what is wrong is refused row by row.

        Raises sqlite3.OperationalError or OSError when the disk fails; then nothing was kept.
        """
        now = self._now()
        self._refresh(now)
        facts: defaultdict[str, list[Facts]] = defaultdict(list)
        landed = [_read(one.rows, now.replace(tzinfo=None), facts[one.organization]) for one in sent]
        tables = {organization: self._visits(told, organization) for organization, told in facts.items() if told}
        if tables:
            pending.keep(self._lake.manifest, tables, now)
        return landed

    def _refresh(self, now: datetime) -> None:
        """Forget what may have changed on disk: salts that are deleted, lists of addresses that are newer."""
        if now - self._refreshed_at < REFRESH_AFTER:
            return
        self._refreshed_at, self._salts = now, {}
        lists_changed_at = self._lake.ip_lists.stat().st_mtime_ns  # of the folder: each list is replaced as a whole
        if lists_changed_at != self._lists_changed_at:
            self._lists_changed_at = lists_changed_at
            self._verifier = Verifier(snapshots(self._lake), self._proxies)

    def _visits(self, facts: list[Facts], organization: str) -> pa.Table:
        """A table of `day` and the columns of VISITS."""
        answers, known = Answers(), dict[tuple[str, ...], _Who]()
        salts = self._salts_of({fact.visited_at.date() for fact in facts})
        rows = [self._row(fact, organization, salts, answers, known) for fact in facts]
        *own, identities, origins = zip(*rows, strict=True)
        tables = answers.tables()
        columns = {name: pa.array(values, _TABLE.field(name).type) for name, values in zip(_OWN, own, strict=True)}
        columns |= _taken(tables["identities"], identities) | _taken(tables["origins"], origins)
        columns["day"] = columns["visited_at"].cast(pa.date32())
        columns["rules_version"] = pa.repeat(self._classifier.rules_version, len(facts))
        return pa.table([columns[name] for name in _TABLE.names], schema=_TABLE)

    def _salts_of(self, days: set[date]) -> dict[date, str]:
        if days - self._salts.keys():
            self._salts |= salts_of(self._lake.salts, days, self._now())
        return self._salts

    def _row(
        self, fact: Facts, organization: str, salts: dict[date, str], answers: Answers,
        known: dict[tuple[str, ...], _Who],
    ) -> tuple[Any, ...]:  # fmt: skip
        """The values of _OWN, then the numbers of identity and origin."""
        visited_at, ip, (domain, path, query), method, status, user_agent, referrer, country = fact
        request = user_agent, method, referrer, query
        who = known.get(request) or known.setdefault(request, self._who(request, answers))
        identity, visitor = who.identity, None
        if ip:
            day = visited_at.date()
            visitor = visitor_of(salts[day], organization, ip, who.user_agent)
            country = country or (self._countries.of(ip) or "" if self._countries else "")
            if who.is_claim:
                identity = answers.identity(self._verifier.confirmed(who.says, ip, day), who.user_agent)
        short_code, is_malicious = self._place(path)
        own = visited_at, domain or None, short_code, path, method, status, country or None, visitor, is_malicious
        return (*own, identity, who.origin)

    def _who(self, facts: tuple[str, ...], answers: Answers) -> _Who:
        request = Request.logged(*facts)
        says, origin = self._classifier.classify(request), self._classifier.origin(request)
        numbers = answers.identity(says, request.user_agent), answers.origin(origin)
        return _Who(says, request.user_agent, self._verifier.can_tell(says), *numbers)

    def _place_uncached(self, path: str) -> tuple[str | None, bool]:
        """The short code of a path, if it is one, and whether only probes ask for it."""
        code = self._short_code.search(path)
        return (code[1] or None if code else None), self._probe.search(path) is not None


def _read(rows: Sequence[Row], now: datetime, facts: list[Facts]) -> Landed:
    """Add what can be read to `facts`, and tell what cannot."""
    refused, days = [], set[date]()
    for index, row in enumerate(rows):
        try:
            fact = facts_of(row, now)
            if len(days) == MOST_DAYS and fact.visited_at.date() not in days:
                raise BadInput(f"visits of {MOST_DAYS} other days came with it; send those of fewer days at once")
        except BadInput as error:
            refused.append(Refused(index, str(error)))
        else:
            facts.append(fact)
            days.add(fact.visited_at.date())
    return Landed(len(rows) - len(refused), refused)


def _taken(table: pa.Table, numbers: Sequence[int]) -> dict[str, pa.ChunkedArray]:
    """The columns of a table, but the first, for each of these rows of it."""
    taken = table.take(pa.array(numbers, pa.int64()))
    return {name: taken[name] for name in table.column_names[1:]}
