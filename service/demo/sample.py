"""Generator of realistic sample traffic to short links, as log lines in the vhost-combined format.

People visit mostly by day and on weekdays, bots at any hour; a few links get most visits; AI traffic grows; now and
then a link goes viral for a day. Addresses are from ranges reserved for documentation and benchmarks (RFC 2544,
RFC 3849). Equal samples have equal lines.
"""

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from itertools import accumulate, pairwise
from pathlib import Path
from random import Random
from typing import Final

DOMAINS: Final = ("go.example.com", "link.example.org", "try.example.net")
DOMAIN_WEIGHTS: Final = (70, 22, 8)

HUMAN_HOURS: Final = (2, 1, 1, 1, 1, 2, 4, 7, 11, 14, 15, 15, 14, 15, 16, 16, 15, 14, 13, 13, 12, 10, 7, 4)
FLAT_HOURS: Final = (1,) * 24
_WEEKDAY_WEIGHTS: Final = (1.0, 1.06, 1.08, 1.04, 0.95, 0.66, 0.62)
_BURST_EVERY: Final = 11  # days
_CHROME_131: Final = (131, date(2024, 11, 12))  # https://chromiumdash.appspot.com/schedule
_RELEASE_DAYS: Final = 28
_RELEASES: Final = 18
_DAY_SECONDS: Final = 86_400

PLATFORMS: Final = (
    "Windows NT 10.0; Win64; x64", "Macintosh; Intel Mac OS X 10_15_7", "X11; Linux x86_64",
    "Linux; Android 10; K", "iPhone; CPU iPhone OS 18_6 like Mac OS X", "iPad; CPU OS 17_7 like Mac OS X",
)  # fmt: skip
PLATFORM_WEIGHTS: Final = (34, 16, 4, 24, 20, 2)

REFERRERS: Final = (
    ("-", 46), ("https://www.google.com/", 20), ("https://www.bing.com/", 3), ("https://duckduckgo.com/", 3),
    ("https://www.linkedin.com/", 6), ("https://t.co/", 5), ("https://www.reddit.com/", 4),
    ("https://news.ycombinator.com/", 3), ("https://www.facebook.com/", 3), ("https://mail.google.com/", 2),
    ("https://blog.example.com/why-short-links", 5),
)  # fmt: skip
AI_REFERRERS: Final = (
    ("https://chatgpt.com/", "utm_source=chatgpt.com", 44), ("https://chatgpt.com/", "", 18),
    ("-", "utm_source=chatgpt.com", 10), ("https://www.perplexity.ai/", "", 11), ("https://claude.ai/", "", 8),
    ("https://gemini.google.com/", "", 5), ("https://copilot.microsoft.com/", "", 4),
)  # fmt: skip
CAMPAIGNS: Final = (
    ("", 90), ("utm_source=newsletter&utm_medium=email&utm_campaign=autumn", 4),
    ("utm_source=linkedin&utm_medium=social&utm_campaign=launch", 4), ("utm_source=partner&utm_medium=referral", 2),
)  # fmt: skip
_WEBKIT: Final = "Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko"
ASSISTANTS: Final = (
    (f"{_WEBKIT}); compatible; ChatGPT-User/1.0; +https://openai.com/bot", 40),
    (f"{_WEBKIT}); compatible; OAI-SearchBot/1.3; +https://openai.com/searchbot", 18),
    (f"{_WEBKIT}; compatible; Claude-User/1.0; +Claude-User@anthropic.com)", 14),
    (f"{_WEBKIT}; compatible; PerplexityBot/1.0; +https://perplexity.ai/perplexitybot)", 14),
    (f"{_WEBKIT}; compatible; Perplexity-User/1.0; +https://perplexity.ai/perplexity-user)", 9),
    ("Mozilla/5.0 (compatible; DuckAssistBot/1.2; +http://duckduckgo.com/duckassistbot.html)", 5),
)  # fmt: skip
TRAINERS: Final = (
    (f"{_WEBKIT}; compatible; GPTBot/1.3; +https://openai.com/gptbot)", 36),
    (f"{_WEBKIT}; compatible; ClaudeBot/1.0; +claudebot@anthropic.com)", 30),
    ("meta-externalagent/1.1 (+https://developers.facebook.com/docs/sharing/webmasters/crawler)", 14),
    (
        ("Mozilla/5.0 (Linux; Android 5.0) AppleWebKit/537.36 (KHTML, like Gecko) Mobile Safari/537.36 "
        "(compatible; Bytespider; spider-feedback@bytedance.com)"), 10,
    ),
    ("CCBot/2.0 (https://commoncrawl.org/faq/)", 10),
)  # fmt: skip
CODERS: Final = (
    ("Claude-User (claude-code/2.1.260; +https://support.anthropic.com/)", 62),
    ("Mozilla/5.0 (compatible; Google-Gemini-CLI/1.0; +https://github.com/google-gemini/gemini-cli)", 22),
    ("Mozilla/5.0 (compatible; Devin/1.0; +https://devin.ai)", 16),
)  # fmt: skip
OTHERS: Final = (
    ("Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)", 26),
    ("Mozilla/5.0 (compatible; bingbot/2.0; +http://www.bing.com/bingbot.htm)", 14),
    ("Mozilla/5.0 (compatible; YandexBot/3.0; +http://yandex.com/bots)", 5),
    ("Mozilla/5.0 (compatible; AhrefsBot/7.0; +http://ahrefs.com/robot/)", 12),
    ("Mozilla/5.0 (compatible; SemrushBot/7~bl; +http://www.semrush.com/bot.html)", 9),
    ("Slackbot-LinkExpanding 1.0 (+https://api.slack.com/robots)", 8),
    ("facebookexternalhit/1.1 (+http://www.facebook.com/externalhit_uatext.php)", 8),
    ("python-requests/2.32.3", 8), ("curl/8.9.1", 5), ("Go-http-client/1.1", 5),
)  # fmt: skip
STRAYS: Final = (
    ("/", 8), ("/robots.txt", 6), ("/favicon.ico", 4), ("/wp-login.php", 3), ("/.env", 3), ("/sitemap.xml", 2),
)  # fmt: skip

MIX: Final = (("people", 62), ("referred", 3), ("assistants", 6), ("trainers", 8), ("coders", 1), ("others", 20))
GROWTH: Final = {"referred": 1.8, "assistants": 1.9, "trainers": 1.3, "coders": 2.6}
"""The growth factor of each kind of traffic from the beginning of the sample to its end."""

_BOTS: Final = {
    "assistants": (ASSISTANTS, HUMAN_HOURS),
    "trainers": (TRAINERS, FLAT_HOURS),
    "coders": (CODERS, HUMAN_HOURS),
    "others": (OTHERS, FLAT_HOURS),
}
"""The agents of each kind of bot, and the hours of their visits."""
MONTHS: Final = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


@dataclass(frozen=True)
class Sample:
    """The traffic to generate: its amount, days, links and seed. Equal samples generate the same lines."""

    visits: int
    last_day: date
    days: int = 90
    links: int = 2_000
    seed: int = 20
    last_second: int = _DAY_SECONDS  # of the last day, on which no visit is later

    def lines(self) -> Iterator[str]:
        """Yield log lines without their newlines, ordered by time."""
        for number, (day, visits) in enumerate(self.daily()):
            yield from _Day(self, number, day).lines(visits)

    def daily(self) -> list[tuple[date, int]]:
        """Return every day with its number of visits, oldest first."""
        first = self.last_day - timedelta(days=self.days - 1)
        days = [first + timedelta(days=n) for n in range(self.days)]
        weights = [_WEEKDAY_WEIGHTS[day.weekday()] * (1 + 0.3 * n / self.days) for n, day in enumerate(days)]
        weights = [weight * (1.8 if bursts(n) else 1) for n, weight in enumerate(weights)]
        weights[-1] *= self.last_second / _DAY_SECONDS
        bounds = [round(self.visits * total / sum(weights)) for total in accumulate(weights, initial=0)]
        return [(day, end - start) for day, (start, end) in zip(days, pairwise(bounds), strict=True)]

    def write(self, path: Path) -> None:
        """Write the lines as one log file."""
        with path.open("w", encoding="ascii", newline="\n") as file:
            file.writelines(f"{line}\n" for line in self.lines())

    def write_links(self, path: Path) -> None:
        """Write a CSV file of the links that the lines request, for `traffic links import`."""
        with path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(("short_code", "target_url", "created_at"))
            for number, code in enumerate(self.codes()):
                created = datetime(2025, 1, 1) + timedelta(hours=number)
                writer.writerow((code, f"https://www.example.com/articles/{code}", f"{created.isoformat()}Z"))

    def codes(self) -> list[str]:
        """Return the short codes, most visited first."""
        random = Random(f"codes {self.seed}")
        letters = "abcdefghjkmnpqrstuvwxyzABCDEFGHJKMNPQRSTUVWXYZ23456789"
        codes: dict[str, None] = {}
        while len(codes) < self.links:
            codes["".join(random.choices(letters, k=6))] = None
        return list(codes)


def link_weights(links: int) -> list[float]:
    """Return the relative frequency of each link, most visited first."""
    return [1 / (rank + 1) ** 0.9 for rank in range(links)]


def bursts(number: int) -> bool:
    """Return whether a link goes viral on the day with this number, counted from 0."""
    return number % _BURST_EVERY == _BURST_EVERY - 3


class _Day:
    """The visits of one day of a sample."""

    def __init__(self, sample: Sample, number: int, day: date) -> None:
        self._random = Random(f"{sample.seed} {number}")
        self._sample = sample
        self._number = number
        self._day = day
        self._progress = number / max(1, sample.days - 1)
        self._stamp = f"{day.day:02}/{MONTHS[day.month - 1]}/{day.year}"
        self._codes = sample.codes()
        self._seconds = sample.last_second if day == sample.last_day else _DAY_SECONDS
        self._known: dict[int, tuple[str, str]] = {}
        self._code_weights = list(accumulate(link_weights(len(self._codes))))
        self._burst = self._random.choice(self._codes) if bursts(number) else None

    def lines(self, count: int) -> Iterator[str]:
        """Yield `count` lines, ordered by time."""
        kinds = [kind for kind, _ in MIX]
        weights = [weight * (1 + (GROWTH.get(kind, 1) - 1) * self._progress) for kind, weight in MIX]
        counts = dict.fromkeys(kinds, 0)
        for kind in self._random.choices(kinds, weights, k=count):
            counts[kind] += 1
        lines = [*self._people(counts["people"]), *self._referrals(counts["referred"])]
        for kind, (agents, hours) in _BOTS.items():
            lines += self._bots(agents, counts[kind], hours)
        lines.sort()
        for second, line in lines:
            clock = f"{second // 3600:02}:{second // 60 % 60:02}:{second % 60:02}"
            yield line.replace("@", f"{self._stamp}:{clock}", 1)

    def _people(self, count: int) -> Iterator[tuple[int, str]]:
        referrers = self._draw(REFERRERS, count)
        queries = self._draw(CAMPAIGNS, count)
        first = self._number * (count // 8)  # a quarter of the people change from day to day
        people = self._random.choices(range(first, first + max(1, count // 2)), k=count)
        return self._requests(HUMAN_HOURS, map(self._person, people), referrers, queries, count)

    def _referrals(self, count: int) -> Iterator[tuple[int, str]]:
        rows = self._random.choices(AI_REFERRERS, [weight for *_, weight in AI_REFERRERS], k=count)
        people = self._random.choices(range(10**6, 10**6 + max(1, count)), k=count)
        referrers, queries = [row[0] for row in rows], [row[1] for row in rows]
        return self._requests(HUMAN_HOURS, map(self._person, people), referrers, queries, count)

    def _bots(
        self, agents: tuple[tuple[str, int], ...], count: int, hours: tuple[int, ...]
    ) -> Iterator[tuple[int, str]]:
        hosts = self._random.choices(range(64), k=count)
        names = self._draw(agents, count)
        clients = ((f"198.18.{len(name) % 256}.{host}", name) for name, host in zip(names, hosts, strict=True))
        return self._requests(hours, clients, ["-"] * count, [""] * count, count)

    def _requests(
        self,
        hours: tuple[int, ...],
        clients: Iterator[tuple[str, str]],
        referrers: list[str],
        queries: list[str],
        count: int,
    ) -> Iterator[tuple[int, str]]:
        """Yield `count` requests, each as (second of the day, log line with @ instead of its time)."""
        random = self._random
        starts = random.choices(range(0, 86_400, 3_600), hours, k=count)
        seconds = random.choices(range(3_600), k=count)
        domains = random.choices(DOMAINS, DOMAIN_WEIGHTS, k=count)
        paths = self._paths(count)
        for start, second, domain, path, (ip, agent), referrer, query in zip(
            starts, seconds, domains, paths, clients, referrers, queries, strict=True
        ):
            status = 302 if path[0] == "+" or path == "/" else 404
            target = f"/{path[1:]}?{query}" if query else f"/{path[1:]}"
            request = f'"GET {target} HTTP/1.1" {status} {150 + len(target)}'
            yield (
                (start + second) * self._seconds // _DAY_SECONDS,
                f'{domain}:443 {ip} - - [@ +0000] {request} "{referrer}" "{agent}"',
            )

    def _paths(self, count: int) -> list[str]:
        """Draw paths: short codes with a + in front and, in 3 of 100 cases, a path that is not a link."""
        codes = self._random.choices(self._codes, cum_weights=self._code_weights, k=count)
        chances = self._random.choices(range(100), k=count)
        strays = self._draw(STRAYS, count)
        burst = self._burst
        return [
            stray if chance < 3 else f"+{burst}" if burst and chance < 45 else f"+{code}"
            for code, chance, stray in zip(codes, chances, strays, strict=True)
        ]

    def _person(self, number: int) -> tuple[str, str]:
        """Return the IP address and the user agent of the person with this number."""
        if number in self._known:
            return self._known[number]
        random = Random(number * 1_000_003 + self._sample.seed)
        platform = random.choices(PLATFORMS, PLATFORM_WEIGHTS)[0]
        ip = f"198.19.{random.randrange(256)}.{random.randrange(256)}"
        if random.random() < 0.3:
            ip = f"2001:db8:{random.randrange(65_536):x}::{random.randrange(65_536):x}"
        self._known[number] = ip, browser_of(platform, random, self._day)
        return self._known[number]

    def _draw(self, table: tuple[tuple[str, int], ...], count: int) -> list[str]:
        return self._random.choices([value for value, _ in table], [weight for _, weight in table], k=count)


def browser_of(platform: str, random: Random, day: date) -> str:
    """Return the user agent of a random browser on a platform, in a version at most a year and a half old on `day`."""
    newest = _CHROME_131[0] + (day - _CHROME_131[1]).days // _RELEASE_DAYS
    major = newest - random.randrange(_RELEASES)
    if platform.startswith(("iPhone", "iPad")):
        webkit = "AppleWebKit/605.1.15 (KHTML, like Gecko)"
        version = f"{platform.partition('OS ')[2][:2]}.{major % 7}"
        return f"Mozilla/5.0 ({platform}) {webkit} Version/{version} Mobile/15E148 Safari/604.1"
    chance = random.random()
    if chance < 0.12 and "Android" not in platform:
        return f"Mozilla/5.0 ({platform}; rv:{major}.0) Gecko/20100101 Firefox/{major}.0"
    mobile = " Mobile" if "Android" in platform else ""
    edge = f" Edg/{major}.0.0.0" if chance > 0.88 else ""
    webkit = "AppleWebKit/537.36 (KHTML, like Gecko)"
    return f"Mozilla/5.0 ({platform}) {webkit} Chrome/{major}.0.0.0{mobile} Safari/537.36{edge}"
