"""Generates the requests of planted people and machines to a short-link service on one day, since no public logs of
short links exist.

people.py writes each fleet's name to utm_campaign. Everything is drawn from a seed.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from random import Random
from typing import Final

DAY: Final = date(2026, 3, 4)
LINKS: Final = [f"link-{number}" for number in range(300)]
MESSAGE: Final = LINKS[100:105]
"""The links of a message with many recipients."""
_DEAD: Final = ["printed-1", "printed-2"]
_WINDOWS: Final = "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) {} Safari/537.36"
_NEW: Final = _WINDOWS.format("Chrome/145.0.0.0")
_STALE: Final = _WINDOWS.format("Chrome/128.0.0.0")
_OLD: Final = _WINDOWS.format("Chrome/79.0.3945.88")
_PHONES: Final = [
    (
        "Mozilla/5.0 (iPhone; CPU iPhone OS 18_6 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) "
        "Version/26.3 Mobile/15E148 Safari/604.1"
    ),
    (
        "Mozilla/5.0 (iPhone; CPU iPhone OS 15_8_4 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) "
        "Version/15.6.8 Mobile/15E148 Safari/604.1"
    ),
    "Mozilla/5.0 (Linux; Android 10; K) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/145.0.0.0 Mobile Safari/537.36",
    "Mozilla/5.0 (Linux; Android 10; K) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/117.0.0.0 Mobile Safari/537.36",
    (
        "Mozilla/5.0 (Linux; Android 14; SM-A546B; wv) AppleWebKit/537.36 (KHTML, like Gecko) Version/4.0 "
        "Chrome/144.0.7559.109 Mobile Safari/537.36 Instagram 415.0.0.36.76 Android"
    ),
    (
        "Mozilla/5.0 (Linux; Android 12; SAMSUNG SM-G973F) AppleWebKit/537.36 (KHTML, like Gecko) SamsungBrowser/23.0 "
        "Chrome/115.0.0.0 Mobile Safari/537.36"
    ),
]
_DESKTOPS: Final = [
    _NEW,
    _WINDOWS.format("Chrome/109.0.0.0"),
    "Mozilla/5.0 (Windows NT 6.1; Win64; x64; rv:109.0) Gecko/20100101 Firefox/115.0",
    (
        "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/17.6 "
        "Safari/605.1.15"
    ),
]


Request = tuple[int, float, str, int, str]
"""The number of an address, the second of the day, a short code, the status, and the user agent."""


@dataclass(frozen=True)
class Fleet:
    """The requests of one group of people or machines."""

    name: str
    is_person: bool
    requests: tuple[Request, ...]


def fleets(seed: int = 1) -> Iterator[Fleet]:
    """Yield all fleets, people first."""
    random = Random(seed)
    yield from _people(random)
    yield from _machines(random)


def _follow(random: Random, address: int, second: float, user_agent: str, code: str = "") -> Request:
    code = code or random.choice(LINKS)
    return address, second, code, 302 if code in LINKS else 404, user_agent


def _reads(random: Random, address: int, user_agent: str) -> Iterator[Request]:
    """Yield a reader's requests, one after another, for one to three of the five links in a message sent at 09:00."""
    second = 9 * 3600 + random.uniform(0, 1200) + random.expovariate(1 / 5400)
    for code in random.sample(MESSAGE, random.choices([1, 2, 3], [70, 20, 10])[0]):
        yield _follow(random, address, second, user_agent, code)
        second += max(1.5, random.lognormvariate(3, 1))


def _open(random: Random, address: int, message: int, code: str) -> Request:
    """Return a request for a link in a message, within five seconds of the message's arrival. From 09:00, a message
    arrives every two seconds.
    """
    return _follow(random, address, 9 * 3600 + 2 * message + random.uniform(0, 5), _NEW, code)


def _people(random: Random) -> Iterator[Fleet]:
    morning = 9 * 3600
    yield Fleet("a campaign by mail, 2,000 people", True, tuple(
        _follow(random, number, morning + random.expovariate(1 / 5400), random.choice(_PHONES + _DESKTOPS), LINKS[0])
        for number in range(2000)
    ))  # fmt: skip
    yield Fleet("2,000 people of a mobile carrier behind one address", True, tuple(
        request for _ in range(2000) for request in _reads(random, 2500, random.choice(_PHONES))
    ))  # fmt: skip
    yield Fleet("300 people behind 200 addresses of a private relay", True, tuple(
        request for _ in range(300) for request in _reads(random, 2600 + random.randrange(200), _PHONES[0])
    ))  # fmt: skip
    yield Fleet("an office behind one address, 60 people with one browser", True, tuple(
        _follow(random, 3000, morning + random.uniform(0, 8 * 3600), _NEW) for _ in range(240)
    ))  # fmt: skip
    yield Fleet("a class behind one address, each of 30 opens the same 40 links in a lesson", True, tuple(
        _follow(random, 3001, morning + random.uniform(0, 2700), _NEW, code) for code in LINKS[:40] for _ in range(30)
    ))  # fmt: skip
    yield Fleet("a reader who opens 40 links of a list in ten minutes", True, tuple(
        _follow(random, 3002, morning + 15 * number, _NEW, code) for number, code in enumerate(LINKS[40:80])
    ))  # fmt: skip
    yield Fleet("people who type a code wrong, once or twice", True, tuple(
        _follow(random, 3100 + person, morning + 600 * person / 50 + step, random.choice(_PHONES), code)
        for person in range(50)
        for step, code in ((0, f"lnik-{person}"), (20, f"link{person}"), (40, LINKS[person]))
    ))  # fmt: skip
    yield Fleet("people who scan a printed code that is dead, again and again", True, tuple(
        _follow(random, 3200 + person, morning + 60 * person + step, random.choice(_PHONES), code)
        for person in range(40) for code in _DEAD for step in (0, 5, 30)
    ))  # fmt: skip


def _machines(random: Random) -> Iterator[Fleet]:
    morning = 9 * 3600
    yield Fleet("a mail scanner that opens links before people do", False, tuple(
        _follow(random, 4000 + number % 40, morning + number / 10, _OLD, LINKS[0]) for number in range(600)
    ))  # fmt: skip
    yield Fleet("a mail gateway that opens all links of a message within five seconds", False, tuple(
        _open(random, 4050 + message % 40, message, code) for message in range(600) for code in MESSAGE
    ))  # fmt: skip
    yield Fleet("a mail gateway that opens each link from another address", False, tuple(
        _open(random, 5100 + random.randrange(400), message, code) for message in range(600) for code in MESSAGE
    ))  # fmt: skip
    yield Fleet("600 links in twenty minutes by an old browser", False, tuple(
        _follow(random, 4100, morning + 2 * number, _OLD, LINKS[number % len(LINKS)]) for number in range(600)
    ))  # fmt: skip
    yield Fleet("previews under a browser's name of the year before", False, tuple(
        _follow(random, 4200 + number, random.uniform(0, 86_400), _STALE) for number in range(200)
    ))  # fmt: skip
    yield Fleet("a link checker, a link a second", False, tuple(
        _follow(random, 4500, 7200 + number, _NEW, code) for number, code in enumerate(LINKS)
    ))  # fmt: skip
    yield Fleet("a price scraper at a person's pace", False, tuple(
        _follow(random, 4501, 600 * number, _NEW, LINKS[number]) for number in range(140)
    ))  # fmt: skip
    yield Fleet("price scrapers at a person's pace, of an old browser", False, tuple(
        _follow(random, 4510 + number % 5, 120 * number, _OLD) for number in range(700)
    ))  # fmt: skip
    yield Fleet("a guesser of codes", False, tuple(
        _follow(random, 4600, 1800 + number, _NEW, f"x{number:03}" if number % 12 else LINKS[number % 300])
        for number in range(500)
    ))  # fmt: skip
    yield Fleet("a guesser of codes from 200 addresses, three each", False, tuple(
        _follow(random, 4700 + number % 200, 3600 + 20 * number, _NEW, f"y{number:03}") for number in range(600)
    ))  # fmt: skip
    yield Fleet("a scanner with a few probes among its paths", False, tuple(
        _follow(random, 5000, 5000 + number, _NEW, ".env" if number == 7 else LINKS[number]) for number in range(25)
    ))  # fmt: skip
    yield Fleet("a monitor that follows one link every five minutes", False, tuple(
        _follow(random, 5001, 300 * number, _NEW, LINKS[5]) for number in range(288)
    ))  # fmt: skip
