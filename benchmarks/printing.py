"""Formats the table of all figures, in Markdown."""

import io
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from rich.box import MARKDOWN
from rich.console import Console
from rich.table import Table

from benchmarks.bars import bar_of
from benchmarks.figures import Figure

_COLUMNS = ("case", "visits", "who", "unit", "median", "min", "max", "ours / theirs", "bar", "")
_HEAD: Final = "# All figures\n\nEach run with `--table` replaces the section of its cases.\n\n"
_NUMBERS = ("visits", "median", "min", "max", "ours / theirs")


def table_of(figures: Iterable[Figure]) -> Table:
    """Return a table of the figures, sorted by the number of visits."""
    table = Table(box=MARKDOWN)
    for column in _COLUMNS:
        table.add_column(column, justify="right" if column in _NUMBERS else "left", no_wrap=True)
    for figure in sorted(figures, key=lambda figure: figure.visits):
        table.add_row(*row_of(figure))
    return table


def document_of(told: Mapping[str, Any], figures: Iterable[Figure], document: str = "") -> str:
    """Return the document with the table in a section for its cases. It replaces an earlier section for the same cases;
    other sections are kept.

    `told` contains the cases and the conditions of the measurement, which precede the table: `at`, `machine`,
    `versions`, `runs`, `organizations`, and in `visits` the digest for each number of visits.
    """
    machine, versions = told["machine"], [f"{name} {known}" for name, known in told["versions"].items() if known]
    measured_on = [
        f"{told['at'][:16].replace('T', ' ')} UTC",
        f"{machine['cores']} cores, {machine['machine']}, Python {machine['python']}",
        ", ".join(versions),
        f"runs: {told['runs']}, organizations: {told['organizations']}",
    ]
    visits = ", ".join(f"{number:,} visits of digest {digest}" for number, digest in told["visits"].items())
    text = io.StringIO()
    Console(file=text, width=500).print(table_of(figures))
    rows = "".join(f"{line.strip()}\n" for line in text.getvalue().splitlines() if line.strip())
    section = f"## {told['cases']}\n\n{' · '.join(measured_on)}\n\n{visits}\n\n{rows}"
    head, *others = re.split(r"^(?=## )", document or _HEAD, flags=re.MULTILINE)
    kept = {re.match("## (.*)", other)[1]: other for other in others}  # type: ignore[index]
    return head + "\n".join(part.rstrip("\n") + "\n" for part in (kept | {told["cases"]: section}).values())


def row_of(figure: Figure) -> tuple[str, ...]:
    """Return a row of the table: the figure, and whether it meets its bar."""
    bar = bar_of(figure)
    verdict = "" if bar is None else "kept" if bar.holds(figure) else "missed"
    ratio = "" if figure.ratio is None else f"{figure.ratio:.3g}"
    numbers = (_number(value) for value in (figure.median, figure.least, figure.most))
    visits = f"{figure.visits:,}" if figure.visits else ""
    return (figure.case, visits, figure.who, figure.unit, *numbers, ratio, str(bar or ""), verdict)


def _number(value: float) -> str:
    return f"{value:,.2f}" if value < 10 else f"{value:,.0f}"
