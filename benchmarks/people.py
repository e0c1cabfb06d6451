"""Measures the share of machines among the visits classified as people: `uv run python -m benchmarks.people`.

The visits are page views and visitor-days of public logs that were labelled in their context, and fleets planted among
the people of a short-link service. All are written as logs, imported, judged, and queried with SQL, so the tables
follow every change to the rules.
"""

import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final, NamedTuple

import typer
from rich.console import Console
from rich.table import Table

from benchmarks.figures import share_of
from benchmarks.fleets import DAY, LINKS, fleets
from benchmarks.headed_days import HeadedDay, headed_days
from benchmarks.headed_days import lines_of as lines_of_headed
from benchmarks.viewed import View, lines_of, log_line, views
from benchmarks.visitor_days import VisitorDay, visitor_days
from benchmarks.visitor_days import lines_of as lines_of_day
from data import Lake
from data.ingest.importer import Importer, Options
from data.signals import SIGNALS
from data.tasks.compaction import Compactor
from queries import Reader
from tests.support.visits import links as put_links

PEERS: Final = ("isbot 5.2.3", "Matomo's list (device_detector 6.5.1)", "GoAccess 1.7")
_BEYOND_THE_LINE: Final = ("probed", "outdated", "bot_network", "hosting_", "superseded_")
"""Prefixes of the signals for which visitor-days were labelled; lifetimes.toml was chosen on the same visitor-days."""
_ASKED: Final = """
    SELECT domain, utm_campaign, landed_category, coalesce(signals, 0) AS signals, bot_category
    FROM visits_in_scope WHERE utm_campaign IS NOT NULL
"""


class Row(NamedTuple):
    """The label of a page view, a visitor-day or a click, and its classification."""

    group: str  # its site, the part of its site, or its fleet
    label: str  # machine, person, doubtful
    landed: bool  # whether its log line alone makes it a person's
    signals: int
    seen: bool  # whether answers, after judging, count it as a person's
    peers: tuple[bool, ...] = ()  # whether each of PEERS calls it a bot's


Called = Callable[[Row], bool]


def of_views(rows: Sequence[View]) -> list[Row]:
    """Return the label of each page view, and its classification."""
    lines = (line for number, view in enumerate(rows) for line in lines_of(view, number))
    seen = {visit["domain"]: visit for visit in judged(lines)}
    return [_row(view.site, view.label, seen[f"view-{number}.example"], view.peers) for number, view in enumerate(rows)]


def of_days(rows: Sequence[VisitorDay]) -> list[Row]:
    """Return the label of each visitor-day, and its classification; the group is the part of its site."""
    lines = (line for number, one in enumerate(rows) for line in lines_of_day(one, number))
    seen = {visit["domain"]: visit for visit in judged(lines)}
    return [_row(one.part, one.label, seen[f"day-{number}.example"]) for number, one in enumerate(rows)]


def of_headed(rows: Sequence[HeadedDay]) -> list[Row]:
    """Return the label of each visitor-day with headers, and its classification; the group is its site."""
    lines = (line for number, one in enumerate(rows) for line in lines_of_headed(one, number))
    seen = {visit["domain"]: visit for visit in judged(lines)}
    return [_row(one.day.site, one.day.label, seen[f"day-{number}.example"]) for number, one in enumerate(rows)]


def of_fleets() -> list[Row]:
    """Return the label of each click of the fleets, and its classification."""
    labels = {fleet.name: "person" if fleet.is_person else "machine" for fleet in fleets()}
    clicks = judged(fleet_lines(), LINKS)
    return [_row(click["utm_campaign"], labels[click["utm_campaign"]], click) for click in clicks]


def fleet_lines() -> Iterator[str]:
    """Yield the requests of all fleets on one domain, as lines of a log."""
    midnight = datetime(DAY.year, DAY.month, DAY.day, tzinfo=UTC)
    for fleet in fleets():
        campaign = fleet.name.replace(" ", "+")
        for address, second, code, status, user_agent in fleet.requests:
            path, at = f"/{code}?utm_campaign={campaign}", midnight + timedelta(seconds=second)
            yield log_line("go.example", f"2001:db8::{address:x}", at, path, status, user_agent)


def bursts() -> Counter[str]:
    """Count, for each fleet, the clicks by visitors who open at least four different links within five seconds. Such
    bursts are not used as a signal.
    """
    found = Counter[str]()
    for fleet in fleets():
        visitors = defaultdict[tuple[int, str], list[tuple[float, str]]](list)
        for address, second, code, _, user_agent in fleet.requests:
            visitors[address, user_agent].append((second, code))
        for clicks in map(sorted, visitors.values()):
            windows = ({code for later, code in clicks[n:] if later - at <= 5} for n, (at, _) in enumerate(clicks))
            found[fleet.name] += len(clicks) * any(len(codes) >= 4 for codes in windows)
    return found


def judged(lines: Iterable[str], links: Sequence[str] = ()) -> list[dict[str, Any]]:
    """Import the lines and judge their days; return the visits with a campaign, in the columns of _ASKED."""
    with tempfile.TemporaryDirectory(prefix="traffic-people-") as scratch:
        log, root = Path(scratch) / "access.log", Path(scratch) / "lake"
        log.write_text("\n".join(lines) + "\n", "utf-8")
        with closing((lake := Lake(root, create=True)).manifest):
            put_links(lake, "acme", [{"short_code": code, "target_url": "https://shop.example/"} for code in links])
            Importer(lake).run(log, Options("acme"))
            Compactor(lake).run()
        with closing(Reader(Lake(root, must_write=False))) as reader:
            days = {"start_date": "2022-01-01", "end_date": "2026-12-31"}
            return list(reader.sql(_ASKED, organization="acme", **days).to_pylist())


def _row(group: str, label: str, visit: dict[str, Any], peers: tuple[bool, ...] = ()) -> Row:
    landed, seen = (visit[name] in {"human", "ai_referral"} for name in ("landed_category", "bot_category"))
    return Row(group, label, landed, visit["signals"], seen, peers)


def ways(rows: Sequence[Row]) -> dict[str, Called]:
    """Return named functions that decide whether a row is a person's: by its log line, each peer, each signal alone,
    two signals or all signals.
    """
    found: dict[str, Called] = {"its line": lambda _row: True}
    for position, name in enumerate(PEERS if rows[0].peers else ()):
        found[name] = lambda row, position=position: not row.peers[position]  # type: ignore[misc]
    bits = {signal.name: signal.bit for signal in SIGNALS if signal.set_at == "judging"}
    both = {"probed and outdated alone": bits["probed"] | bits["outdated"]}
    for name, bit in {**{f"{name} alone": bit for name, bit in bits.items()}, **both}.items():
        found[name] = lambda row, bit=bit: not row.signals & bit  # type: ignore[misc]
    return {**found, "a judged day": lambda row: row.seen}


def headed_ways() -> dict[str, Called]:
    """Return named functions that decide whether a row with logged headers is a person's. All rows have passed the
    other signals; each further function adds a group of signals, and the last uses the result of judging.
    """
    found: dict[str, Called] = {"other signals": lambda _row: True}
    mask = 0
    for name, prefixes in (
        ("headers", ("no_fetch_metadata", "no_language")),
        ("late browsers", ("superseded_",)),
        ("networks", ("hosting_", "bot_network")),
    ):
        mask |= sum(signal.bit for signal in SIGNALS if signal.name.startswith(prefixes))
        found[f"and {name}"] = lambda row, mask=mask: not row.signals & mask  # type: ignore[misc]
    return {**found, "a judged day": lambda row: row.seen}


def shares(rows: Sequence[Row], is_called: Called) -> tuple[int, str, str, str]:
    """Return the number of rows called people, the shares of machines and of non-people among them, and the share of
    people missed.
    """
    landed = [row for row in rows if row.landed]
    called = [row for row in landed if is_called(row)]
    people, kept = (sum(row.label == "person" for row in some) for some in (landed, called))
    machines = interval(sum(row.label == "machine" for row in called), len(called))
    return len(called), machines, interval(len(called) - kept, len(called)), interval(people - kept, people)


def interval(part: int, whole: int) -> str:
    """Format a share with its 95 % confidence interval (Wilson's), in percent; "-" if `whole` is 0."""
    if not whole:
        return "-"
    return "{:.1f} ({:.1f}–{:.1f})".format(*share_of(part, whole))


def main() -> None:
    """Print tables for page views, visitor-days and planted fleets: the share of machines among the rows called people,
    and of people lost.

    Example: uv run python -m benchmarks.people
    """
    console, read = Console(width=120), list(views())
    seen, clicks = of_views(read), of_fleets()
    logged = {view.site for view in read if view.files_logged}
    console.print(_shares("Page views of public logs, all sites", seen))
    console.print(_shares("Sites with files in their logs", [row for row in seen if row.group in logged]))
    console.print(_shares("Clicks by planted fleets", clicks))
    for has_list, networks in ((False, "bundled networks"), (True, "bundled and fetched networks")):
        read_days = list(visitor_days(has_list=has_list))
        days = of_days(read_days)
        without_files = [row for row, one in zip(days, read_days, strict=True) if one.has_pages]
        halves = {"chosen": "the half on which rules were chosen", "unseen": "the other half"}
        parts = {**{part: (part,) for part in halves}, "both halves": tuple(halves), "later": ("later",)}
        for part, members in parts.items():
            for aside, of_all in (("", days), (", files set aside", without_files)):
                if rows := [row for row in of_all if row.group in members]:
                    console.print(_signals(f"Visitor-days, {networks}, {halves.get(part, part)}{aside}", rows))
        headed = of_headed(list(headed_days(has_list=has_list)))
        console.print(_shares(f"Visitor-days, {networks}, where headers are logged", headed, headed_ways()))
    console.print(_groups("Sites", seen))
    console.print(_groups("Fleets", clicks))
    in_bursts = _table("Clicks by visitors who open four links in five seconds", "fleet", "clicks")
    for name, count in bursts().items():
        in_bursts.add_row(name, f"{count:,}")
    console.print(in_bursts)


def _shares(title: str, rows: Sequence[Row], called_by: dict[str, Called] | None = None) -> Table:
    table = _table(title, "called people by", "visits", "machines among them, %", "not people, %", "people lost, %")
    for name, is_called in (called_by or ways(rows)).items():
        called, *others = shares(rows, is_called)
        table.add_row(name, f"{called:,}", *others)
    return table


def _signals(title: str, rows: Sequence[Row]) -> Table:
    table = _table(title, "signal", "machines found, %", "people lost, %", "left as people", "machines among them, %")
    found: dict[str, Called] = {"a user agent that no browser sends": lambda row: row.landed}
    for signal in (signal for signal in SIGNALS if signal.name.startswith(_BEYOND_THE_LINE)):
        found[signal.name] = lambda row, bit=signal.bit: not row.signals & bit  # type: ignore[misc]
    found |= {"all signals": lambda row: row.seen, "none": lambda _row: True}
    for name, is_called in found.items():
        taken = [interval(*_taken(rows, label, is_called)) for label in ("machine", "person")]
        left = [row for row in rows if is_called(row)]
        table.add_row(name, *taken, f"{len(left):,}", interval(sum(row.label == "machine" for row in left), len(left)))
    return table


def _taken(rows: Sequence[Row], label: str, is_called: Called) -> tuple[int, int]:
    mine = [row for row in rows if row.label == label]
    return sum(not is_called(row) for row in mine), len(mine)


def _groups(title: str, rows: Sequence[Row]) -> Table:
    table = _table(title, "group", "machines", "called people", "doubtful", "called people", "people", "lost")
    for group in dict.fromkeys(row.group for row in rows):
        mine = [row for row in rows if row.group == group and row.landed]
        machines, doubtful, people = (
            [row.seen for row in mine if row.label == label] for label in ("machine", "doubtful", "person")
        )
        counts = len(machines), sum(machines), len(doubtful), sum(doubtful), len(people), len(people) - sum(people)
        table.add_row(group, *(f"{count:,}" for count in counts))
    return table


def _table(title: str, first: str, *others: str) -> Table:
    table = Table(first, title=title, title_justify="left", box=None)
    for name in others:
        table.add_column(name, justify="right")
    return table


if __name__ == "__main__":
    typer.run(main)
