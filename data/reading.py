"""From a block of log lines to classified visits: parsed and joined in DuckDB, classified once per distinct request.

Where lines come from and where visits go is not here. Client addresses live in this module only, in memory.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from typing import Any

import duckdb
import pyarrow as pa
import re2

from data import readers
from data.answering import Answers, table_of
from data.classify import Classifier, Request
from data.countries import Countries
from data.errors import BadInput
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

    def __post_init__(self) -> None:
        check_organization(self.organization)
        if self.log_format not in ("auto", *readers.FORMATS):
            raise BadInput(f"{self.log_format!r} is no log format; known are auto, {', '.join(readers.FORMATS)}.")
        try:
            groups = re2.compile(self.short_code_pattern).groups
        except re2.error as error:
            raise BadInput(f"{self.short_code_pattern!r} is no pattern (RE2 syntax): {error}.") from error
        if groups != 1:
            raise BadInput(f"{self.short_code_pattern!r} must capture the short code in exactly one (group).")


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

    def detect(self, block: Block) -> str:
        """The log format of a block. Raises BadInput when none explains it."""
        return readers.detect(self._engine, readers.lines_of(block.text, block.first_line))

    def read(self, block: Block, log_format: str, options: Options) -> Part:
        """The visits of a block's lines in a format, and which lines are none."""
        lines = readers.lines_of(block.text, block.first_line)
        readers.read(self._engine, lines, log_format)
        mended, nameless = self._engine.execute(
            "SELECT count(*) FILTER (is_mended), count(*) FILTER (user_agent = '') FROM requests WHERE reason IS NULL"
        ).fetchall()[0]
        rejects = self._engine.execute(
            "SELECT number, reason FROM requests WHERE reason IS NOT NULL ORDER BY number"
        ).fetchall()
        return Part(block, self._visits(options), len(lines), mended, nameless, rejects)

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
