"""Judges past days: derives signals from all visits of a day, as tables in the engine that then merges the day's files.

Each signal describes a daily visitor or a user agent, so the ranges of a day can be merged one after another.
"""

from collections.abc import Sequence
from datetime import date
from functools import cache, reduce
from operator import or_
from typing import Final

import duckdb
import pyarrow as pa

from data.manifest.files import LandedFile
from data.rules.engines import BrowserEngines
from data.rules.files import FILE_PATTERN
from data.rules.releases import BrowserReleases
from data.signals import BITS, FACTS, HEADERS, NETWORKS
from data.sql import read_sql
from data.store.engines import until_memory_suffices

_AGENTS_AT_ONCE: Final = 10_000
_AGES: Final = ("old_since", "late_since", "stale_since", "outdated_since")
_OLD: Final = pa.schema(
    [("agent", pa.uint64()), *((name, pa.date32()) for name in _AGES), ("updates_itself", pa.bool_())]
)
_FETCHING: Final = pa.schema([("agent", pa.uint64())])
_releases: Final = cache(BrowserReleases)
"""Returns the rules on browser releases, loading them when the first day is judged."""
_engines: Final = cache(BrowserEngines)
_PARTS: Final = (1, 16, 256)
"""The numbers of parts in which user agents are examined: if memory runs out, the next number is tried."""


def judge(
    engine: duckdb.DuckDBPyConnection, paths: Sequence[str], files: Sequence[LandedFile], own_codes: Sequence[str]
) -> list[date | None]:
    """Create the tables that judged_visits.sql reads, from all files of some days; return the day of each path.

    The first path is the seed, which has no visits and no day (None). `own_codes` are the short codes of the
    organization's links.
    """
    days = [None, *(file.day for file in files)]
    facts = reduce(or_, (file.facts if file.facts & NETWORKS else FACTS for file in files))

    def read_for(mask: int) -> dict[str, object]:
        """Return the parameters for reading visits with any of the facts in `mask`: only the seed if no file has them.

        Files without NETWORKS were written before facts were recorded, so they may have any facts.
        """
        return {**(read if facts & mask else {"files": paths[:1], "days": days[:1]}), "bits": BITS}

    engine.register("link_codes", pa.table({"short_code": pa.array(own_codes, pa.string())}))
    read = {"files": paths, "days": days}
    patterns = {**read, "file_pattern": FILE_PATTERN}
    engine.execute(read_sql("data.tasks", "sql/request_macros"))
    engine.execute(read_sql("data.tasks", "sql/suspects"), {**read, "bits": BITS})
    engine.execute(read_sql("data.tasks", "sql/judged_visitors"), {**patterns, "bits": BITS})
    engine.execute(read_sql("data.tasks", "sql/unfollowed_pages"), read_for(BITS["loaded_ahead"]))
    engine.execute(read_sql("data.tasks", "sql/judged_agents"), patterns)
    engine.execute(read_sql("data.tasks", "sql/loading_agents"))
    last = max(file.day for file in files)
    until_memory_suffices(lambda parts: _register_browsers(engine, paths, last, parts), _PARTS)
    engine.execute(read_sql("data.tasks", "sql/old_visitors"), {**patterns, "bits": BITS})
    engine.execute(read_sql("data.tasks", "sql/old_protocol_visitors"), {**patterns, "bits": BITS})
    engine.execute(read_sql("data.tasks", "sql/headerless_visitors"), read_for(HEADERS))
    hosting = {**read_for(BITS["from_hosting"]), "file_pattern": FILE_PATTERN}
    engine.execute(read_sql("data.tasks", "sql/hosting_visitors"), hosting)
    engine.execute(read_sql("data.tasks", "sql/site_visitors"))
    return days


def _register_browsers(engine: duckdb.DuckDBPyConnection, files: Sequence[str], last: date, parts: int) -> None:
    """Register user agents of people, by their hashes, in two tables: old browsers, and browsers that send both kinds
    of headers used for judging.

    The first table has the browsers that are old by the last day, with the days on which each became old, late, stale
    and outdated.
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
                    ages = dict(zip(_AGES, since, strict=True))
                    rows.append({"agent": agent, **ages, "updates_itself": releases.updates_itself(user_agent)})
    engine.register("old_agents", pa.Table.from_pylist(rows, schema=_OLD))
    engine.register("fetching_agents", pa.Table.from_pylist(fetching, schema=_FETCHING))
