"""Explains why a log cannot be read, and proposes a flag after testing it on the log's first lines."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

import duckdb
import pyarrow as pa
import re2

from data.errors import BadInput
from data.logs.column_guess import ColumnGuess, guess_columns
from data.logs.columns import cells_in, columns_from, columns_in_header, rows_in_objects
from data.logs.format_names import NAMED_COLUMN_FORMATS
from data.logs.formats import (
    FormatContext,
    LineReader,
    UnknownFormat,
    first_lines,
    has_text,
)
from data.logs.layout_guess import proposed_layouts, split_fields, texts_between
from data.logs.line_layout import parse_layout
from data.logs.mixed_lines import read_mixed
from data.logs.nearest_format import Difference, nearest_format
from data.logs.source import Block, Preamble, Source, beginning

MAX_UNREAD: Final = 3
"""Maximum number of kinds of unread lines that are explained."""

_TOLD: Final = ("number", "reason")
_SAMPLE_BYTES: Final = 1 << 20
_MIN_COLUMNS: Final = 3
"""Minimum number of cells in the header of a CSV file."""


class UnreadLine(NamedTuple):
    """The first unread line of a kind."""

    number: int
    line: str
    nearest: Difference
    reason: str  # why the nearest format cannot read it; '' if it can, or if no format is near


class Proposal(NamedTuple):
    """A flag that makes the lines readable."""

    flag: str
    value: str
    lines: int
    read: int
    found: dict[str, str]  # variable or field → its value in the first line that is read


@dataclass(frozen=True)
class Explanation:
    """Findings about the first lines of a log."""

    lines: int
    log_format: str  # '' when none is recognized
    read: int
    unread: list[UnreadLine]
    proposal: Proposal | None
    guess: ColumnGuess  # for JSON and CSV; empty for other lines


def explain(path: Source) -> Explanation:
    """Explain the first lines of a log. Raises BadInput if the log cannot be read or has no lines."""
    text = beginning(path, _SAMPLE_BYTES)
    whole = text if len(text) < _SAMPLE_BYTES else text[: text.rfind(b"\n") + 1] or text
    if not has_text(whole):
        raise BadInput(f"{path} has no lines.")
    sample = first_lines(whole, 1)
    block = Preamble().annotate(Block(1, whole, len(whole), finished=True))
    context = FormatContext(block.header)
    with duckdb.connect() as engine:
        engine.execute("SET TimeZone = 'UTC'")
        return _Explainer(LineReader(engine), sample, context).explanation()


class _Explainer:
    """Reads the first lines of one log in several ways."""

    def __init__(self, reader: LineReader, sample: pa.Table, context: FormatContext) -> None:
        self._reader, self._sample, self._context = reader, sample, context
        self._lines: list[str] = sample["line"].to_pylist()
        self._texts = [line for line in self._lines if not line.startswith("#")]
        self._is_json = 2 * sum(line.lstrip().startswith("{") for line in self._texts) > len(self._texts)

    def explanation(self) -> Explanation:
        """Return all findings about the lines."""
        try:
            log_format = self._reader.detect(self._sample, self._context)
        except UnknownFormat:
            log_format = ""
        reasons = self._reasons(log_format, self._context, may_be_mixed=True) if log_format else {}
        read = sum(reason is None for reason in reasons.values())
        guess, proposal = guess_columns(self._rows()), None
        if not log_format or log_format in NAMED_COLUMN_FORMATS:
            proposal = max(self._proposals(guess), key=lambda one: one.read, default=None)
        return Explanation(
            len(reasons) or len(self._texts), log_format, read, [*self._unread(reasons)], proposal, guess
        )

    def _reasons(self, log_format: str, context: FormatContext, may_be_mixed: bool = False) -> dict[int, str | None]:
        """Return the reason why each line cannot be read, by line number; None if it can be read."""
        if may_be_mixed:
            found = [*read_mixed(self._reader, self._sample, log_format, context).values()]
        else:
            found = [self._reader.read_all(self._sample, log_format, context)]
        numbers, reasons = ([value for part in found for value in part[name].to_pylist()] for name in _TOLD)
        return dict(zip(numbers, reasons, strict=True))

    def _unread(self, reasons: dict[int, str | None]) -> Iterator[UnreadLine]:
        """Yield the first line of each kind of unread line, up to MAX_UNREAD kinds."""
        kinds = set[tuple[str, ...]]()
        for number, line in zip(self._sample["number"].to_pylist(), self._lines, strict=True):
            kind = texts_between(line, split_fields(line))
            is_read = line.startswith("#") or (reasons and reasons.get(number) is None)  # read, or left out on purpose
            if is_read or kind in kinds or len(kinds) == MAX_UNREAD:
                continue
            kinds.add(kind)
            nearest = nearest_format(line)
            reason = self._reasons(nearest.log_format, self._context).get(number) if nearest.log_format else ""
            yield UnreadLine(number, line, nearest if reason else nearest._replace(at=None), reason or "")

    def _rows(self) -> Iterator[dict[str, Any]]:
        """Yield the rows of JSON or CSV, each a dict of values by column name; nothing for other lines."""
        if self._is_json:
            wraps = guess_columns(rows_in_objects(self._lines)).missing
            inner = self._reader.unwrap(self._sample)["line"].to_pylist() if wraps else []
            return rows_in_objects(inner or self._lines)
        names = columns_in_header(self._context.header)
        rows = self._texts[1:] if len(names) >= _MIN_COLUMNS else []
        return (dict(zip(names, cells_in(line), strict=False)) for line in rows)

    def _proposals(self, guess: ColumnGuess) -> Iterator[Proposal]:
        """Yield flags that make at least one of the lines readable."""
        if guess.pairs and not {"time", "url"} & {*guess.missing}:
            context = replace(self._context, columns=columns_from(guess.pairs))
            reasons = self._reasons("ndjson" if self._is_json else "csv", context)
            row = next(self._rows())
            found = {field: f"{column}  {row.get(column, '')}".rstrip() for field, column in guess.columns.items()}
            yield from _tried("--columns", guess.pairs, reasons, found)
        for value in [] if self._is_json else proposed_layouts(self._texts):
            try:
                layout = parse_layout(value)
            except BadInput:
                continue
            reasons = self._reasons(layout.server, replace(self._context, layout=layout))
            first = next((match for line in self._texts if (match := re2.fullmatch(layout.pattern, line))), None)
            found = dict(zip(layout.names, first.groups(), strict=True)) if first else {}
            yield from _tried("--log-format", value, reasons, found)


def _tried(flag: str, value: str, reasons: dict[int, str | None], found: dict[str, str]) -> Iterator[Proposal]:
    """Yield the flag as a proposal, unless it makes no line readable."""
    read = sum(reason is None for reason in reasons.values())
    if read:
        yield Proposal(flag, value, len(reasons), read, found)
