"""Applies the current rules to stored visits that other versions of the rules classified, partition by partition.

Results that depend on the client's address, or on parts of the request that are not stored, are kept. If a query string
had both `referrer` and `utm_source`, only `utm_source` is stored and used. A referral known only from `referrer` in the
query is lost once the path has been classified as a probe.
"""

from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import urlencode

import duckdb
import pyarrow as pa

from data.disk.files import ROW_GROUP
from data.ingest.dictionary import text_columns
from data.links.index import LinkIndex
from data.manifest.files import READERS_GRACE, LandedFile
from data.manifest.policies import RECLASSIFYING
from data.progress import Progress, ignore_progress
from data.rules.classifier import Request, shared_classifier
from data.rules.edge import is_unnamed
from data.rules.files import FILE_PATTERN, UPGRADED
from data.rules.ip_verification import apply_verdict
from data.rules.own_rules import OwnRules, own_rules
from data.rules.paths import classify_path
from data.signals import BITS
from data.sql import read_sql
from data.store.engines import rewriting_engine, until_memory_suffices
from data.store.footers import Footer
from data.store.lake import Lake
from data.store.lake_tables import lake_tables
from data.store.landing import write_visits
from data.store.rewriting import Partition, Rewrite, partitions, readable, rewrite
from data.visits import Classification

MAX_VISITS: Final = 250_000
"""Maximum number of visits of a file to reclassify at a time, so that memory does not depend on the file's size: a file
with 14 million visits takes 665 MB; with a million at a time, it takes 936 MB and just as long. If strings are too
long, the number is reduced."""


class CategoryChange(NamedTuple):
    """The old and the new category of visits; they are equal if only other columns change."""

    before: str
    after: str


class ReasonChange(NamedTuple):
    """A reason in REASONS_ASIDE that visits gain or lose."""

    name: str
    is_set: bool


CategoryChanges = defaultdict[CategoryChange, Counter[str | None]]
"""The number of visits with each change, by user agent."""


@dataclass
class ReclassificationResult:
    """Counts of checked, rewritten and changed visits."""

    visits: int = 0  # checked
    rewritten: int = 0  # visits in files that contain visits classified by other rules
    partitions: int = 0
    reasons: Counter[ReasonChange] = field(default_factory=Counter)
    changes: CategoryChanges = field(default_factory=lambda: CategoryChanges(Counter))

    @property
    def changed(self) -> int:
        """The number of visits with a changed classification."""
        return sum(agents.total() for agents in self.changes.values())


class Reclassifier:
    """Reclassifies the visits of one lake."""

    def __init__(self, lake: Lake, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self._lake = lake
        self._now = now
        self._classifier = shared_classifier(lake_tables(lake))
        self._links = LinkIndex(lake)

    def run(
        self, organizations: list[str], dry_run: bool = False, progress: Progress = ignore_progress
    ) -> ReclassificationResult:
        """Rewrite every file that contains visits classified by other rules, one partition at a time, each atomically.

        A dry run only counts the changes. Raises LakeDamaged for a damaged file; earlier partitions stay rewritten.
        """
        result = ReclassificationResult()
        work = [partition for name in organizations for partition in partitions(self._lake, name)]
        total = sum(file.visits for _, files in work for file in files)
        with rewriting_engine(self._lake.staging) as engine:
            for partition, files in work:
                self._run(engine, partition, dry_run, result)
                result.visits += sum(file.visits for file in files)
                progress(result.visits, total)
        return result

    def _run(
        self, engine: duckdb.DuckDBPyConnection, partition: Partition, dry_run: bool, result: ReclassificationResult
    ) -> None:
        """Reclassify the files in one partition that contain visits classified by other rules."""
        own = own_rules(self._lake.manifest.exclusions.rules(partition.organization))
        rules_version = own.version(self._classifier.rules_version)

        def reclassify(work: Rewrite) -> None:
            files = []
            for file in self._lake.manifest.files.live(partition.organization, partition.day, partition.day):
                asked = {"files": readable(self._lake, file), "rules_version": rules_version}
                rows = engine.execute(read_sql("data.tasks", "sql/has_old_rules"), asked).fetchall()
                files += [file] if rows[0][0] else []
            links = self._links.links(partition.organization)
            engine.register("link_codes", pa.table({"short_code": links.short_codes}))
            engine.register("link_domains", pa.table({"domain": pa.array(links.domains, pa.string())}))
            for file in files:
                self._reclassify(engine, file, own, None if dry_run else work.stage([file], file.visits), result)
            result.partitions += bool(files)

        rewrite(self._lake, partition.organization, RECLASSIFYING, reclassify, now=self._now, grace=READERS_GRACE)

    def _reclassify(
        self,
        engine: duckdb.DuckDBPyConnection,
        file: LandedFile,
        own: OwnRules,
        target: tuple[Path, Footer] | None,
        result: ReclassificationResult,
    ) -> None:
        """Write a file's reclassified visits to `target`, unless it is None, and add the changes to `result`."""
        found = ReclassificationResult()

        def write(visits: int) -> None:
            found.changes.clear()
            found.reasons.clear()
            parts = self._reclassified(engine, file, own, visits, found)
            if target:
                write_visits(chain.from_iterable(part.to_arrow_reader(ROW_GROUP) for part in parts), *target)
            else:
                deque(parts, maxlen=0)

        until_memory_suffices(write, (MAX_VISITS, ROW_GROUP))
        result.rewritten += file.visits
        result.reasons.update(found.reasons)
        for change, agents in found.changes.items():
            result.changes[change].update(agents)

    def _reclassified(
        self,
        engine: duckdb.DuckDBPyConnection,
        file: LandedFile,
        own: OwnRules,
        visits: int,
        found: ReclassificationResult,
    ) -> Iterator[duckdb.DuckDBPyRelation]:
        """Yield a file's visits with their new classifications, in the order stored, in batches.

        Changes are added to `found`. Each relation is valid until the next is requested.
        """
        files, paths = readable(self._lake, file), self._classifier.paths
        rules: dict[str, Any] = {
            "probe_pattern": paths.probe_pattern, "program_pattern": paths.program_pattern,
            "file_pattern": FILE_PATTERN, "own_agents": own.agent_pattern, "own_paths": own.path_pattern,
            "upgraded": UPGRADED, "bits": BITS,
        }  # fmt: skip
        rules_version = {"rules_version": own.version(self._classifier.rules_version)}
        for first in range(0, file.visits, visits):
            rows = {"first_row": first, "end_row": first + visits}
            engine.execute(read_sql("data.tasks", "sql/stored_visits"), {"files": files, **rows, **rules})
            inputs = engine.execute(read_sql("data.tasks", "sql/distinct_inputs")).fetchall()
            engine.register("classified", self._classified(inputs))
            changed = engine.execute(read_sql("data.tasks", "sql/changed_visits")).fetchall()
            for before, after, user_agent, count in changed:
                found.changes[CategoryChange(before, after)][user_agent] += count
            marked = engine.execute(read_sql("data.tasks", "sql/changed_reasons"), {"bits": BITS}).fetchall()
            found.reasons.update({ReasonChange(*mark): count for *mark, count in marked})
            yield engine.sql(read_sql("data.tasks", "sql/reclassified_visits"), params=rules_version)

    def _classified(self, inputs: list[tuple[Any, ...]]) -> pa.Table:
        """Classify every distinct request; return a table of the requests' numbers, classifications and referrer
        types.
        """
        rows = []
        for _, user_agent, method, referrer, referrer_type, utm_source, path_kind, *before in inputs:
            stored, address = Classification(*before), ""
            if referrer:  # its path is not stored, but the type of some hosts depends on the path
                path = self._classifier.referrers.path_of(referrer, referrer_type)
                address = f"{referrer}{path}" if "://" in referrer else f"https://{referrer}{path}"
            query = urlencode({"utm_source": utm_source}) if utm_source else ""
            request = Request(user_agent, method, address, query)
            classification = self._classifier.classify(request)
            rests_on_query = stored.detection_method == "utm" and classification.device_type != "bot"
            if rests_on_query and not utm_source:  # it rests on another query parameter, which is not stored
                classification = Classification(*stored[:7], *classification[7:])
            classification = classify_path(self._keep_verdict(stored, classification), path_kind)
            rows.append((*classification, self._classifier.origin(request).referrer_type))
        requests = pa.array([request for request, *_ in inputs], pa.int64())
        return pa.table({"request": requests, **text_columns((*Classification._fields, "referrer_type"), rows)})

    def _keep_verdict(self, stored: Classification, classification: Classification) -> Classification:
        """Return the new classification, keeping the stored results that came from a signature, the edge or the
        client's address.
        """
        if stored.detection_method == "signature":
            return classification if self._classifier.signers.is_finer(classification, stored) else stored
        if stored.detection_method == "edge":
            return stored if is_unnamed(classification) else classification
        if stored.detection_method != "ip_range":
            return classification
        is_disguised = stored.confidence in {"medium", "verified"} and classification.agent is None
        if stored.confidence == "contradicted" or is_disguised:
            return stored  # if disguised: address or signature revealed an agent with a browser's user agent
        return apply_verdict(classification, True) if classification.agent == stored.agent else classification
