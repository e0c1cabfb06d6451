"""Problems in the sample: requests that give every detector of jobs a finding, and requests for repaired paths.

Except for their dates and browser versions, the requests are the same whenever the demo is started. People and agents
come from a range reserved for benchmarks (RFC 2544); requests that falsely name an agent come from a deprecated public
range (RFC 7526), since addresses that are not public neither verify nor contradict an agent.
"""

from collections.abc import Sequence
from datetime import date, timedelta
from pathlib import Path
from random import Random
from typing import Final, NamedTuple

from service.demo.sample import ASSISTANTS, DOMAINS, MONTHS, PLATFORMS, TRAINERS, browser_of

IP_LIST: Final = "openai-gptbot"
IP_LIST_CONTENT: Final = b'{"prefixes": [{"ipv4Prefix": "192.88.99.64/26"}]}'
"""An IP list in the format used by GPTBot's operator, without the addresses of the sample's impostors."""

_CHATGPT_USER, _CLAUDE_USER = ASSISTANTS[0][0], ASSISTANTS[2][0]
_GPTBOT, _BYTESPIDER = TRAINERS[0][0], TRAINERS[3][0]
_GOOGLEBOT: Final = "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)"
_SCANNER: Final = "Mozilla/5.0 zgrab/0.x"
_CHATGPT: Final = "https://chatgpt.com/"
_DOCS: Final = "docs.example.com"
_HELP: Final = "help.example.com"


class Requests(NamedTuple):
    """Requests for one path, spread evenly over the days from `oldest` to `newest`."""

    times: int
    newest: int  # days before `as_of`
    oldest: int
    domain: str
    path: str
    status: int
    agent: str = ""  # "": people
    referrer: str = "-"
    network: str = "198.18.77"  # of an agent
    method: str = "GET"
    size: int = 0
    before: str = ""  # a page that each visitor requests first, with status 200


REQUESTS: Final = (
    # broken_link: it led somewhere until three weeks ago
    Requests(6, 20, 27, DOMAINS[1], "/spring-guide", 302),
    Requests(30, 1, 12, DOMAINS[1], "/spring-guide", 404, _CHATGPT_USER),
    Requests(6, 1, 12, DOMAINS[1], "/spring-guide", 404, referrer=_CHATGPT),
    # invented_link
    Requests(8, 1, 14, DOMAINS[0], "/pricing-2026", 404, referrer=_CHATGPT),
    # ai_attention_gap
    Requests(40, 1, 28, DOMAINS[0], "/setup-guide", 302, _CHATGPT_USER),
    # blocked_agent
    Requests(34, 1, 20, _DOCS, "/", 403, _CLAUDE_USER),
    Requests(6, 1, 20, _DOCS, "/start", 200, _CLAUDE_USER),
    # impersonated_agent
    Requests(60, 1, 9, DOMAINS[0], "/archive", 302, _GPTBOT, network="192.88.99"),
    # server_errors
    Requests(100, 1, 10, DOMAINS[0], "/checkout", 302),
    Requests(40, 1, 10, DOMAINS[0], "/checkout", 502),
    # search_errors
    Requests(40, 1, 10, _DOCS, "/search", 503, _GOOGLEBOT),
    # error_days
    Requests(70, 4, 4, _HELP, "/", 502),
    Requests(50, 4, 4, _HELP, "/contact", 502),
    # crawler_file
    Requests(20, 1, 14, _HELP, "/robots.txt", 404, _GOOGLEBOT),
    # dead_path: a page of the site links to it
    Requests(24, 1, 12, DOMAINS[1], "/handbook/old/", 404, referrer="https://link.example.org/"),
    # refused_people: counts only people who got another page before
    Requests(24, 1, 12, _HELP, "/account/export", 403, before="/account"),
    # exposed_path
    Requests(4, 1, 4, _DOCS, "/.env", 200, _SCANNER),
    # referral_drop
    Requests(40, 15, 28, DOMAINS[0], "/autumn-sale", 302, referrer=_CHATGPT),
    Requests(6, 1, 14, DOMAINS[0], "/autumn-sale", 302, referrer=_CHATGPT),
    # catch_all
    Requests(3, 1, 9, "static.example.com", "/.env", 200, _SCANNER, size=800),
    Requests(3, 1, 9, "static.example.com", "/.git/config", 200, _SCANNER, size=800),
    Requests(3, 1, 9, "static.example.com", "/backup.sql", 200, _SCANNER, size=800),
    # crawler_inside
    Requests(6, 1, 6, _DOCS, "/admin/users", 200, _GOOGLEBOT, size=5_200),
    Requests(6, 1, 6, _DOCS, "/admin/orders", 200, _GOOGLEBOT, size=9_100),
    # flood
    Requests(1_200, 3, 3, "static.example.com", "/", 200, _SCANNER),
    Requests(60, 1, 12, "static.example.com", "/", 200),
    # login_attack
    Requests(140, 2, 2, _HELP, "/wp-login.php", 200, _SCANNER, method="POST"),
    # training_without_return
    Requests(150, 1, 28, _DOCS, "/start", 200, _BYTESPIDER),
    Requests(120, 1, 28, _DOCS, "/start", 200),
)


class Repair(NamedTuple):
    """A problem with a path, and its repair, which was shipped `days_ago` days ago, with or without effect."""

    type: str
    domain: str
    path: str
    days_ago: int
    note: str
    target: str = ""  # of a redirect


REPAIRS: Final = (
    Repair(
        "broken_link", DOMAINS[1], "/team-page", 13, "The web server has the new links.", "https://example.org/team"
    ),
    Repair(
        "broken_link", DOMAINS[1], "/press-kit", 30, "Shipped, but the web server was never given the file.",
        "https://example.org/press",
    ),
    Repair("server_errors", DOMAINS[0], "/signup", 30, "The program behind the path has enough memory now."),
)  # fmt: skip
"""In the log, the first repair helped, the second changed nothing, and the third path's error rate fell, unlike its
control's."""
REPAIRED_REQUESTS: Final = (
    Requests(60, 13, 42, DOMAINS[1], "/team-page", 404, _CHATGPT_USER),
    Requests(24, 1, 12, DOMAINS[1], "/team-page", 302, _CHATGPT_USER),
    Requests(120, 1, 60, DOMAINS[1], "/press-kit", 404, _CLAUDE_USER),
    Requests(90, 31, 60, DOMAINS[0], "/signup", 502),
    Requests(240, 1, 60, DOMAINS[0], "/signup", 302),
    # the control, which was not repaired
    Requests(100, 11, 60, DOMAINS[0], "/checkout", 502),
    Requests(240, 11, 60, DOMAINS[0], "/checkout", 302),
)


def write_log(path: Path, requests: Sequence[Requests], as_of: date) -> None:
    """Write requests on the days before `as_of` as lines in the vhost-combined format, ordered by time."""
    lines = []
    for place, one in enumerate(requests):
        for number in range(one.times):
            day = as_of - timedelta(days=one.newest + number % (one.oldest - one.newest + 1))
            second = (number * 7_919 + place * 601) % 86_400
            clock = f"{second // 3600:02}:{second // 60 % 60:02}:{second % 60:02}"
            moment = f"{day.day:02}/{MONTHS[day.month - 1]}/{day.year}:{clock} +0000"
            random = Random(f"{place} {number}")
            agent = one.agent or browser_of(random.choice(PLATFORMS), random, day)
            address = f"{one.network}.{number % 64}" if one.agent else f"198.19.{(place * 37 + number) % 256}.{number}"
            visitor = f"{one.domain}:443 {address} - - [{moment}]"
            if one.before:
                lines.append((day, second, f'{visitor} "GET {one.before} HTTP/1.1" 200 900 "-" "{agent}"\n'))
            request = f'"{one.method} {one.path} HTTP/1.1" {one.status} {one.size} "{one.referrer}" "{agent}"'
            lines.append((day, second, f"{visitor} {request}\n"))
    path.write_text("".join(line for _, _, line in sorted(lines)), "ascii")
