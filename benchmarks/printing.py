"""The one table of all figures, which is Markdown too."""

from collections.abc import Iterable

from rich.box import MARKDOWN
from rich.table import Table

from benchmarks.bars import bar_of
from benchmarks.figures import Figure

_COLUMNS = ("case", "visits", "who", "unit", "median", "min", "max", "ours / theirs", "bar", "")
_NUMBERS = ("visits", "median", "min", "max", "ours / theirs")


def table_of(figures: Iterable[Figure]) -> Table:
    """The table, by the number of visits."""
    table = Table(box=MARKDOWN)
    for column in _COLUMNS:
        table.add_column(column, justify="right" if column in _NUMBERS else "left", no_wrap=True)
    for found in sorted(figures, key=lambda found: found.visits):
        table.add_row(*row_of(found))
    return table


def row_of(found: Figure) -> tuple[str, ...]:
    """One line: the figure, and whether it keeps within its bar."""
    bar = bar_of(found)
    verdict = "" if bar is None else "kept" if bar.holds(found) else "missed"
    ratio = "" if found.ratio is None else f"{found.ratio:.3g}"
    numbers = (_number(value) for value in (found.median, found.least, found.most))
    visits = f"{found.visits:,}" if found.visits else ""
    return (found.case, visits, found.who, found.unit, *numbers, ratio, str(bar or ""), verdict)


def _number(value: float) -> str:
    return f"{value:,.2f}" if value < 10 else f"{value:,.0f}"
