"""Imports a log into the lake: identifies its content, reads its blocks in parallel, and lands them as one batch."""

import csv
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from typing import Final

from data.disk.files import move_durably
from data.errors import BadInput, Conflict
from data.hosts import normalized_host
from data.ingest.block_reader import BlockReader, BlockResult, Options, ReaderPool
from data.ingest.client_addresses import ClientAddresses
from data.ingest.log_format import check_hosts, initial_format
from data.ingest.pipeline import Countries, Rules
from data.ingest.reimport import ReimportCheck
from data.ingest.summary import Summary
from data.ingest.visitor_ids import daily_salts
from data.links.index import LinkIndex
from data.logs.formats import has_text
from data.logs.source import Content, Source, blocks, identify
from data.manifest.arrivals import object_arrivals
from data.manifest.clock import format_time
from data.manifest.logs import Batch, ObjectVersion, check_domain, continued_batch
from data.manifest.objects import BEGINNINGS
from data.manifest.organizations import ZoneChanged
from data.progress import Progress, ignore_progress
from data.rules.classifier import shared_classifier
from data.rules.ip_lists import Network
from data.rules.ip_verification import Verifier
from data.rules.lake_tables import LakeTables
from data.rules.networks import NetworkKinds
from data.rules.own_rules import OwnRules, own_rules
from data.store.ip_list_files import changed_at, intact_snapshots
from data.store.lake import Lake
from data.store.lake_tables import CurrentTables
from data.store.landing import Landing
from data.text import plural

__all__ = ["Importer", "Options", "Summary"]

MAX_PARALLEL_BLOCKS: Final = 2
"""Number of blocks read in parallel. More would not help: classifying distinct values holds the interpreter lock."""


_ATTEMPTS: Final = 5
"""Maximum number of attempts to read an object while other programs land parts of it or set the zone."""


@dataclass(frozen=True)
class _LogFile:
    """A log, its content, and the earlier import of its beginning, if any."""

    path: Source
    content: Content
    before: Batch | None
    earlier_domains: tuple[str, ...]  # the domains with which the log, or its beginning, was imported before
    reimport: ReimportCheck | None = None  # the check before importing a log again
    replaces: Batch | None = None  # the earlier import that this import repeats
    version: ObjectVersion | None = None  # the version of a log object
    known: tuple[Batch, ...] = ()  # the batches of this object or content that had landed when it was read


class _LandedByAnother(Conflict):
    """Another program landed a part of an object while it was being read."""


class Importer:
    """Imports logs into one lake. Loading the rules is slow, so reuse one importer for many files.

    Addresses in `proxies` are not clients' addresses: a request through a proxy counts for the client that the proxy
    reports, and the proxy's address neither verifies nor contradicts an agent.
    """

    def __init__(
        self,
        lake: Lake,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        proxies: Iterable[Network] = (),
        countries: Countries | None = None,
    ) -> None:
        self._lake = lake
        self._now = now
        self._current_tables = CurrentTables(lake)
        self._tables: LakeTables | None = None
        self._proxies = tuple(proxies)
        self._clients = ClientAddresses(self._proxies)
        self._lists_changed_at = 0
        self._countries = countries
        self._links = LinkIndex(lake)
        self.readers = ReaderPool(self.reader)
        self._reimport: ReimportCheck | None = None  # created at the first import with `again`
        self.refresh_rules()

    def refresh_rules(self) -> None:
        """Reload the lake's IP lists and tables if they have changed."""
        lists_changed_at, tables = changed_at(self._lake), self._current_tables.current()
        if tables != self._tables:
            pool = ThreadPoolExecutor(1)  # its thread ends when the rules are loaded
            self._classifier = pool.submit(shared_classifier, tables)  # a log is hashed at the same time
            pool.shutdown(wait=False)
        if lists_changed_at != self._lists_changed_at or tables != self._tables:
            self._networks = NetworkKinds(lists := intact_snapshots(self._lake))
            self._verifier = Verifier(lists, self._proxies, tables)
            self.readers.close()
            self._lists_changed_at, self._tables = lists_changed_at, tables

    def reader(self) -> BlockReader:
        """Return a new reader with the current rules, salts, IP lists, countries and links. The caller closes it."""
        manifest = self._lake.manifest

        def salts(zone: str, days: list[date]) -> dict[date, str]:
            return daily_salts(self._lake.salts, days, self._now(), zone)

        def own(organization: str) -> OwnRules:
            return own_rules(manifest.exclusions.rules(organization))

        addresses = self._clients, self._verifier, self._networks, self._countries
        rules = Rules(self._classifier.result, salts, *addresses, self._links.links, manifest.organizations.zone, own)
        return BlockReader(rules, self._now)

    def run(
        self,
        path: Source,
        options: Options,
        dry_run: bool = False,
        progress: Progress = ignore_progress,
        again: bool = False,
        *,
        version: ObjectVersion | None = None,
    ) -> Summary:
        """Import the lines of a log that have not been imported yet, atomically; with `dry_run`, change nothing.

        With `again`, all lines are imported, including lines that were imported before and erased. Raises BadInput,
        without changing anything, if the log cannot be read, has no line in its format, or was imported with another
        domain or flag before; with `again`, also if the lake has visits on the log's days and domains. With a
        `version`, the log is an object: it continues only an earlier version of the same object; other contents, which
        may begin alike by chance, are compared as a whole. An object may be slow to read, so other imports are locked
        out only while its visits land. If another import lands a part of it first, or the organization's zone changes,
        it is read again; the last attempt raises Conflict.
        """
        for _ in range(_ATTEMPTS - 1 if version else 0):
            with suppress(_LandedByAnother, ZoneChanged):
                return self._read_and_land(path, options, dry_run, progress, again, version)
        return self._read_and_land(path, options, dry_run, progress, again, version)

    def _read_and_land(  # noqa: PLR0917
        self,
        path: Source,
        options: Options,
        dry_run: bool,
        progress: Progress,
        again: bool,
        version: ObjectVersion | None,
    ) -> Summary:
        with nullcontext() if version else self._lake.import_lock():
            manifest, organization = self._lake.manifest, options.organization
            batches = (
                manifest.objects.batches_of_key(organization, version)
                if version
                else manifest.logs.batches(organization)
            )
            content = identify(path, {batch.size for batch in batches}.union(BEGINNINGS if version else ()))
            prefixes = [batch for batch in batches if content.prefixes.get(batch.size) == batch.sha256]
            same = manifest.objects.batches_of_content(organization, content.sha256, content.size) if version else []
            prefixes += same
            before = continued_batch(prefixes, content.size, options.domain)
            longer = version and manifest.objects.batch_beginning_with(batches, content.size, content.prefixes)
            summary = Summary(is_truncated=content.is_truncated)
            domains = tuple(batch.domain for batch in prefixes if batch.visits)
            log = _LogFile(path, content, before, domains, version=version, known=(*batches, *same))
            if again and not (self._reimport and before and before.id in self._reimport.landed):
                self._reimport = self._reimport or ReimportCheck(self._lake, organization)
                log = replace(log, before=None, reimport=self._reimport, replaces=before)
            else:
                check_domain(path, before, options.domain)
                summary.continued = before is not None
                summary.begun_without_domain = bool(before and before.visits and not before.domain and options.domain)
            known = log.before if log.before and log.before.size == content.size else longer
            if known:
                summary.already_imported, summary.batch = True, known.id
            elif content.size:
                self._run(log, options, dry_run, summary, progress)
        return summary

    def _run(self, log: _LogFile, options: Options, dry_run: bool, summary: Summary, progress: Progress) -> None:
        """Stage the new part of a log and commit it."""
        name = log.content.sha256
        if log.replaces:  # names of erased files are never reused
            name += f"/{log.replaces.imported_at}"
        landing = Landing(self._lake, options.organization, name)
        if log.replaces and log.replaces.id:
            landing.batch = log.replaces.id
        try:
            whole_size = self._stage(log, options, landing, summary, progress)
            if summary.rejected and not (summary.visits or summary.assets) and log.before is None:
                line, reason = summary.rejects[0]
                raise BadInput(
                    f"{log.path}: it has {plural(summary.lines, 'line')}, but none in the {summary.log_format} format; "
                    f"line {line:,} was rejected: {reason}."
                )
            if log.reimport and summary.first_day and summary.last_day:
                default, domains = normalized_host(options.domain), summary.domains
                if domains <= {default}:  # all visits in the log have the domain of the import
                    domains = domains | set(map(normalized_host, log.earlier_domains))
                log.reimport.run(log.path, summary.first_day, summary.last_day, domains)
                summary.erasures = self._lake.manifest.erasures.of_days(
                    options.organization, summary.first_day, summary.last_day
                )
            if not dry_run:
                now = self._now()
                batch = Batch(
                    landing.batch, options.domain, log.content.sha256, log.content.size, whole_size, landing.visits,
                    summary.log_format if whole_size else "auto", format_time(now), object=log.version,
                )  # fmt: skip
                if summary.rejects:  # before the commit: after a crash, the next run writes them again
                    staged = self._lake.staging / f"rejects-{os.getpid()}.csv"
                    with staged.open("w", newline="", encoding="utf-8") as file:
                        # Only numbers and reasons: a line may contain an IP address.
                        csv.writer(file).writerows(summary.reject_rows())
                    summary.rejects_file = self._lake.rejects / f"{options.organization}-{batch.sha256[:16]}.csv"
                    move_durably(staged, summary.rejects_file)
                arrived = object_arrivals(options.domain, landing.visits, now) if log.version else None
                with self._turn_of(log, options.organization):
                    landing.commit(batch, log.replaces or log.before, arrived)
                    if log.version:
                        self._lake.manifest.objects.note_beginnings(landing.batch, log.content.prefixes)
                if log.reimport:
                    log.reimport.landed.add(landing.batch)
        finally:
            landing.discard()

    @contextmanager
    def _turn_of(self, log: _LogFile, organization: str) -> Iterator[None]:
        """Lock out other imports while an object lands; for a file, the caller already holds the lock.

        Raises _LandedByAnother if another program has landed a part of the object or the same content.
        """
        if not log.version:
            yield
            return
        with self._lake.import_lock():
            of_key = self._lake.manifest.objects.batches_of_key(organization, log.version)
            same = self._lake.manifest.objects.batches_of_content(organization, log.content.sha256, log.content.size)
            if {*of_key, *same} != set(log.known):
                raise _LandedByAnother(f"{log.path} was read by another program at the same time; try again.")
            yield

    def _stage(self, log: _LogFile, options: Options, landing: Landing, summary: Summary, progress: Progress) -> int:
        """Stage every visit in the new part of a log; return the offset after its last finished line."""
        start = end = log.before.whole_size if log.before else 0
        for part in self._parts(log, start, options, summary):
            if not summary.visits:
                check_hosts(log.path, part, summary.log_format, options, is_new=log.before is None)
            summary.add(part)
            if len(part.visits):
                landing.stage(part.visits, not part.block.finished, part.excluded)
            end = part.block.end if part.block.finished else end
            progress(part.block.end - start, log.content.size - start)
        return end

    def _parts(self, log: _LogFile, start: int, options: Options, summary: Summary) -> Iterator[BlockResult]:
        """Read the blocks of a log from byte `start` in parallel; yield the results in order."""
        summary.log_format = initial_format(log.path, log.before, options)
        is_resolved = log.before is not None and summary.log_format != "auto"
        in_flight: deque[Future[BlockResult]] = deque()
        try:
            with ThreadPoolExecutor(MAX_PARALLEL_BLOCKS) as pool:
                for block in blocks(log.path, log.content, start):
                    if not is_resolved and has_text(block.text):
                        resolved = self.readers.resolve_format(log.path, block, summary.log_format, options)
                        summary.log_format, is_resolved = resolved, True
                    in_flight.append(pool.submit(self.readers.read, block, summary.log_format, options))
                    if len(in_flight) > MAX_PARALLEL_BLOCKS:
                        yield in_flight.popleft().result()
                while in_flight:
                    yield in_flight.popleft().result()
        finally:
            self.readers.close(keep=1)
