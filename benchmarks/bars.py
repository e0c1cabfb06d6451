"""The bars: limits for figures, in one table. Missing a bar fails the program; missing an aim does not."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from benchmarks.figures import OURS, Figure

MERGE_TREE: Final = "ClickHouse MergeTree"
VIEWS: Final = "ClickHouse, materialised views"
APPROXIMATE: Final = "ClickHouse, views, visitors about"
REFRESHED: Final = "ClickHouse, views refreshed once a day"
RAW: Final = "raw DuckDB, same files"
SQLITE: Final = "SQLite with indexes"
GOACCESS: Final = "GoAccess, same file"
BARE: Final = "bare Starlette route, same bytes"
DASHBOARD_ENDPOINT: Final = "the endpoint dashboard"
ALL_VISITS: Final = "the Overview of all visits"
GOACCESS_REPORT: Final = "GoAccess's HTML report, gzipped"
ITSELF: Final = "itself at 1,000,000 visits"
ITSELF_AT_20M: Final = "itself at 20,000,000 visits"
IDLE: Final = "the same server, idle"
IDLE_AGAIN: Final = "the same server after the last visit, idle"
QUIET: Final = "the same server, quiet"
FEW_LINKS: Final = "with 5 links"
PLAIN_PUTS: Final = "plain puts of the same files"
UNPUBLISHED: Final = "a server that does not publish"
ALONE: Final = "the same merge without judging"

_LARGE: Final = 20_000_000
_DRIFTS: Final = ("worst of 20, drift 0.3", "worst of 20, drift 0.6")


@dataclass(frozen=True)
class Bar:
    """A limit for our own figure, or for our ratio to a peer. It applies to figures for at least `visits` visits."""

    case: str
    who: str = OURS
    most: float | None = None
    least: float | None = None
    visits: int = 0
    is_aim: bool = False
    aim: float | None = None  # stricter than the bar; missing it does not fail the program
    enough: float | None = None  # a value of our own figure that meets the bar whatever the ratio

    def __str__(self) -> str:
        limit = f"≤ {self.most:g}" if self.most is not None else f"≥ {self.least:g}"
        if self.is_aim:
            return f"aim {limit}"
        if self.enough is not None:
            return f"{limit}, or {self.enough:g} itself"
        return limit if self.aim is None else f"{limit}, aim {self.aim:g}"

    def is_of(self, figure: Figure) -> bool:
        """Return whether the bar applies to a figure. A case that ends in * matches every case with that prefix."""
        named = figure.case.startswith(self.case[:-1]) if self.case.endswith("*") else figure.case == self.case
        return named and figure.who == self.who and figure.visits >= self.visits

    def holds(self, figure: Figure) -> bool:
        """Return whether the figure meets the bar: by its limit, or by `enough`."""
        value = figure.median if figure.ratio is None else figure.ratio
        if self.enough is not None and figure.ratio is not None and figure.median * figure.ratio <= self.enough:
            return True
        return (self.most is None or value <= self.most) and (self.least is None or value >= self.least)


BARS: Final = (
    Bar("cold dashboard", MERGE_TREE, most=1 / 20, visits=_LARGE),
    Bar("cold dashboard", VIEWS, most=1 / 2, visits=_LARGE),
    Bar("cold dashboard", REFRESHED, most=1, visits=_LARGE),
    Bar("cold dashboard", REFRESHED, most=1.5),
    Bar("cold dashboard", ITSELF, most=1.5, visits=_LARGE),
    Bar("cold dashboard", ITSELF_AT_20M, most=1.5, visits=5 * _LARGE),
    Bar("cold dashboard over HTTP", most=100, visits=_LARGE),  # ms
    Bar("cold dashboard of one link", MERGE_TREE, most=0.8, visits=_LARGE),
    Bar("cold dashboard of one link", MERGE_TREE, most=1),
    Bar("cold dashboard of few by *", MERGE_TREE, most=1.5, visits=_LARGE),
    Bar("cold dashboard of few by *", most=2_000, visits=_LARGE),  # ms
    Bar("cold dashboard of few by *", MERGE_TREE, most=1),
    Bar("cold dashboard of many by *", MERGE_TREE, most=1.5, visits=_LARGE),
    Bar("cold, one answer: *", most=60, visits=_LARGE, is_aim=True),  # ms
    Bar("import", GOACCESS, most=0.5),
    Bar("import until visits are stored", GOACCESS, most=0.28),
    Bar("processor time of an import", GOACCESS, most=0.4),
    Bar("import of a small log", most=0.6),  # s
    Bar("memory of an import", most=800),  # MB
    Bar("merge of a day with its judging", ALONE, most=1.3),
    Bar("memory of judging a day", most=1_000),  # MB
    Bar("cached traffic-overview", BARE, least=0.35, aim=0.5),
    Bar("cached dashboard", BARE, least=0.35, aim=0.5),
    Bar("another's cached, p99, *", QUIET, most=2, enough=50),  # ms
    Bar("another's uncached, *", QUIET, most=3),
    Bar("another's list of jobs, *", QUIET, most=3),
    Bar("another's new jobs, *", QUIET, most=3),
    Bar("another's writes, *", QUIET, most=3),
    Bar("another's unanswered, *", most=0),
    Bar("server memory, beset*", most=600),  # MB: the memory of queries plus 300
    Bar("a ninth's message while eight hang, slowest", most=2),  # s
    Bar("server memory afterwards", most=400, visits=_LARGE),  # MB
    Bar("live visits, acknowledged", least=9_900),  # visits/s
    Bar("live batches, refused", most=0),
    Bar("live batches, refused, published", most=0),
    Bar("live batches, acknowledged after, p99, published", UNPUBLISHED, most=1.2),
    Bar("publish, the first time", PLAIN_PUTS, most=1.5, visits=_LARGE),
    Bar("publish, the first time", most=60, visits=_LARGE),  # s
    Bar("publish, one day more", most=5, visits=_LARGE),  # s
    Bar("cold dashboard over HTTP, live", IDLE, most=2),
    Bar("cold dashboards refused, live", most=0),
    Bar("files of an open day, live, most", most=24, aim=16),
    Bar("visits without a file, live, most", most=200_000),  # the visits of 20 seconds
    Bar("months not counted, live, in the end", most=0),
    Bar("server memory, live, most", most=450),  # MB
    Bar("small answers, p99, live", most=50),  # ms
    Bar("large days not judged, live, in the end", most=0),
    Bar("cold Overview over HTTP", DASHBOARD_ENDPOINT, most=1.3, visits=_LARGE),
    Bar("cold Overview of people over HTTP", ALL_VISITS, most=1.3),
    Bar("rendering of the Overview", most=10),  # ms
    Bar("first view of the Overview, bytes", most=60),  # kB
    Bar("first view of the Overview, requests", most=2),
    Bar("later view of the Overview, bytes", most=30),  # kB
    Bar("later view of the Overview, requests", most=1),
    Bar("first page of 500,000 links", most=1_500),  # ms
    Bar("next page of 500,000 links", most=500),  # ms
    Bar("search of 500,000 links", most=500),  # ms
    Bar("sort of 500,000 links", most=500),  # ms
    Bar("edit of 500,000 links", FEW_LINKS, most=2),
    Bar("page of paths among a million of scanners", most=3_000),  # ms
    Bar("memory of a page of paths", most=1_000),  # MB
    Bar("memory: *", most=500),  # MB, of an operation: the memory of rewriting plus 300
    Bar("exec to first 200", most=1, visits=_LARGE, is_aim=True),  # s
    *(Bar(f"wrongly {way}: {model}", most=4) for way in ("improved", "worse") for model in _DRIFTS),  # %
    *(Bar(f"wrongly improved: {model}, kinds that never close", most=4, is_aim=True) for model in _DRIFTS),
    *(Bar(f"wrongly worse: {model}, kinds that never close", most=4) for model in _DRIFTS),
    Bar("wrongly improved: *", most=1.3),
    Bar("wrongly worse: *", most=1.3),
    Bar("seen: errors 10 % to 1 %, 5 a day", least=90, is_aim=True),  # %
    Bar("seen: errors 10 % to 1 %, 20 a day", least=90),
    Bar("seen: *", least=95),
    Bar("interval holds: *", least=93),
)


def bar_of(figure: Figure) -> Bar | None:
    """Return the first bar in BARS that applies to a figure; None if none does."""
    return next((bar for bar in BARS if bar.is_of(figure)), None)


def missed(figures: Iterable[Figure]) -> list[Figure]:
    """Return the figures that miss their bars; aims do not count."""
    return [figure for figure in figures if (bar := bar_of(figure)) and not bar.is_aim and not bar.holds(figure)]
