"""The result of an import."""

from collections import Counter
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Final

import pyarrow.compute as pc

from data.ingest.block_reader import BlockResult
from data.logs.formats import IN_FUTURE
from data.store.erasures import Erasure

MAX_SHORT_CODES: Final = 10
"""The number of short codes in a summary."""


@dataclass
class Summary:
    """The result of an import."""

    log_format: str = ""
    lines: int = 0
    visits: int = 0
    repaired: int = 0
    already_imported: bool = False
    batch: int | None = None  # which landed that content before
    continued: bool = False  # the beginning of this file was imported before
    begun_without_domain: bool = False  # and without a domain, unlike this import
    cut_short: bool = False
    without_user_agent: int = 0
    assets: int = 0  # requests that were left out
    invalid_domains: int = 0  # visits whose line names a host that is not valid
    first_day: date | None = None
    last_day: date | None = None
    categories: Counter[str] = field(default_factory=Counter)
    with_short_code: int = 0  # visits whose path matches the short-code pattern
    domains: set[str | None] = field(default_factory=set)  # of the visits
    short_codes: list[str] = field(default_factory=list)  # the first MAX_SHORT_CODES of them
    erasures: list[Erasure] = field(default_factory=list)  # of single links or visitors, which --again undoes
    contradicted: Counter[str] = field(default_factory=Counter)  # claimed agent
    rejects: list[tuple[int, str]] = field(default_factory=list)  # line number and reason
    rejects_file: Path | None = None

    @property
    def rejected(self) -> int:
        """How many lines could not be read."""
        return len(self.rejects)

    @property
    def in_future(self) -> int:
        """How many of them are more than a day in the future."""
        return sum(reason == IN_FUTURE for _, reason in self.rejects)

    def add(self, part: BlockResult) -> None:
        """Add the visits and lines of a block."""
        self.lines += part.lines
        self.repaired += part.repaired
        self.without_user_agent += part.without_user_agent
        self.assets += part.assets
        self.invalid_domains += part.invalid_domains
        self.rejects += part.rejects
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
        contradicted = part.visits["agent"].filter(pc.equal(part.visits["confidence"], "contradicted"))
        self.contradicted.update(contradicted.to_pylist())
