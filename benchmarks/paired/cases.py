"""The cases to compare with another revision, and the table of their results."""

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from rich.box import MARKDOWN
from rich.console import Console
from rich.table import Table

from benchmarks.made.logs import write_log
from benchmarks.paired import programs, served
from benchmarks.paired.ratios import Comparison
from benchmarks.paired.trial import Side, Trial
from benchmarks.servers import TRAFFIC
from tests.support.worktrees import worktree

CASES: Final[dict[str, Callable[[Trial], Iterator[Comparison]]]] = {
    "import": programs.importing,
    "judging": programs.judging,
    "cold": served.cold,
    "filtered": served.filtered,
    "serve": served.serving,
    "fairness": served.fairness,
    "sustained": served.sustained,
    "operations": programs.operations,
}


def compare(revision: str, only: list[str], visits: int, pairs: int, kept: Path) -> list[Comparison]:
    """Measure cases in this tree and in another revision, in pairs, and print each result as it is measured."""
    progress = Console(stderr=True)
    log = write_log(kept / f"combined-{visits}.log", visits)
    with tempfile.TemporaryDirectory(prefix="traffic-paired-") as folder, progress.status("") as status:
        scratch = Path(folder)
        status.update(f"Making the environment of {revision} …")
        with worktree(revision, scratch) as tree:
            ours = Side("ours", TRAFFIC, scratch / "ours")
            theirs = Side("theirs", tree / ".venv" / "bin" / TRAFFIC.name, scratch / "theirs")
            for side in (ours, theirs):
                side.home.mkdir()
            trial = Trial(ours, theirs, log, scratch, pairs, lambda text: status.update(f"{text} …"))
            comparisons = []
            for case in only:
                for one in CASES[case](trial):
                    progress.print(" · ".join(_row(one)), soft_wrap=True)
                    comparisons.append(one)
    return comparisons


def table_of(comparisons: list[Comparison]) -> Table:
    """Return the table, in the order of the measurements."""
    table = Table(box=MARKDOWN)
    for column in ("measure", "unit", "pairs", "theirs", "ours", "ours / theirs", "interval", "verdict"):
        is_number = column in {"pairs", "theirs", "ours", "ours / theirs"}
        table.add_column(column, justify="right" if is_number else "left", no_wrap=True)
    for one in comparisons:
        table.add_row(*_row(one))
    return table


def _row(one: Comparison) -> tuple[str, ...]:
    interval = f"{one.low:.3f} to {one.high:.3f}"
    medians = (f"{value:,.0f}" if value >= 100 else f"{value:.3g}" for value in (one.theirs, one.ours))
    return (one.measure, one.unit, str(one.pairs), *medians, f"{one.ratio:.3f}", interval, one.verdict)
