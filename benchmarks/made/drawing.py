"""Draws the visits of a sample several days at a time, to limit memory."""

import hashlib
from collections.abc import Iterator
from dataclasses import replace
from importlib import resources
from typing import Any, Final

import duckdb
import pyarrow as pa

from benchmarks.made.draws import PAGES, Draws, tables_of
from data import SHORT_CODE_PATTERN
from service.demo.sample import Sample

AT_ONCE: Final = 400_000
"""Maximum number of visits drawn at once; a single day with more visits is drawn whole."""

BROWSERS: Final = 50_000
"""Number of user agents drawn for people, some of them more than once."""

Days = list[dict[str, Any]]


class Drawing:
    """The visits of one organization, determined by the sample and the organization's name."""

    def __init__(self, sample: Sample, organization: str, browsers: int = BROWSERS, skew: int = 3) -> None:
        """Prepare to draw. With a `skew` of 1, all browsers are equally frequent; higher values favour some of them."""
        self._draws = Draws(sample, browsers)
        self._tables = tables_of(replace(sample, visits=0), browsers)
        self._is_ready = False
        self._organization = {"organization": organization}
        self._chances = {
            "seed": sample.seed,
            "newcomers": sample.visits // sample.days // 8,
            "browsers": browsers,
            "pages": PAGES,
            "skew": skew,
        }
        self._engine = duckdb.connect()
        self._engine.execute("SET TimeZone = 'UTC'")
        self._engine.execute("SET memory_limit = '4GB'")
        self._engine.execute("SET enable_progress_bar = FALSE")
        self._engine.execute("SET temp_directory = ''")  # all must fit in memory
        self._engine.execute("SET disabled_optimizers = 'join_order'")  # joins run as written, even for few visits

    def parts(self) -> Iterator[Days]:
        """Yield groups of consecutive days; each group is drawn at once."""
        together: Days = []
        for day in self._draws.days():
            if together and sum(one["visits"] for one in (*together, day)) > AT_ONCE:
                yield together
                together = []
            together.append(day)
        yield together

    def visits(self, days: Days) -> pa.Table:
        """Return the visits of these days as a table of `day` and the columns of VISITS, in landing order."""
        self._draw(days)
        rules = {**self._draws.rules, "short_code_pattern": SHORT_CODE_PATTERN}
        visits = self._engine.sql(_text("visits"), params={**self._organization, **rules}).to_arrow_table()
        return self._draws.with_paths_classified(visits)

    def lines(self, days: Days) -> list[str]:
        """Return the visits of these days as lines of a log in the combined format."""
        self._draw(days)
        lines: list[str] = self._engine.sql(_text("lines")).to_arrow_table()["line"].to_pylist()
        return lines

    def close(self) -> None:
        """Close the engine."""
        self._engine.close()

    def _draw(self, days: Days) -> None:
        if not self._is_ready:
            for table, rows in self._tables.items():
                self._engine.register(table, rows)
            self._is_ready = True
        words = (self._chances["seed"], *self._organization.values())
        salts = [hashlib.sha256(f"{words[0]} {words[1]} {day['day']}".encode()).hexdigest() for day in days]
        self._engine.register("days", pa.Table.from_pylist(days).append_column("salt", pa.array(salts)))
        self._engine.execute(_text("drawn"), {**self._organization, **self._chances})


def _text(name: str) -> str:
    return resources.files("benchmarks.made").joinpath(f"{name}.sql").read_text("utf-8")
