"""Compares the project with its peers on this machine: `uv run --group bench python -m benchmarks --help`."""

import json
import os
import platform
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from threading import Event, Thread
from typing import Annotated, Any, Final

import typer
from rich.console import Console

from benchmarks import (
    cold,
    fairness,
    filtered,
    importing,
    judging,
    lists,
    live,
    operations,
    outcomes,
    pages,
    publishing,
    serving,
    sustained,
)
from benchmarks.bars import bar_of, missed
from benchmarks.figures import Figure, over_runs
from benchmarks.paired import cases as paired
from benchmarks.paired.ratios import LEAST_PAIRS, is_slower
from benchmarks.picture import picture
from benchmarks.printing import document_of, table_of
from benchmarks.worlds import Setting

KEPT: Final = Path(__file__).parent / "data"
CASES: Final[dict[str, Callable[[Setting], Iterator[Figure]]]] = {
    "import": importing.importing,
    "judging": judging.judging,
    "cold": cold.cold,
    "filtered": filtered.filtered,
    "serve": serving.serving,
    "fairness": fairness.fairness,
    "intake": live.intake,
    "pages": pages.pages,
    "lists": lists.lists,
    "growth": cold.growth,
    "sustained": sustained.sustained,
    "operations": operations.operations,
    "outcomes": outcomes.outcomes,
    "publish": publishing.publishing,
}

USUAL: Final = ("import", "cold", "filtered", "serve", "intake", "pages")
"""The cases of a run without --only and --with."""
TOLD_EVERY_SECONDS: Final = 60.0
"""Interval of progress lines during a measurement."""
VISITS: Final = 1_000_000
PAIRED_VISITS: Final = 100_000
_USUAL: Final = f"{','.join(USUAL)}; with --with: {','.join(paired.CASES)}"
_SIZES: Final = f"{VISITS}; with --with: {PAIRED_VISITS}"


def main(
    visits: Annotated[
        str, typer.Option(help="numbers of visits in 90 days, separated by commas", show_default=_SIZES)
    ] = "",
    organizations: Annotated[int, typer.Option(help="number of organizations sharing the visits; one is queried")] = 1,
    only: Annotated[str, typer.Option(help="cases to run, separated by commas", show_default=_USUAL)] = "",
    runs: Annotated[int, typer.Option(min=1, help="number of complete runs, one after another")] = 1,
    minutes: Annotated[float, typer.Option(help="how long visits are posted in the case sustained")] = 10,
    data: Annotated[Path, typer.Option(help="folder for lakes, logs and the peers' databases")] = KEPT,
    output: Annotated[Path | None, typer.Option(help="write the figures as JSON to this file too")] = None,
    table: Annotated[
        Path | None, typer.Option(help="write the table into this Markdown file too, as a section")
    ] = None,
    drawing: Annotated[Path | None, typer.Option("--picture", help="draw the ratios into this file, as SVG")] = None,
    revision: Annotated[
        str, typer.Option("--with", help="compare this tree with a revision, such as main~3 or v1.0.0, in pairs")
    ] = "",
    pairs: Annotated[int, typer.Option(min=LEAST_PAIRS, help="with --with: minimum number of pairs")] = LEAST_PAIRS,
) -> None:
    """Measure, print one table and write the requested files; exit with 1 if a bar is missed.

    With --with, compare this tree with a revision instead, and exit with 1 if this tree is slower in any case; of the
    other options, only --only, --visits, --pairs and --data apply.

    Example: uv run --group bench python -m benchmarks --visits 1000000,20000000 --only cold,serve

    Example: uv run python -m benchmarks --with main --only import,operations
    """
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # programs then start from compiled files, as if installed
    known = list(paired.CASES if revision else CASES)
    cases = only.split(",") if only else known if revision else [*USUAL]
    unknown = [name for name in cases if name not in known]
    if unknown:
        sys.exit(f"unknown case {unknown[0]!r}; use {', '.join(known)}.")
    if revision:
        sys.exit(_compare(revision, cases, int(visits or PAIRED_VISITS), pairs, data))
    sizes = sorted({int(size) for size in (visits or str(VISITS)).split(",")})
    measured = []
    for _ in range(runs):
        with tempfile.TemporaryDirectory(prefix="traffic-benchmark-") as scratch:
            setting = Setting(sizes, organizations, data, Path(scratch), minutes)
            measured += _measured(setting, cases)
    figures = over_runs(measured)
    Console(width=200).print(table_of(figures))
    if output or table:
        told = _told(setting, ",".join(cases), runs, figures)  # builds the worlds if no case needed them
        if output:
            output.write_text(json.dumps(told, indent=2), "utf-8")
        if table:
            table.write_text(document_of(told, figures, table.read_text("utf-8") if table.exists() else ""), "utf-8")
    if drawing:
        drawing.write_text(picture(figures), "utf-8")
    failed = missed(figures)
    for figure in failed:
        print(f"missed: {figure.case} at {figure.visits:,} visits, {figure.who}: {bar_of(figure)}", file=sys.stderr)
    sys.exit(1 if failed else 0)


def _compare(revision: str, cases: list[str], visits: int, pairs: int, data: Path) -> int:
    """Compare this tree with another revision, and return the exit code."""
    for name in [name for name in os.environ if name.startswith("TRAFFIC_") or name == "PYTHONPATH"]:
        del os.environ[name]  # settings differ by revision, and each tree has modules of its own
    comparisons = paired.compare(revision, cases, visits, pairs, data)
    Console(width=200).print(paired.table_of(comparisons))
    return int(is_slower(comparisons))


def _measured(setting: Setting, only: Sequence[str]) -> list[Figure]:
    figures = []
    console = Console(stderr=True, soft_wrap=True)
    for number, name in enumerate(only, 1):
        with _progress(console, f"{name}, case {number} of {len(only)}"):
            for figure in CASES[name](setting):
                console.print(f"{figure.case} of {figure.visits:,}, {figure.who}: {figure.median:,.2f} {figure.unit}")
                figures.append(figure)
    return figures


@contextmanager
def _progress(console: Console, subject: str) -> Iterator[None]:
    """Print the start of a case, the elapsed time every minute, and the end of the case."""
    begun, is_over = time.monotonic(), Event()

    def tell() -> None:
        while not is_over.wait(TOLD_EVERY_SECONDS):
            console.print(f"Measuring {subject}: {time.monotonic() - begun:.0f} s so far …")

    console.print(f"Measuring {subject} …")
    telling = Thread(target=tell)
    telling.start()
    try:
        yield
    finally:
        is_over.set()
        telling.join()
    console.print(f"Measured {subject}, in {time.monotonic() - begun:.0f} s.")


def _told(setting: Setting, only: str, runs: int, figures: list[Figure]) -> dict[str, Any]:
    """Return the figures, with the conditions under which they were measured."""
    return {
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": {"cores": os.cpu_count(), "machine": platform.machine(), "python": platform.python_version()},
        "versions": {name: _version(name) for name in ("duckdb", "pyarrow", "starlette", "uvicorn", "chdb-core")},
        "cases": only,
        "runs": runs,
        "organizations": setting.organizations,
        "visits": {world.visits: world.digest for world in setting.worlds},
        "figures": [{**asdict(figure), "bar": str(bar_of(figure) or "")} for figure in figures],
    }


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


if __name__ == "__main__":
    typer.run(main)
