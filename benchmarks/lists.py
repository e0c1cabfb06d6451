"""Pages of long lists: all of very many links, and the paths that a million addresses of scanners are among."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.figures import Figure, figure, milliseconds
from benchmarks.made import DAYS, LAST_DAY, ORGANIZATION
from benchmarks.made.lakes import compact, land_organization
from benchmarks.pages import Browser
from benchmarks.servers import resident_mb, server
from benchmarks.worlds import WHOLE, Setting
from data import Lake
from service.demo.sample import Sample

LINKS: Final = 500_000
LINK_VISITS: Final = 1_000_000
SCANS: Final = 1_000_000
"""Visits of scanners, each of a path that nobody else asked for."""
RUNS: Final = 5
_DAYS: Final = f"start_date={WHOLE.start_date}&end_date={WHOLE.end_date}"
_ASKED: Final = {
    "next page": [f"part={number}" for number in range(2, 2 + RUNS)],
    "search": [f"search={text}" for text in ("ab", "k7", "Q", "zz", "x9y")],
    "sort": [f"sort={field}" for field in ("short_code", "human_clicks", "ai_visits", "last_visit", "target_url")],
}


def lists(setting: Setting) -> Iterator[Figure]:
    """All of it; links over a million visits, paths over each size and the scanners' visits."""
    lake = Lake(setting.kept / "lake-lists-links", create=True)
    land_organization(lake, ORGANIZATION, Sample(LINK_VISITS, LAST_DAY, DAYS, links=LINKS))
    compact(lake)
    yield from _links(lake)
    for visits in setting.sizes:
        yield from _paths(_scanned(setting.kept / f"lake-lists-{visits}", visits), visits)


def _links(lake: Lake) -> Iterator[Figure]:
    """The first page of all links, then others of them, none asked for before."""
    first, later = [], {name: list[float]() for name in _ASKED}
    for run in range(RUNS):
        with server(lake.root) as (port, _):
            browser = Browser.signed_in(port, lake)
            first.append(_taken(browser, f"/app/links?{_DAYS}"))
            for name, queries in _ASKED.items():
                later[name].append(_taken(browser, f"/app/links?{_DAYS}&{queries[run]}"))
    yield figure("first page of 500,000 links", "ms", first, LINK_VISITS)
    for name, taken in later.items():
        yield figure(f"{name} of 500,000 links", "ms", taken, LINK_VISITS)


def _paths(lake: Lake, visits: int) -> Iterator[Figure]:
    """The page of paths of a server that has just started, and the memory that it took for that."""
    taken, memory = [], []
    for _ in range(RUNS):
        with server(lake.root) as (port, process):
            taken.append(_taken(Browser.signed_in(port, lake), f"/app/paths?{_DAYS}"))
            memory.append(resident_mb(process.pid, "VmHWM"))
    yield figure("page of paths among a million of scanners", "ms", taken, visits)
    yield figure("memory of a page of paths", "MB", memory, visits)


def _taken(browser: Browser, path: str) -> float:
    """The milliseconds until a page has come."""
    return milliseconds(lambda: browser.body(path))


def _scanned(root: Path, visits: int) -> Lake:
    """The lake of so many visits, of which SCANS asked for a path of their own."""
    lake = Lake(root, create=True)
    land_organization(lake, ORGANIZATION, Sample(visits - SCANS, LAST_DAY, DAYS))
    land_organization(lake, ORGANIZATION, Sample(SCANS, LAST_DAY, DAYS, seed=21), change=_with_paths_of_their_own)
    compact(lake)
    return lake


def _with_paths_of_their_own(visits: pa.Table) -> pa.Table:
    numbers = pc.cast(pa.array(range(len(visits))), pa.string())
    days = pc.cast(visits["day"], pa.string())
    paths = pc.binary_join_element_wise("/scan", days, numbers, "/").cast(visits.schema.field("path").type)
    return visits.set_column(visits.schema.get_field_index("path"), visits.schema.field("path"), paths)
