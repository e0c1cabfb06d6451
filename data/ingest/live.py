"""Accepts visits that programs report: classifies them like log lines, and stores them as pending visits.

data/logs/reported.py parses them. Client addresses are kept only in memory.
"""

import logging
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta
from math import inf
from time import perf_counter
from typing import Any, Final

import re2

from data.errors import LakeDamaged
from data.ingest.submissions import PACK, STEP_SECONDS, ClassifiedVisits, IngestResult, PreparedVisits, VisitRow
from data.ingest.visitor_ids import daily_salts, visitor_hash
from data.links.index import NO_LINKS, IndexedLinks, LinkIndex
from data.local_time import local_day, utc_offset
from data.logs.reported import Submission
from data.logs.request_facts import NO_RECORD, request_facts
from data.manifest.clock import is_recent
from data.manifest.organizations import ZoneChanged
from data.rules.bots import readable_user_agent
from data.rules.classifier import Origin, Request, combine, shared_classifier
from data.rules.exclusions import ExclusionKind
from data.rules.files import FILE_PATTERN, UPGRADED
from data.rules.geoip import CountryDatabase
from data.rules.ip_lists import Network
from data.rules.ip_verification import Verifier
from data.rules.networks import NetworkKinds
from data.rules.own_rules import own_rules
from data.rules.paths import PROBE, path_kind
from data.rules.patterns import encodable
from data.signals import BITS, OWN
from data.store import pending
from data.store.ip_list_files import changed_at, intact_snapshots
from data.store.lake import Lake
from data.store.lake_tables import CurrentTables
from data.store.packing import PackedVisits, pack
from data.text import ShortTextCache
from data.visits import SHORT_CODE_PATTERN, Classification, columns_filled_by

_LOG: Final = logging.getLogger(__name__)
REFRESH_AFTER: Final = timedelta(minutes=1)


_FILE: Final = re2.compile(FILE_PATTERN)
_SHARED: Final = columns_filled_by("classification", "referrer", "campaign")
_OWN: Final = (
    "visited_at", "domain", "short_code", "path", "method", "status", "country", "visitor", "is_malicious",
    "user_agent", "utc_offset", "signals", "bytes_sent",
)  # fmt: skip
"""The columns stored for each visit, in this order. All other columns together have few distinct combinations."""


class LiveIngest:
    """Stores reported visits in one lake. Not thread-safe."""

    def __init__(
        self,
        lake: Lake,
        proxies: Iterable[Network] = (),
        countries: CountryDatabase | None = None,
        short_code_pattern: str = SHORT_CODE_PATTERN,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        *,
        tables: CurrentTables | None = None,
    ) -> None:
        """Read the lake's tables unless `tables` is given. Raises BadInput if they are invalid."""
        self._lake = lake
        self._now = now
        self._countries = countries
        self._current_tables = tables or CurrentTables(lake)
        self._tables = self._current_tables.current()
        self._classifier = shared_classifier(self._tables)
        self._proxies = tuple(proxies)
        self._match_path = ShortTextCache(1 << 14, self._match_path_uncached)
        self._links = LinkIndex(lake)
        self._user_agent = ShortTextCache(1 << 14, self._user_agent_uncached)
        self._referral = ShortTextCache(1 << 14, self._referral_uncached)
        self._short_code = re2.compile(short_code_pattern)
        self._verifier, self._networks = Verifier({}, self._proxies, self._tables), NetworkKinds({})
        self._salts: defaultdict[str, dict[date, str]] = defaultdict(dict)  # by zone
        self._refreshed_at = datetime.min.replace(tzinfo=UTC)
        self._lists_changed_at = 0
        self._refresh(now())

    def land(self, submissions: Sequence[Submission]) -> list[IngestResult]:
        """Prepare and store the visits of several submissions; start again if an organization's zone was changed.

        Raises the same exceptions as `store`, except ZoneChanged.
        """
        while True:
            with suppress(ZoneChanged):  # so that they are dated in the new zone
                return self.store([PreparedVisits(submission) for submission in submissions])

    def prepare(self, prepared: PreparedVisits) -> None:
        """Parse, classify and pack a submission's next visits for about STEP_SECONDS.

        Invalid visits are rejected individually. Raises sqlite3.OperationalError or OSError if the disk fails, and
        LakeDamaged if the salts are lost.
        """
        classified = prepared.classified or self._new(prepared)
        self._classify(prepared, classified, perf_counter() + STEP_SECONDS)
        is_packed = bool(classified.rows) and (prepared.is_complete or len(classified.rows) >= PACK)
        prepared.classified = None if is_packed else classified
        if is_packed:
            prepared.packs.append(self._pack(classified))

    def store(self, batch: Sequence[PreparedVisits]) -> list[IngestResult]:
        """Store submissions durably in one transaction.

        Unprepared submissions are prepared first, together with others of the same organization. Raises ZoneChanged if
        an organization's zone was changed, so that all must be prepared again, sqlite3.OperationalError or OSError if
        the disk fails, and LakeDamaged if the salts are lost; in each case, nothing was stored.
        """
        visits = [(prepared.submission.organization, packed) for prepared in batch for packed in prepared.packs]
        together: dict[str, ClassifiedVisits] = {}
        for prepared in batch:
            organization = prepared.submission.organization
            while not prepared.is_complete:
                classified = together.get(organization) or self._new(prepared)
                self._classify(prepared, together.setdefault(organization, classified))
        visits += [
            (organization, self._pack(classified)) for organization, classified in together.items() if classified.rows
        ]
        if visits:
            pending.enqueue(self._lake.manifest, visits, self._now())
        return [prepared.result for prepared in batch]

    def _new(self, prepared: PreparedVisits) -> ClassifiedVisits:
        organization, manifest = prepared.submission.organization, self._lake.manifest
        self._refresh(self._now())
        own = own_rules(manifest.exclusions.rules(organization))
        version = own.version(self._classifier.rules_version)
        return ClassifiedVisits(manifest.organizations.zone(organization), own, version)

    def _refresh(self, now: datetime) -> None:
        """Drop cached salts, and reload IP lists and tables that have changed, at most once per REFRESH_AFTER."""
        if is_recent(self._refreshed_at, REFRESH_AFTER, now):
            return
        self._refreshed_at = now
        self._salts.clear()
        lists_changed_at, tables = changed_at(self._lake), self._current_tables.current()
        if tables != self._tables:
            self._classifier = shared_classifier(tables)
        if lists_changed_at != self._lists_changed_at or tables != self._tables:
            self._lists_changed_at, self._tables = lists_changed_at, tables
            self._networks = NetworkKinds(lists := intact_snapshots(self._lake))
            self._verifier = Verifier(lists, self._proxies, tables)
            self._user_agent.clear()

    def _classify(self, prepared: PreparedVisits, classified: ClassifiedVisits, ends_at: float = inf) -> None:
        """Classify the next visits and add their rows: at least one chunk, then more until `ends_at` (by perf_counter)
        or until there are PACK rows.
        """
        organization = prepared.submission.organization
        self._refresh(self._now())
        try:
            links = self._links.links(organization)
        except LakeDamaged as error:  # damaged links must not block reported visits
            _LOG.warning("%s Until then, visits are classified without links.", error)
            links = NO_LINKS
        while not prepared.is_complete:
            classified.rows += self._next_rows(prepared, classified, links)
            if len(classified.rows) >= PACK or perf_counter() >= ends_at:
                break

    def _next_rows(self, prepared: PreparedVisits, classified: ClassifiedVisits, links: IndexedLinks) -> list[VisitRow]:
        """Return the rows of the valid visits among the next CHUNK visits."""
        now = self._now()
        facts = prepared.parse(now.replace(tzinfo=None))
        organization, shared = prepared.submission.organization, classified.shared
        zone, own = classified.zone, classified.own
        offsets = [utc_offset(fact.visited_at, zone) for fact in facts]
        days = [local_day(fact.visited_at, offset) for fact, offset in zip(facts, offsets, strict=True)]
        salts = self._salts[zone]
        if set(days) - salts.keys():
            salts |= daily_salts(self._lake.salts, set(days), now, zone)
        rows = []
        for fact, offset, day in zip(facts, offsets, days, strict=True):
            domain, path, query = fact.target
            user_agent, by_agent, is_claim = self._user_agent(fact.user_agent)
            by_referral, origin, signals = self._referral(fact.method, fact.referrer, query)
            if fact.record is not NO_RECORD:
                signals |= request_facts(fact.record) or 0
            origin = origin.for_domain(domain, links.domains)
            ip, country, visitor, classification = fact.ip, fact.country, None, by_agent
            if ip:
                signals |= self._networks.fact(ip) | own.of_address(ip)
                country = country or (self._countries.lookup(ip) or "" if self._countries else "")
                visitor = visitor_hash(salts[day], organization, ip, user_agent)
            if ip and is_claim:
                classification = self._verifier.verify(classification, ip, day)
            if fact.record.signature_agent:
                named = self._classifier.signers.named(classification, fact.record.signature_agent)
                is_new = ip and named is not classification
                classification = self._verifier.verify(named, ip, day) if is_new else named
            short_code, is_probe, is_program, is_file = self._match_path(path)
            kind = path_kind(is_probe, is_program, is_probe and links.has_short_code(short_code))
            is_part = is_file or signals & BITS["page_part"] or fact.status == UPGRADED
            is_part = is_part or (signals & BITS["accepts_no_page"] and by_agent.bot_category == "human")
            signals |= BITS["file"] if is_part and kind != PROBE else 0
            signals |= own.of_agent(user_agent) | own.of_path(path)
            if signals & OWN:
                values: dict[ExclusionKind, str] = {"address": ip, "agent": user_agent, "path": path}
                for rule_kind, value in values.items():
                    classified.excluded.update(own.matching(rule_kind, value))
            number = shared.setdefault((classification, by_referral, kind, origin), len(shared))
            rows.append((
                fact.visited_at, domain or None, short_code, path, fact.method, fact.status, country or None,
                visitor, kind == PROBE, user_agent or None, offset, signals or None, fact.bytes_sent, number,
            ))  # fmt: skip
        return rows

    def _user_agent_uncached(self, sent: str) -> tuple[str, Classification, bool]:
        """Return the unescaped user agent, its classification, and whether an address can change the
        classification.
        """
        user_agent = readable_user_agent(sent.replace("\0", "\ufffd").replace("\\", r"\\"))  # escaped as in a log
        classification = self._classifier.classify_user_agent(user_agent)
        return user_agent, classification, self._verifier.can_verify(classification)

    def _referral_uncached(self, method: str, referrer: str, query: str) -> tuple[Classification, Origin, int]:
        """Return the classification by referral, the origin, and the signals: `attacked` if the query is an attack."""
        request = Request("", method, referrer, query)
        signals = BITS["attacked"] if self._classifier.paths.is_attack(query) else 0
        return self._classifier.classify_referral(request), self._classifier.origin(request), signals

    def _match_path_uncached(self, path: str) -> tuple[str | None, bool, bool, bool]:
        """Return the short code of a path (None if it has none), and whether the path matches probes, programs and, if
        it has no short code, files.
        """
        code = self._short_code.search(path)
        short_code = code[1] or None if code else None
        is_file = short_code is None and _FILE.search(encodable(path)) is not None
        return short_code, *self._classifier.paths.match(path), is_file

    def _pack(self, visits: ClassifiedVisits) -> PackedVisits:
        """Pack visits into their stored form."""
        *own, numbers = zip(*visits.rows, strict=True)
        rows_shared = (
            (*combine(by_agent, by_referral, kind), origin.referrer, origin.referrer_type, *origin.utm)
            for by_agent, by_referral, kind, origin in visits.shared
        )
        shared: dict[str, Sequence[Any]] = dict(zip(_SHARED, zip(*rows_shared, strict=True), strict=True))
        shared["rules_version"] = [visits.rules_version] * len(visits.shared)
        packed = pack(dict(zip(_OWN, own, strict=True)), numbers, shared, visits.zone)
        return packed._replace(excluded=visits.excluded)
