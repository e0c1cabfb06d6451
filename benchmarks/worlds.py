"""The worlds to measure: lakes with a given number of generated visits, built once and kept."""

from contextlib import closing
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import cached_property
from pathlib import Path

from benchmarks.made import DAYS, LAST_DAY, ORGANIZATION
from benchmarks.made.lakes import build, digest
from benchmarks.made.logs import write_log
from benchmarks.peers import World
from data import Lake
from queries import OwnSql, Scope

WHOLE = Scope(ORGANIZATION, LAST_DAY - timedelta(days=DAYS - 1), LAST_DAY)
"""All days of the queried organization."""


@dataclass(frozen=True)
class Setting:
    """The options of a run: world sizes, number of organizations, data folder, temporary folder, and minutes."""

    sizes: list[int]
    organizations: int
    kept: Path
    scratch: Path
    minutes: float
    """How long the case `sustained` posts visits."""

    @cached_property
    def worlds(self) -> list[World]:
        """The worlds of all sizes, the smallest first."""
        return [self._world(visits) for visits in self.sizes]

    def log(self, lines: int) -> Path:
        """Return a log with this number of lines."""
        return write_log(self.kept / f"combined-{lines}.log", lines)

    def _world(self, visits: int) -> World:
        name = f"{visits}" if self.organizations == 1 else f"{visits}-{self.organizations}"
        lake = build(self.kept / f"lake-{name}", visits, self.organizations)
        return World(lake, name, visits, digest(lake))


def average_link(lake: Lake) -> Scope:
    """Return the scope of the link with the number of visits closest to the average."""
    with closing(OwnSql(lake, WHOLE.organization, seconds=600)) as own_sql:
        result = own_sql.sql(
            "SELECT short_code FROM visits_in_scope WHERE short_code IS NOT NULL GROUP BY short_code "
            "ORDER BY abs(count(*) - sum(count(*)) OVER () / count(*) OVER ()), short_code LIMIT 1",
            WHOLE,
        )
    return replace(WHOLE, short_code=result.rows[0][0])
