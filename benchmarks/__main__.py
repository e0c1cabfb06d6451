"""Measures the project on this machine and prints one table: `uv run python -m benchmarks --help`."""

import json
import platform
import shutil
import sys
import tempfile
from collections.abc import Callable
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import duckdb
import typer
from rich.console import Console
from rich.table import Table

from benchmarks import cases, live
from benchmarks.cases import Figure
from data import Lake
from data.importing import Importer, Options

KEPT = Path(__file__).parent / "data"
CASES = ("import", "cold", "serve", "intake", "manifest")


def main(
    visits: Annotated[int, typer.Option(help="how many visits of 90 days to measure over")] = 1_000_000,
    only: Annotated[str, typer.Option(help=f"cases to run, separated by commas: {', '.join(CASES)}")] = ",".join(CASES),
    output: Annotated[Path | None, typer.Option(help="write the figures as JSON to this file too")] = None,
) -> None:
    """Measure, print a table and, if asked, write JSON. The sample is kept in benchmarks/data.

    Example: uv run python -m benchmarks --visits 1000000 --only import,cold
    """
    console = Console(stderr=True)
    with console.status(f"Making up {visits:,} visits …"):
        log = cases.make_log(KEPT, visits)
    with tempfile.TemporaryDirectory(prefix="traffic-benchmark-") as scratch:
        figures = _measure(log, visits, only.split(","), Path(scratch), console)
    _print(figures, visits)
    if output:
        machine = {"python": platform.python_version(), "duckdb": duckdb.__version__, "machine": platform.machine()}
        found = {
            "at": datetime.now(UTC).isoformat(),
            "visits": visits,
            **machine,
            "figures": [asdict(f) for f in figures],
        }
        output.write_text(json.dumps(found, indent=2), "utf-8")


def _measure(log: Path, visits: int, only: list[str], scratch: Path, console: Console) -> list[Figure]:
    lake = scratch / "lake"

    def fresh() -> Path:
        shutil.rmtree(lake, ignore_errors=True)
        return lake

    figures: list[Figure] = []
    steps: dict[str, Callable[[], list[Figure]]] = {
        "import": lambda: cases.importing(log, fresh, visits),
        "cold": lambda: cases.cold(lake),
        "serve": lambda: cases.serving(lake, scratch),
        "intake": lambda: live.intake(log, scratch),
        "manifest": lambda: live.manifest(log, scratch),
    }
    if "import" not in only and {"cold", "serve"} & set(only):
        Importer(Lake(lake, create=True)).run(log, Options(cases.ORGANIZATION))
    for name in only:
        if name not in steps:
            sys.exit(f"there is no case {name!r}; known are {', '.join(CASES)}.")
        with console.status(f"Measuring: {name} …"):
            figures += steps[name]()
    return figures


def _print(figures: list[Figure], visits: int) -> None:
    table = Table(title=f"{visits:,} visits, 90 days, one organization", title_justify="left", box=None)
    for column in ("case", "unit"):
        table.add_column(column)
    for column in ("median", "min", "max", "ratio"):
        table.add_column(column, justify="right")
    table.add_column("ratio to")
    for f in figures:
        numbers = [f"{value:,.2f}" if value < 10 else f"{value:,.0f}" for value in (f.median, f.least, f.most)]
        table.add_row(f.case, f.unit, *numbers, "" if f.ratio is None else f"{f.ratio:.2f}", f.peer)
    Console(width=140).print(table)


if __name__ == "__main__":
    typer.run(main)
