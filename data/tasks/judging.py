"""Judges past days: what the visits of each say about each other, as tables in an engine that then merges its files.

Each fact is about a daily visitor or a user agent, so that ranges of a day can be merged one after the other.
"""

from collections.abc import Sequence
from datetime import date
from functools import cache
from typing import Final

import duckdb
import pyarrow as pa

from data.rules.engines import BrowserEngines
from data.rules.files import FILE_PATTERN
from data.rules.releases import BrowserReleases
from data.signals import BITS
from data.sql import read_sql
from data.store.engines import until_memory_suffices

_AGENTS_AT_ONCE: Final = 10_000
_AGES: Final = ("old_since", "stale_since", "outdated_since")
_OLD: Final = pa.schema([("agent", pa.uint64()), *((name, pa.date32()) for name in _AGES)])
_FETCHING: Final = pa.schema([("agent", pa.uint64())])
_releases: Final = cache(BrowserReleases)
"""The rules, which are loaded when the first day is judged."""
_engines: Final = cache(BrowserEngines)
_PARTS: Final = (1, 16, 256)
"""In how many parts user agents are looked at: the next number is tried when memory was not enough."""


def judge(
    engine: duckdb.DuckDBPyConnection, files: Sequence[str], days: Sequence[date | None], own_codes: Sequence[str]
) -> None:
    """Make the tables that judged_visits.sql reads, from all files of some days; `days` has that of each file.

    `own_codes` are the codes of the organization's links.
    """
    engine.register("link_codes", pa.table({"short_code": pa.array(own_codes, pa.string())}))
    read = {"files": files, "days": days}
    patterns = {**read, "file_pattern": FILE_PATTERN}
    engine.execute(read_sql("data.tasks", "sql/suspects"), {**read, "bits": BITS})
    engine.execute(read_sql("data.tasks", "sql/judged_visitors"), {**patterns, "bits": BITS})
    engine.execute(read_sql("data.tasks", "sql/unfollowed_pages"), {**read, "bits": BITS})
    engine.execute(read_sql("data.tasks", "sql/judged_agents"), patterns)
    engine.execute(read_sql("data.tasks", "sql/loading_agents"))
    last = max(day for day in days if day)
    until_memory_suffices(lambda parts: _register_browsers(engine, files, last, parts), _PARTS)
    engine.execute(read_sql("data.tasks", "sql/stale_visitors"), patterns)
    engine.execute(read_sql("data.tasks", "sql/headerless_visitors"), {**read, "bits": BITS})
    engine.execute(read_sql("data.tasks", "sql/hosting_visitors"), {**patterns, "bits": BITS})
    engine.execute(read_sql("data.tasks", "sql/site_visitors"), {"bits": BITS})


def _register_browsers(engine: duckdb.DuckDBPyConnection, files: Sequence[str], last: date, parts: int) -> None:
    """Register people's user agents, by their hash: the old ones, and those that send all headers.

    The old ones are old up to a day, each with the days since which it is old, stale and outdated.
    """
    releases, engines, rows, fetching = _releases(), _engines(), [], []
    for part in range(parts):
        of_part = {"files": files, "parts": parts, "part": part}
        agents = engine.sql(read_sql("data.tasks", "sql/people_agents"), params=of_part)
        for batch in agents.to_arrow_reader(_AGENTS_AT_ONCE):
            for agent, user_agent in zip(batch["agent"].to_pylist(), batch["user_agent"].to_pylist(), strict=True):
                if engines.sends_headers(user_agent):
                    fetching.append({"agent": agent})
                since = [getattr(releases, name)(user_agent) for name in _AGES]
                if since[0] and min(since) <= last:
                    rows.append({"agent": agent, **dict(zip(_AGES, since, strict=True))})
    engine.register("old_agents", pa.Table.from_pylist(rows, schema=_OLD))
    engine.register("fetching_agents", pa.Table.from_pylist(fetching, schema=_FETCHING))
