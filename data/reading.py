"""From a block of log lines to classified visits: parsed and joined in DuckDB, classified once per distinct request.

Where lines come from and where visits go is not here. Client addresses live in this module only, in memory.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import date
from typing import Any

import duckdb
import pyarrow as pa

from data import readers
from data.answering import Answers, table_of
from data.classify import Classifier, Request
from data.countries import Countries
from data.errors import BadInput
from data.patterns import check_short_code_pattern
from data.source import Block
from data.steps import step
from data.verifying import Verifier
from data.visits import SHORT_CODE_PATTERN, check_organization

Salts = Callable[[list[date]], dict[date, str]]
"""Gives the salt of each day."""

_CLASSIFYING = threading.Lock()
"""Two threads that classify at once hand the interpreter lock to and fro: every pattern then waits for it."""


@dataclass(frozen=True)
class Options:
    """How the lines of one import are to be understood. Raises BadInput when they cannot be."""

    organization: str
    domain: str = ""  # of lines that name none themselves
    log_format: str = "auto"
    short_code_pattern: str = SHORT_CODE_PATTERN
    columns: readers.Columns = field(default_factory=readers.Columns)
    notation: readers.Notation | None = None

    def __post_init__(self) -> None:
        check_organization(self.organization)
        self._check_format()
        check_short_code_pattern(self.short_code_pattern)

    @property
    def flag(self) -> str:
        """The flag that says how to read the lines, and without which they cannot be read again; '' for none."""
        if self.notation:
            return "--log-format"
        return "--columns" if self.columns.renamed else ""

    @property
    def reader(self) -> str:
        """The format that lines are read in, and the flag that this needs; auto when the lines are to tell."""
        log_format = readers.BY_NOTATION if self.notation else self.log_format
        return log_format if log_format == "auto" else self.flagged(log_format)

    def flagged(self, log_format: str) -> str:
        """A format by its name, and the flag that it needs to be read again."""
        return f"{log_format} {self.flag}".rstrip()

    def _check_format(self) -> None:
        known = ("auto", *readers.FORMATS)
        if self.log_format not in known:
            raise BadInput(
                f"{self.log_format!r} is no log format; known are {', '.join(known)}. "
                "A Parquet file is read as ndjson, a log of nginx's own format with --log-format."
            )
        if self.notation and (self.log_format != "auto" or self.columns.renamed):
            raise BadInput("--log-format tells all of a line; leave out --format and --columns.")
        if self.columns.renamed and self.log_format not in ("auto", *readers.BY_COLUMNS):
            raise BadInput(f"--columns goes with {' and '.join(readers.BY_COLUMNS)}, not with {self.log_format}.")


@dataclass(frozen=True)
class Part:
    """What one block of a log came to."""

    block: Block
    visits: pa.Table  # `day` and the columns of VISITS, sorted by day, short code and time
    lines: int
    mended: int
    without_user_agent: int
    rejects: list[tuple[int, str]]  # line number and reason


class BlockReader:
    """Reads blocks, one at a time. Several readers may share a classifier and run side by side."""

    def __init__(
        self, classifier: Classifier, salts: Salts, verifier: Verifier, countries: Countries | None = None
    ) -> None:
        self._classifier = classifier
        self._salts = salts
        self._verifier = verifier
        self._countries = countries
        self._engine = duckdb.connect()
        self._engine.execute("SET TimeZone = 'UTC'")
        self._engine.execute("SET temp_directory = ''")  # what is read holds addresses: nothing of it may spill to disk
        self._engine.execute(readers.text_of("macros"))

    def close(self) -> None:
        """Close the engine."""
        self._engine.close()

    def settle(self, block: Block, log_format: str, options: Options) -> str:
        """The format to read a log in, seen from this block if it is auto.

        Raises BadInput when none explains the block, or when it lacks a column that the format needs.
        """
        lines, guide = readers.beginning_of(block.text, block.first_line), _guide(block, options)
        if log_format == "auto":
            log_format = options.flagged(readers.detect(self._engine, lines, guide))
        readers.check(lines, log_format, guide)
        return log_format

    def read(self, block: Block, log_format: str, options: Options) -> Part:
        """The visits of a block's lines in a format, and which lines are none.

        While the format is auto there were no lines yet, directives at most.
        """
        log_format = "w3c" if log_format == "auto" else log_format
        lines = readers.lines_of(block.text, block.first_line)
        readers.read(self._engine, lines, log_format, _guide(block, options))
        found, mended, nameless = self._engine.execute(
            "SELECT count(*), count(*) FILTER (is_mended AND reason IS NULL), "
            "count(*) FILTER (user_agent = '' AND reason IS NULL) FROM requests"
        ).fetchall()[0]
        rejects = self._engine.execute(
            "SELECT number, reason FROM requests WHERE reason IS NOT NULL ORDER BY number"
        ).fetchall()
        return Part(block, self._visits(options), found, mended, nameless, rejects)

    def _visits(self, options: Options) -> pa.Table:
        self._engine.execute(step("facts"))
        self._engine.execute(step("asked"))
        asked = self._engine.execute("SELECT * FROM asked").fetchall()
        answers = self._answers(asked)
        for name, table in self._tables(answers).items():
            self._engine.register(name, table)
        return self._engine.sql(
            step("visits"),
            params={
                "organization": options.organization,
                "domain": options.domain or None,
                "short_code_pattern": options.short_code_pattern,
                "probe_pattern": self._classifier.probe_pattern,
                "rules_version": self._classifier.rules_version,
            },
        ).to_arrow_table()

    def _answers(self, asked: list[tuple[Any, ...]]) -> Answers:
        """What the classifier says of every distinct (user agent, method, referrer, query)."""
        answers = Answers()
        with _CLASSIFYING:
            for number, *strings in asked:
                request = Request.logged(*strings)
                says, origin = self._classifier.classify(request), self._classifier.origin(request)
                answers.add(number, says, request.user_agent, origin)
        return answers

    def _tables(self, answers: Answers) -> dict[str, pa.Table]:
        """Every table that the step from facts to visits joins."""
        self._engine.register("answers", answers.tables()["answers"])
        confirmed = table_of(("identity", "ip", "day", "confirmed"), self._confirmations(answers))
        countries = table_of(("ip", "country"), self._countries_of_addresses())
        return {**answers.tables(), "confirmations": confirmed, "countries": countries, "salts": self._salt_table()}

    def _confirmations(self, answers: Answers) -> list[tuple[int, str, date, int]]:
        """Where an address tells of an agent's claim: the identity, the address, the day, and the identity then."""
        told = answers.identities()
        claims = {number: (says, agent) for number, says, agent in told if self._verifier.can_tell(says)}
        if not claims:
            return []
        seen = self._engine.execute(step("claims"), {"claims": list(claims)}).fetchall()
        confirmed = self._verifier.confirmed
        return [
            (number, ip, day, answers.identity(confirmed(claims[number][0], ip, day), claims[number][1]))
            for number, ip, day in seen
        ]

    def _countries_of_addresses(self) -> list[tuple[str, str | None]]:
        if self._countries is None:
            return []
        addresses = self._engine.execute("SELECT DISTINCT ip FROM facts WHERE country = ''").fetchall()
        return [(ip, self._countries.of(ip)) for (ip,) in addresses]

    def _salt_table(self) -> pa.Table:
        days = self._engine.execute("SELECT DISTINCT CAST(visited_at AS DATE) FROM facts").fetchall()
        return table_of(("day", "salt"), list(self._salts([day for (day,) in days]).items()))


def _guide(block: Block, options: Options) -> readers.Guide:
    return readers.Guide(block.header, block.fields, options.columns, options.notation)
