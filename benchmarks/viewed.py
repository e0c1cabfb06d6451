"""Page views that counted as people's, from public access logs of 2022-26, labelled in their context, with counts of
requests on the same day.

people.tsv.gz has one row per page view: its label, its network, and counts for its visitor, its user agent and its site
on that day, without addresses, paths or referrers. Lines that begin with # name the repositories, their commits, and
whether their logs have files.

Up to 45 views of each site were drawn at random from the views that are a person's by their log line alone (GET, no
file), and one reader labelled each in its context by criteria that were written down beforehand. A view is a person's
if its address and user agent load the page's files within 90 seconds, or if it belongs to a session that does so, or,
where the log has no files, to a session with forms and correct referrers. In addition, its day must have no probe, no
walk through a list and no emulated device. It is a machine's if, that day, its address probes or walks through a list
of paths; or if several unrelated user agents come from one address within minutes; or if it loads no file where others
load dozens, with one more sign (a forged referrer, one user agent from many addresses with a page each, a cloud's
network, an old browser). The others are doubtful and stay in the denominator. Views that a later rule for single lines
recognizes are left out. isbot 5.2.3, Matomo's list of bots (device_detector 6.5.1) and GoAccess 1.7 classified the same
user agents once: of the 742 views, isbot calls one a bot's; the other two call none.

The networks come from iporigin 1.1.2 and hosting.toml. They were added later, from the address in the log that had the
same user agent and status, and nearly the same number of files and duration, on one day. The 163 views without such an
address, or with several on different networks, count as views from no hosting network. Some providers in hosting.toml
were chosen because they visited two of eight sites here (a, c, e, g, i, k, n, p).

Before the thresholds of `outdated`, `errors` and `stale` were chosen on these logs, 42 % of the views left as people's
were machines', and 10.6 % of people were lost: nearly all of these were developers of a site that showed its debug bar,
a developer whose pages named missing images, and phones with browsers that are updated late.
"""

import gzip
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Final, NamedTuple

FILE: Final = Path(__file__).parent / "people.tsv.gz"
NETWORKS: Final = {"hosting": "2a01:4f8", "bot": "2a03:2880", "-": "2001:db8"}
"""Address prefixes for generated log lines: networks of Hetzner and Meta, and a documentation range."""
_BROWSERS: Final = [
    f"Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/{number}.0.0.0 Safari/537.36"
    for number in range(141, 146)
]
"""Five user agents that load all files of a page, as others do on the site."""


class View(NamedTuple):
    """A page view that is a person's by its log line alone, with counts for its visitor and user agent on that day."""

    site: str
    files_logged: bool  # whether the site's log has images, stylesheets, scripts and fonts
    day: date
    label: str  # machine, person, doubtful
    network: str  # hosting, bot, -
    status: int
    followed: bool  # whether three other visitors requested the same missing page
    found: int  # distinct pages of the visitor, without probes
    missing: int  # distinct missing pages that only this visitor requested, without probes
    probes_missing: int
    probes_refused: int
    probes_redirected: int
    attacked: bool
    files: int  # images, stylesheets, scripts and fonts that the visitor loaded
    seconds: int  # from the visitor's first request to the last
    agent_pages: int  # requests of all visitors with this user agent; above 300, scaled down together with the next
    agent_files: int
    loads: bool  # whether five or more user agents load files with the pages of this site and day
    hosted: int  # other visitors from hosting networks with its user agent; this and the next two are at most 50
    hosted_pages: int
    hosted_files: int
    loading: int  # other user agents that load two or more images, stylesheets, scripts or fonts; at most 3
    has_files: bool  # whether any visitor loads such a file
    has_code: bool  # whether the visitor requests a path that may belong to a short link
    peers: tuple[bool, ...]  # whether each peer calls the user agent a bot's
    user_agent: str


def views() -> Iterator[View]:
    """Yield the rows of the file."""
    for site, about, (day, label, network, *numbers, user_agent) in rows_of(FILE):
        status, followed, found, missing, absent, refused, redirected, attacked, *more = map(int, numbers)
        files, seconds, pages, agent_files, loads, hosted, hosted_pages, hosted_files, loading, *more = more
        has_files, has_code, one, two, three = map(bool, more)
        yield View(
            site, about == "files", date.fromisoformat(day), label, network, status, bool(followed), found, missing,
            absent, refused, redirected, bool(attacked), files, seconds, pages, agent_files, bool(loads), hosted,
            hosted_pages, hosted_files, loading, has_files, has_code, (one, two, three), user_agent,
        )  # fmt: skip


def rows_of(path: Path) -> Iterator[tuple[str, str, list[str]]]:
    """Yield each row of a table: its site, the last cell of the site's comment line, and the other cells of the row."""
    about = {}
    with gzip.open(path, "rt", encoding="utf-8", newline="\n") as file:
        for line in file:
            site, *cells = line.rstrip("\n").split("\t")
            if site == "#":
                about[cells[0]] = cells[-1]
            else:
                yield site, about[site], cells


def lines_of(view: View, number: int) -> Iterator[str]:
    """Yield the log lines of a view's day, on a separate domain. The view itself has a campaign."""
    seen = "/seen" if view.has_code else "/page/seen"
    own = [(f"{seen}?utm_campaign=view" + "&file=../../../../etc/passwd" * view.attacked, view.status)]
    is_missing = view.status in {404, 410}
    own += [(f"/found/{n}", 200) for n in range(view.found - (not is_missing))]
    own += [(f"/missing/{n}", 404) for n in range(view.missing - (is_missing and not view.followed))]
    own += [(f"/wp-includes/{n}.php", 404) for n in range(view.probes_missing)]
    own += [(f"/wp-includes/refused{n}.php", 403) for n in range(view.probes_refused)]
    own += [(f"/wp-includes/moved{n}.php", 301) for n in range(view.probes_redirected)]
    hosted = [(f"/hosted/{n}", 200) for n in range(view.hosted_pages)]
    hosted += [(f"/hosted{n}.png", 200) for n in range(view.hosted_files)]
    others = [(f"/other/{n}", 200) for n in range(view.agent_pages - len(own) - view.hosted_pages)]
    own += [(f"/own{n}.png", 200) for n in range(view.files)]
    others += [(f"/other{n}.png", 200) for n in range(view.agent_files - view.files - view.hosted_files)]
    domain, midnight = f"view-{number}.example", datetime(view.day.year, view.day.month, view.day.day, tzinfo=UTC)
    for position, (path, status) in enumerate(own):
        at = midnight + timedelta(seconds=view.seconds * position // max(len(own) - 1, 1))
        yield log_line(domain, f"{NETWORKS[view.network]}::{number:x}:1", at, path, status, view.user_agent)
    for position, (path, status) in enumerate(hosted):
        address = f"{NETWORKS['hosting']}:1:{number:x}::{position % view.hosted}"
        yield log_line(domain, address, midnight, path, status, view.user_agent)
    for path, status in others:
        yield log_line(domain, f"2001:db8::{number:x}:2", midnight, path, status, view.user_agent)
    loading = len(_BROWSERS) if view.loads else view.loading or view.has_files
    parts = view.agent_pages // len(_BROWSERS) + 3 if view.loads else 2 if view.loading else 1
    for position, browser in enumerate(_BROWSERS):
        loaded = parts if position < loading else 0
        paths = [("/", 200), *((f"/page{n}.css", 200) for n in range(loaded))]
        for path, status in paths + [(seen, 404)] * (view.followed and position < 3):
            yield log_line(domain, f"2001:db8::{number:x}:{position + 3}", midnight, path, status, browser)


def log_line(
    domain: str, address: str, at: datetime, path: str, status: int, user_agent: str,
    method: str = "GET", referrer: str = "-",
) -> str:  # fmt: skip
    """Return a line in the format of Apache's vhost_combined."""
    time = at.strftime("%d/%b/%Y:%H:%M:%S +0000")
    return f'{domain}:443 {address} - - [{time}] "{method} {path} HTTP/1.1" {status} 100 "{referrer}" "{user_agent}"'
