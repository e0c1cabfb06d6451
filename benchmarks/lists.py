"""Measures pages of long lists (500,000 links, and paths among a million that only scanners request), and edits among
few or very many links.
"""

import time
import urllib.request
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.bars import FEW_LINKS
from benchmarks.figures import OURS, Figure, beside, figure, milliseconds
from benchmarks.made import DAYS, LAST_DAY, ORGANIZATION
from benchmarks.made.lakes import compact, land_organization
from benchmarks.pages import Browser
from benchmarks.servers import TRAFFIC, get, key_of, resident_mb, server
from benchmarks.worlds import WHOLE, Setting
from data import Lake
from data.links.links import change_links, new_link
from service.demo.sample import Sample

LINKS: Final = 500_000
LINK_VISITS: Final = 1_000_000
SCANS: Final = 1_000_000
"""Number of visits by scanners, each to a unique path."""
RUNS: Final = 5
_DAYS: Final = f"start_date={WHOLE.start_date}&end_date={WHOLE.end_date}"
_ASKED: Final = {
    "next page": [f"part={number}" for number in range(2, 2 + RUNS)],
    "search": [f"search={text}" for text in ("ab", "k7", "Q", "zz", "x9y")],
    "sort": [f"sort={field}" for field in ("short_code", "human_clicks", "ai_visits", "last_visit", "target_url")],
}


EDITED: Final = (5, 50_000, LINKS)
"""Numbers of links in the lakes in which links are edited."""
EDITS: Final = 100
EDIT_VISITS: Final = 20_000


def lists(setting: Setting) -> Iterator[Figure]:
    """Measure edits in lakes with few visits, pages of links in a lake with a million visits, and pages of paths at
    every size.
    """
    yield from edits(setting.scratch / "lake-edits")
    lake = Lake(setting.kept / "lake-lists-links", create=True)
    land_organization(lake, ORGANIZATION, Sample(LINK_VISITS, LAST_DAY, DAYS, links=LINKS))
    compact(lake)
    yield from _links(lake)
    for visits in setting.sizes:
        yield from _paths(_scanned(setting.kept / f"lake-lists-{visits}", visits), visits)


def _links(lake: Lake) -> Iterator[Figure]:
    """Measure the first page of all links, then other pages, each requested for the first time."""
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


def edits(root: Path, traffic: Path = TRAFFIC) -> Iterator[Figure]:
    """Measure single edits of links, each followed by an uncached dashboard, and the bytes that an edit adds to the
    link files.
    """
    puts = dict[int, list[float]]()
    for count in EDITED:
        lake = Lake(root / str(count), create=True)
        land_organization(lake, ORGANIZATION, Sample(EDIT_VISITS, LAST_DAY, DAYS))
        now, target = datetime.now(UTC), "https://example.com/target"
        links = [new_link(f"code{number}", "", f"{target}/{number}", now) for number in range(count)]
        change_links(lake, ORGANIZATION, links, now)
        compact(lake)
        lake.manifest.close()
        key, folder, put, then = key_of(lake.root, ORGANIZATION, traffic), lake.links_folder(ORGANIZATION), [], []
        with server(lake.root, traffic) as (port, _):
            before = sum(path.stat().st_size for path in folder.iterdir())
            for number in range(EDITS):
                days = f"start_date={LAST_DAY - timedelta(DAYS + number)}&end_date={LAST_DAY}"
                body = b'{"target_url": "https://example.com/%d"}' % number
                put.append(milliseconds(partial(_put, port, f"/links/*/code{number * count // EDITS}", key, body)))
                then.append(milliseconds(partial(get, port, f"/analytics/dashboard?{days}", key)))
            written = sum(path.stat().st_size for path in folder.iterdir()) - before
        puts[count], both = put, [sum(one) for one in zip(put, then, strict=True)]
        yield from beside(f"edit of {count:,} links", "ms", {OURS: put, FEW_LINKS: puts[EDITED[0]]}, EDIT_VISITS)
        yield figure(f"p99: edit of {count:,} links", "ms", [sorted(put)[EDITS * 99 // 100 - 1]], EDIT_VISITS)
        yield figure(f"edit of {count:,} links and the next dashboard", "ms", both, EDIT_VISITS)
        p99 = sorted(both)[EDITS * 99 // 100 - 1]
        yield figure(f"p99: edit of {count:,} links and the next dashboard", "ms", [p99], EDIT_VISITS)
        yield figure(f"bytes: edit of {count:,} links", "kB", [written / EDITS / 1000], EDIT_VISITS)


def _put(port: int, path: str, key: str, body: bytes) -> None:
    headers = {"Authorization": f"Bearer {key}", "X-Forwarded-For": f"10.9.{time.time_ns() // 1000 % 250}.1"}
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", body, headers, method="PUT")
    with urllib.request.urlopen(request) as response:
        response.read()


def _paths(lake: Lake, visits: int) -> Iterator[Figure]:
    """Measure the time for the paths page on a newly started server, and the server's peak memory."""
    taken, memory = [], []
    for _ in range(RUNS):
        with server(lake.root) as (port, process):
            taken.append(_taken(Browser.signed_in(port, lake), f"/app/paths?{_DAYS}"))
            memory.append(resident_mb(process.pid, "VmHWM"))
    yield figure("page of paths among a million of scanners", "ms", taken, visits)
    yield figure("memory of a page of paths", "MB", memory, visits)


def _taken(browser: Browser, path: str) -> float:
    """Return the milliseconds until a page has arrived."""
    return milliseconds(lambda: browser.body(path))


def _scanned(root: Path, visits: int) -> Lake:
    """Build a lake with this many visits, SCANS of which are to unique paths."""
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
