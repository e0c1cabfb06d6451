"""Visitor-days from three public Caddy access logs that record TLS and request headers, condensed to counts.

headed_days.tsv.gz has the columns of days.tsv.gz (visitor_days.py), plus the headers that the visitor sent that day and
how many others on the domain sent them. One reader labelled 236 visitor-days in their context before any verdict was
known: up to 40 from each domain of a hospital's server (2026, ten domains), 60 from a password manager behind
Cloudflare (2023), and both visitor-days of a game in development (2026), drawn at random from the visitor-days that
were classified as people when they landed. The rows are the 156 that are still classified as people when the signals of
headers, networks and late browsers are ignored. The criteria are the same as in visitor_days.py, with two more:
requests for data by an open application count as a session, and a visitor that sends only half of the headers is a
machine.

Nearly all of the people here are the owners: about six with a current Chrome, and one with Firefox. The rules for
headers were chosen on other logs, and the rules for networks on other sites. For visitors to the password manager other
than its owners, the networks come from iporigin 1.1.2 only, since its log was no longer available when hosting.toml was
made; with networks from the downloaded list instead, the same visitor-days count as people's.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from benchmarks.viewed import rows_of
from benchmarks.visitor_days import BROWSER, Request, VisitorDay, of_cells, requests_of

FILE: Final = Path(__file__).parent / "headed_days.tsv.gz"
_FETCH: Final = {"sent": ("navigate", "document", "none"), "half": ("navigate", "", ""), "absent": ("", "", "")}
_LANGUAGE: Final = {"sent": "en", "absent": ""}


class HeadedDay(NamedTuple):
    """A visitor-day, with the headers of its requests; "-" means that only requests for files lacked the header."""

    day: VisitorDay
    serves: bool  # whether the domain serves a page to any visitor
    fetch: str  # Sec-Fetch-*: sent, half (no request had all), absent, -
    fetching: int  # other visitors on the domain who sent Sec-Fetch-*, at most 3
    language: str  # Accept-Language: sent, absent, -
    speaking: int  # other visitors who sent Accept-Language, at most 3


def headed_days(*, has_list: bool = False) -> Iterator[HeadedDay]:
    """Yield the file's rows, with networks from iporigin and hosting.toml and, with `has_list`, the downloaded list."""
    for site, about, (*cells, serves, fetch, fetching, language, speaking, user_agent) in rows_of(FILE):
        day = of_cells(site, about, (*cells, user_agent), has_list=has_list)
        yield HeadedDay(day, bool(int(serves)), fetch, int(fetching), language, int(speaking))


def lines_of(one: HeadedDay, number: int) -> Iterator[str]:
    """Yield the log lines of a visitor-day, with headers, on a separate domain. Its first request has a campaign.

    If the domain serves no page, other visitors' requests are refused (403), since they went to other domains.
    """
    for request in requests_of(one.day):
        is_own = request.visitor == 0
        asked = request if is_own or one.serves else request._replace(status=403)
        yield _line(one, number, asked, one.fetch if is_own else "-", one.language if is_own else "-")
    if one.serves:
        program = Request(4000, "/page/of-program", 200, "curl/8.5.0")
        yield _line(one, number, program, "sent", "sent")
    for reader in range(max(one.fetching, one.speaking)):
        request = Request(3000 + reader, "/page/of-guest", 403, BROWSER.format(133))
        sent = ("sent" if reader < limit else "-" for limit in (one.fetching, one.speaking))
        yield _line(one, number, request, *sent)


def _line(one: HeadedDay, number: int, request: Request, fetch: str, language: str) -> str:
    mode, dest, site = _FETCH.get(fetch, (None, None, None))
    return json.dumps({
        "time": request.at(one.day).isoformat(), "ip": request.address(number), "status": request.status,
        "referrer": f"https://day-{number}.example/page" if request.has_referrer else None,
        "url": f"https://day-{number}.example{request.path}", "user_agent": request.user_agent, "scheme": "https",
        "sec_fetch_mode": mode, "sec_fetch_dest": dest, "sec_fetch_site": site,
        "accept_language": _LANGUAGE.get(language),
    })  # fmt: skip
