"""From a block of log lines to classified visits: parsed and joined in DuckDB, classified once per distinct request.

Where lines come from and where visits go is not here. Client addresses live in this module only, in memory.
"""

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cache
from importlib import resources
from typing import Any

import duckdb
import pyarrow as pa
import re2

from data import readers
from data.classify import UTM_FIELDS, Classifier, Origin, Request, readable_user_agent
from data.errors import BadInput
from data.source import Block
from data.visits import SHORT_CODE_PATTERN, Classification, check_organization

Salts = Callable[[list[date]], dict[date, str]]
"""Gives the salt of each day."""

_CLASSIFYING = threading.Lock()
"""Two threads that classify at once hand the interpreter lock to and fro: every pattern then waits for it."""

_NUMBERS = ("request", "identity", "origin")
_IDENTITIES = ("identity", *Classification._fields, "user_agent")
_ORIGINS = ("origin", "referrer", "referrer_type", *UTM_FIELDS)


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

    def __init__(self, classifier: Classifier, salts: Salts) -> None:
        self._classifier = classifier
        self._salts = salts
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
        self._engine.execute(_step("facts"))
        self._engine.execute(_step("asked"))
        asked = self._engine.execute("SELECT * FROM asked").fetchall()
        days = self._engine.execute("SELECT DISTINCT CAST(visited_at AS DATE) FROM facts").fetchall()
        salts = self._salts([day for (day,) in days])
        salt_table = pa.table({"day": pa.array(salts, pa.date32()), "salt": pa.array(salts.values(), pa.string())})
        for name, table in {"salts": salt_table, **self._answers(asked)}.items():
            self._engine.register(name, table)
        return self._engine.sql(
            _step("visits"),
            params={
                "organization": options.organization,
                "domain": options.domain or None,
                "short_code_pattern": options.short_code_pattern,
                "probe_pattern": self._classifier.probe_pattern,
                "rules_version": self._classifier.rules_version,
            },
        ).to_arrow_table()

    def _answers(self, asked: list[tuple[Any, ...]]) -> dict[str, pa.Table]:
        """What the classifier says of every distinct (user agent, method, referrer, query), equal answers once."""
        identities: dict[tuple[Classification, str], int] = {}
        origins: dict[Origin, int] = {}
        answers = []
        with _CLASSIFYING:
            for number, *strings in asked:
                request = Request(*strings)
                identity = self._classifier.classify(request), readable_user_agent(request.user_agent)
                origin = self._classifier.origin(request)
                answers.append(
                    (number, identities.setdefault(identity, len(identities)), origins.setdefault(origin, len(origins)))
                )
        return {
            "answers": _table(("request", "identity", "origin"), answers),
            "identities": _table(_IDENTITIES, [(n, *who, agent or None) for (who, agent), n in identities.items()]),
            "origins": _table(_ORIGINS, [(n, host, kind, *utm) for (host, kind, utm), n in origins.items()]),
        }


@cache
def _step(name: str) -> str:
    """The SQL text of one step from requests to visits."""
    return resources.files("data").joinpath("steps", f"{name}.sql").read_text("utf-8")


def _table(names: Sequence[str], rows: Sequence[tuple[Any, ...]]) -> pa.Table:
    """Rows of numbers and texts as a table; what no answer says is null."""
    columns = list(zip(*rows, strict=True)) or [()] * len(names)
    kinds = [pa.int64() if name in _NUMBERS else pa.string() for name in names]
    return pa.table([pa.array(column, kind) for column, kind in zip(columns, kinds, strict=True)], list(names))
