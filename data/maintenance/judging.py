"""Judges a past day: what its visits say about each other, as tables in an engine that its files are then merged with.

Each fact is about a daily visitor or a user agent, so that ranges of a day can be merged one after the other.
"""

from collections.abc import Sequence
from datetime import date
from typing import Final

import duckdb
import pyarrow as pa

from data.maintenance.rewriting import until_memory_suffices
from data.rules.paths import ASSET_PATTERN
from data.rules.releases import BrowserReleases
from data.sql import read_sql

_AGENTS_AT_ONCE: Final = 10_000


_PARTS: Final = (1, 16, 256)
"""In how many parts user agents are looked at: the next number is tried when memory was not enough."""


class DayJudge:
    """Finds the signals of days. The rules are loaded when the first day is judged."""

    def __init__(self) -> None:
        self._releases: BrowserReleases | None = None

    def judge(self, engine: duckdb.DuckDBPyConnection, files: list[str], day: date, own_codes: Sequence[str]) -> None:
        """Make the tables that judged_visits.sql reads, from all files of a day; `own_codes` are the links' codes."""
        engine.register("link_codes", pa.table({"short_code": pa.array(own_codes, pa.string())}))
        patterns = {"files": files, "asset_pattern": ASSET_PATTERN}
        engine.execute(read_sql("data.maintenance", "sql/suspects"), {"files": files})
        engine.execute(read_sql("data.maintenance", "sql/judged_visitors"), patterns)
        engine.execute(read_sql("data.maintenance", "sql/judged_agents"), patterns)
        until_memory_suffices(lambda parts: self._find_old(engine, files, day, parts), _PARTS)
        engine.execute(read_sql("data.maintenance", "sql/stale_visitors"), patterns)

    def _find_old(self, engine: duckdb.DuckDBPyConnection, files: list[str], day: date, parts: int) -> None:
        """Register the user agents, by their hash, that are outdated, and those that are stale."""
        self._releases = releases = self._releases or BrowserReleases()
        old: dict[str, list[int]] = {"outdated_agents": [], "stale_agents": []}
        for part in range(parts):
            of_part = {"files": files, "parts": parts, "part": part}
            agents = engine.sql(read_sql("data.maintenance", "sql/people_agents"), params=of_part)
            for batch in agents.to_arrow_reader(_AGENTS_AT_ONCE):
                for agent, user_agent in zip(batch["agent"].to_pylist(), batch["user_agent"].to_pylist(), strict=True):
                    stale, outdated = releases.stale_since(user_agent), releases.outdated_since(user_agent)
                    if stale and stale <= day:
                        old["stale_agents"].append(agent)
                    if outdated and outdated <= day:
                        old["outdated_agents"].append(agent)
        for table, hashes in old.items():
            engine.register(table, pa.table({"agent": pa.array(hashes, pa.uint64())}))
