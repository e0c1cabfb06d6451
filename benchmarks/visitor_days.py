"""Visitor-days that counted as people's after judging, from public access logs of 2023-26, with their networks.

days.tsv.gz has one row per visitor-day (an address with a user agent on one day of a domain): its label, and counts for
the visitor, the user agent and the domain on that day, without addresses, paths or referrers. Lines that begin with #
name the repositories, and whether the rules were chosen on them. None of the sites is in people.tsv.gz.

The visitor-days of the five later sites were read while the other 17 sites (both halves had been seen by then) were
searched for user agents that no browser sends. These visitor-days were measured once the list of user agents was final.
For the later sites, lines from addresses of content delivery networks are left out, since they do not identify a
visitor.

Up to 30 from each site were drawn at random from the 2,493 that were classified as people's before there were signals
of networks, and one reader labelled each in its context by criteria that were written down beforehand. A person loads
the files of a page within 90 seconds in a plausible order, or is in a session with forms, logins or correct referrers;
where a log has no files, a person requests data with the application's referrer, and pauses. A visitor is a machine if
its address probes or walks through a list of paths that day; or if several unrelated user agents come from one address
within minutes; or if it loads one page without the files that others load there, with one more sign (a hosting network,
a forged referrer, one user agent from many addresses with a page each); or if it loads only icons, from a hosting
network; or if it renders previews. The others are doubtful. The reader knew the names of networks.

The networks come from iporigin 1.1.2 and hosting.toml, optionally also from the list downloaded on 22 August 2026. The
networks from hosting.toml, and for the later sites also from the list, were added afterwards from the same logs: for
the later sites by address, for the others by the day with the same user agent and the same counts. Eight rows keep only
iporigin's networks, since the log has no such day, or several on different networks.

The columns `unaccepted` and `is_referred` were also added afterwards, in the same way, for the visitor-days that only
requested files, or that were served no page and refused at least two. Where no visitor-day of the log matches, or
several differ, the columns have the values of an ordinary visitor.
"""

from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Final, NamedTuple

from benchmarks.viewed import NETWORKS, log_line, rows_of

FILE: Final = Path(__file__).parent / "days.tsv.gz"
BROWSER: Final = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/{}.0.0.0 Safari/537.36"


class VisitorDay(NamedTuple):
    """Counts of a visitor's requests to a domain on one day, and of the requests of all other visitors there."""

    site: str
    part: str  # chosen, unseen, later: whether the rules were chosen on its site
    day: date
    label: str  # machine, person, doubtful
    network: str  # hosting, bot, -
    served: int  # pages that were served; this and the next five are at most 50
    refused: int  # pages that were not served, without redirects
    redirects: int  # of paths that are not links
    clicks: int  # links that redirect
    parts: int  # images, stylesheets, scripts and fonts
    icons: int
    seconds: int  # from the first request to the last
    hosted: int  # other visitors from hosting networks with its user agent
    hosted_pages: int
    hosted_files: int
    others: int  # requests with its user agent from other networks
    agent_loads: bool  # whether others with its user agent load parts
    agent_clicks: bool
    loading: int  # other user agents that load two or more parts, at most 3
    has_files: bool  # whether any visitor loads a part
    user_agent: str
    unaccepted: int = 0  # refused pages that do not accept the data sent to them (405)
    is_referred: bool = True  # False if it requested only files and sent no referrer; True otherwise, or if unknown

    @property
    def has_pages(self) -> bool:
        """True if any of its requests counts when files are set aside."""
        return bool(self.served or self.refused or self.redirects or self.clicks)


class Request(NamedTuple):
    """A request in a generated log."""

    visitor: int  # 0: the visitor of the visitor-day
    path: str
    status: int
    user_agent: str
    network: str = "-"
    second: int = 0  # seconds since midnight
    method: str = "GET"
    has_referrer: bool = False  # whether it names a page of the site as its referrer

    def at(self, one: VisitorDay) -> datetime:
        """Return the time of the request."""
        return datetime(one.day.year, one.day.month, one.day.day, tzinfo=UTC) + timedelta(seconds=self.second)

    def address(self, number: int) -> str:
        """Return the client's address for the visitor-day with this number."""
        return f"{NETWORKS[self.network]}:{number:x}::{self.visitor:x}"


def visitor_days(*, has_list: bool = False) -> Iterator[VisitorDay]:
    """Yield the file's rows, with networks from iporigin and hosting.toml and, with `has_list`, the downloaded list."""
    for site, about, (*cells, unaccepted, is_referred, user_agent) in rows_of(FILE):
        day = of_cells(site, about, (*cells, user_agent), has_list=has_list)
        yield day._replace(unaccepted=int(unaccepted), is_referred=bool(int(is_referred)))


def of_cells(site: str, about: str, cells: Sequence[str], *, has_list: bool) -> VisitorDay:
    """Return the visitor-day parsed from the cells of a row."""
    day, label, bundled, listed, *numbers, user_agent = cells
    own, of_bundled, of_listed = (map(int, numbers[start:end]) for start, end in ((0, 7), (7, 11), (11, 15)))
    loads, clicks, loading, has_files = map(int, numbers[15:])
    return VisitorDay._make((
        site, about, date.fromisoformat(day), label, listed if has_list else bundled, *own,
        *(of_listed if has_list else of_bundled), bool(loads), bool(clicks), loading, bool(has_files), user_agent,
        0, True,
    ))  # fmt: skip


def lines_of(one: VisitorDay, number: int) -> Iterator[str]:
    """Yield the log lines of a visitor-day, on a separate domain. Its first request has a campaign."""
    for request in requests_of(one):
        _, path, status, user_agent, *_, method, has_referrer = request
        domain = f"day-{number}.example"
        referrer = f"https://{domain}/page" if has_referrer else "-"
        at = request.at(one)
        yield log_line(domain, request.address(number), at, path, status, user_agent, method, referrer)


def requests_of(one: VisitorDay) -> Iterator[Request]:
    """Yield the requests of a visitor-day, and the requests of all other visitors to its domain."""
    own = [(f"/served/{n}", 200) for n in range(one.served)] + [(f"/refused/{n}", 403) for n in range(one.refused)]
    own += [(f"/moved/{n}", 301) for n in range(one.redirects)] + [(f"/link{n}", 302) for n in range(one.clicks)]
    own += [(f"/{n}.png", 200) for n in range(one.parts)] + [(f"/favicon.ico?{n}", 200) for n in range(one.icons)]
    own[0] = f"{own[0][0]}{'&' if '?' in own[0][0] else '?'}utm_campaign=day", own[0][1]
    for position, (path, status) in enumerate(own):
        second = one.seconds * position // max(len(own) - 1, 1)
        is_unaccepted = one.served <= position < one.served + one.unaccepted
        answer, method = (405, "POST") if is_unaccepted else (status, "GET")
        has_referrer = one.is_referred and not one.has_pages
        yield Request(0, path, answer, one.user_agent, one.network, second, method, has_referrer)
    fleet = ["/page/of-fleet"] * one.hosted_pages + ["/favicon.ico"] * one.hosted_files
    for position, path in enumerate(fleet):
        yield Request(1 + position % one.hosted, path, 200, one.user_agent, "hosting")
    others = ["/a.png"] * one.agent_loads + ["/link"] * one.agent_clicks
    for path in others + ["/page/of-others"] * (one.others - len(others)):
        yield Request(1000, path, 302 if path == "/link" else 200, one.user_agent)
    for browser in range(one.loading or one.has_files):
        for path in ("/page/of-reader", "/a.png", "/b.css")[: 3 if one.loading else 2]:
            yield Request(2000 + browser, path, 200, BROWSER.format(130 + browser))
