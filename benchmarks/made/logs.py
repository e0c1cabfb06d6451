"""Writes generated visits to log files in the combined format."""

from pathlib import Path
from typing import Final

from benchmarks.made import DAYS, LAST_DAY, ORGANIZATION
from benchmarks.made.drawing import Drawing
from service.demo.sample import Sample

_BROWSERS: Final = 94_000
"""Number of user agents drawn, so that a million lines have 50,000 different user agents."""


def write_log(path: Path, lines: int) -> Path:
    """Write a log of this many lines unless it exists, with all user agents in nearly equal shares; return its path."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        drawing = Drawing(Sample(lines, LAST_DAY, DAYS), ORGANIZATION, _BROWSERS, skew=1)
        part = path.with_suffix(".part")
        with part.open("w", encoding="ascii", newline="\n") as file:
            for days in drawing.parts():
                file.writelines(f"{line}\n" for line in drawing.lines(days))
        drawing.close()
        part.rename(path)
    return path
