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
    for figure in sorted(figures, key=lambda figure: figure.visits):
        table.add_row(*row_of(figure))
    return table


def row_of(figure: Figure) -> tuple[str, ...]:
    """One line: the figure, and whether it keeps within its bar."""
    bar = bar_of(figure)
    verdict = "" if bar is None else "kept" if bar.holds(figure) else "missed"
    ratio = "" if figure.ratio is None else f"{figure.ratio:.3g}"
    numbers = (_number(value) for value in (figure.median, figure.least, figure.most))
    visits = f"{figure.visits:,}" if figure.visits else ""
    return (figure.case, visits, figure.who, figure.unit, *numbers, ratio, str(bar or ""), verdict)


def _number(value: float) -> str:
    return f"{value:,.2f}" if value < 10 else f"{value:,.0f}"
