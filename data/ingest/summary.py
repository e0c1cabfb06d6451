"""The result of an import."""

from collections import Counter
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Final

import pyarrow.compute as pc

from data.ingest.block_reader import BlockResult
from data.logs.formats import IN_FUTURE
from data.manifest.erasures import Erasure
from data.rules.exclusions import Exclusion
from data.signals import BITS, REASONS_ASIDE
from data.text import plural

MAX_SHORT_CODES: Final = 10
"""Maximum number of short codes in a summary."""
MIN_BEHIND_PROXY: Final = 20
"""Minimum number of visits needed to infer from their addresses that the server is behind a proxy."""
NEARLY_ALL: Final = 0.95
_FETCH_METADATA: Final = BITS["fetch_absent"] | BITS["fetch_sent"]
MAX_REJECTS: Final = 100_000
"""Maximum number of rejected lines listed in a summary; any further lines are only counted."""


@dataclass
class Summary:
    """The result of an import."""

    log_format: str = ""
    lines: int = 0
    visits: int = 0
    repaired: int = 0
    already_imported: bool = False
    batch: int | None = None  # the batch that landed this content earlier
    continued: bool = False  # the beginning of this file was imported before
    begun_without_domain: bool = False  # the beginning was imported without a domain, unlike this import
    is_truncated: bool = False
    without_user_agent: int = 0
    assets: int = 0  # requests left out because of `skip_assets`
    invalid_domains: int = 0  # visits with an invalid host in their line
    first_day: date | None = None
    last_day: date | None = None
    categories: Counter[str] = field(default_factory=Counter)
    aside: Counter[str] = field(default_factory=Counter)  # visits by the reason for not counting them: REASONS_ASIDE
    excluded: Counter[Exclusion] = field(default_factory=Counter)  # visits set aside, by rule of their owner
    with_fetch_metadata: int = 0  # visits for which it is known whether `Sec-Fetch-*` was sent
    with_short_code: int = 0  # visits to a path that matches the short-code pattern
    domains: set[str | None] = field(default_factory=set)  # the domains of the visits
    short_codes: list[str] = field(default_factory=list)  # the first MAX_SHORT_CODES short codes
    erasures: list[Erasure] = field(default_factory=list)  # erasures of single links or visitors, undone by --again
    contradicted: Counter[str] = field(default_factory=Counter)  # visits by the agent that they falsely claim to be
    local: Counter[str] = field(default_factory=Counter)  # visits by local address
    others: Counter[str] = field(default_factory=Counter)  # number of lines in each format other than the log's
    rejected: int = 0  # lines that could not be read
    in_future: int = 0  # rejected lines that are more than a day in the future
    rejects: list[tuple[int, str]] = field(default_factory=list)  # number and reason, for up to MAX_REJECTS lines
    rejects_file: Path | None = None

    def reject_rows(self) -> list[tuple[str | int, str]]:
        """Return the rows of the rejects file, header first."""
        more = self.rejected - len(self.rejects)
        rest = [("", f"and {plural(more, 'more line')}")] if more else []
        return [("line", "reason"), *self.rejects, *rest]

    @property
    def behind_proxy(self) -> int:
        """The number of visits from a local address, if nearly all visits come from it; otherwise 0."""
        most = max(self.local.values(), default=0)
        return most if self.visits >= MIN_BEHIND_PROXY and most >= NEARLY_ALL * self.visits else 0

    def add(self, part: BlockResult) -> None:
        """Add the visits and lines of a block."""
        self.lines += part.lines
        self.repaired += part.repaired
        self.without_user_agent += part.without_user_agent
        self.assets += part.assets
        self.invalid_domains += part.invalid_domains
        self.local += part.local
        self.excluded += part.excluded
        self.others += part.others
        self.rejected += len(part.rejects)
        self.in_future += sum(reason == IN_FUTURE for _, reason in part.rejects)
        self.rejects += part.rejects[: MAX_REJECTS - len(self.rejects)]
        if not len(part.visits):
            return
        first, last = part.visits["day"][0].as_py(), part.visits["day"][-1].as_py()
        self.visits += len(part.visits)
        self.first_day = min(first, self.first_day or first)
        self.last_day = max(last, self.last_day or last)
        self.domains.update(pc.unique(part.visits["domain"]).to_pylist())
        short_codes = part.visits["short_code"]
        self.with_short_code += len(short_codes) - short_codes.null_count
        if len(self.short_codes) < MAX_SHORT_CODES:
            new = [code for code in pc.unique(short_codes).to_pylist() if code and code not in self.short_codes]
            self.short_codes += new[: MAX_SHORT_CODES - len(self.short_codes)]
        for count in part.visits["bot_category"].value_counts().to_pylist():
            self.categories[count["values"]] += count["counts"]
        signals = pc.fill_null(part.visits["signals"], 0)
        for reason in REASONS_ASIDE:
            self.aside[reason.name] += pc.sum(pc.not_equal(pc.bit_wise_and(signals, reason.bit), 0)).as_py()
        self.with_fetch_metadata += pc.sum(pc.not_equal(pc.bit_wise_and(signals, _FETCH_METADATA), 0)).as_py()
        contradicted = part.visits["agent"].filter(pc.equal(part.visits["confidence"], "contradicted"))
        self.contradicted.update(contradicted.to_pylist())
