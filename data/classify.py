"""Who made a request: a person, one of four kinds of AI traffic, a search crawler or another automaton.

The order of decision, first answer wins: no user agent → agent table → known crawlers → tell-tale
strings → a method no browser opens a page with → campaign and referrer of an AI product → a person.
Addresses and storage are not here.
"""

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Final, NamedTuple
from urllib.parse import parse_qsl, unquote

import crawleruseragents
import re2
from ua_parser import Domain, RegexResolver
from ua_parser.loaders import load_lazy_builtins

from data.reference import Agent, Campaign, Probe, Referrer, load, rules_version
from data.referrers import Places, host_and_path
from data.visits import CATEGORY_OF_KIND, Classification

LONGEST_USER_AGENT: Final = 1024
LONGEST_UTM: Final = 256
UTM_FIELDS: Final = ("utm_source", "utm_medium", "utm_campaign", "utm_term", "utm_content")
BROWSING_METHODS: Final = ("GET", "POST")

_KIND_OF_TAG: Final = {
    "search-engine": "search",
    "seo": "seo",
    "monitoring": "monitor",
    "social-preview": "preview",
    "feed-reader": "feed",
    "http-library": "library",
    "scanner": "scanner",
}
_PEOPLE_CALLED_CRAWLERS: Final = {
    r"AP3A\.240617\.008", "Sonic", "Butterfly", "Fever", "Viber", "Sogou", "MetaIAB", "Fluid", "TSM-turingos",
    r"Code\/1\.",
}  # fmt: skip
"""Patterns of crawler-user-agents that match people's devices, apps and browsers."""

_TELLTALES: Final = (
    r"https?://|www\.|@[a-z0-9-]+\.[a-z]{2,}",
    r"(^|[^a-z])(bot|crawler|spider|scraper|fetcher|archiver|validator|checker|monitor)([/;),@]|$)",
    r"[a-z](crawler|spider|scraper|fetcher)([^a-z]|$)",
    r"compatible; ?[^;)]*bot([^a-z]|$)",
    r"(headless|phantomjs|selenium|puppeteer|playwright|webdriver)",
    r"^(mozilla/\d\.\d)?\s*(\(\s*\))?$",
)
_BROWSER_PREFIXES: Final = re.compile(
    r"mozilla/|opera|dalvik/|ucweb|nokia|blackberry|samsung|sonyericsson|mot-|lg[-/]"
    r"|lynx/|links |links/|w3m/|elinks|netsurf",
    re.IGNORECASE,
)
_ESCAPE = re.compile(r'((?:\\x[0-9a-fA-F]{2})+)|\\(["\\])')
_TABLET = re2.compile(r"ipad|tablet|kindle|playbook|silk/")
_SCREEN = re2.compile(
    r"smart-?tv|google ?tv|apple ?tv|hbbtv|bravia|crkey|\baft[a-z]|web0s|webos\.tv|netcast|viera"
    r"|roku|playstation|xbox|nintendo|\btv\b"
)
_PHONE = re2.compile(r"android|iphone|ipod|mobile|phone|blackberry|symbian|opera mini|midp|kaios|nokia|windows ce")


class Request(NamedTuple):
    """The facts of a request that classification rests on; '' stands for what is missing."""

    user_agent: str
    method: str
    referrer: str
    query: str


class Origin(NamedTuple):
    """Where a request came from: the referrer's host and type, and the campaign's words."""

    referrer: str | None
    referrer_type: str
    utm: tuple[str | None, ...]  # in the order of UTM_FIELDS


class Classifier:
    """The rules, loaded once. The answers for distinct strings are remembered, as logs repeat them.

    `probe_pattern` is a regular expression (RE2) for the paths that only those ask for who look for weaknesses.
    """

    def __init__(self) -> None:
        self.rules_version = rules_version()
        self._agents = load(Agent, "agents")
        self._agent_set = _pattern_set(_agent_pattern(row) for row in self._agents)
        self._crawlers = [
            row for row in crawleruseragents.CRAWLER_USER_AGENTS_DATA if row["pattern"] not in _PEOPLE_CALLED_CRAWLERS
        ]
        self._crawler_set = _pattern_set(row["pattern"] for row in self._crawlers)
        self._telltales = _pattern_set(_TELLTALES)
        self._places = Places(load(Referrer, "referrers"))
        self._campaigns = {row.utm_source: row for row in load(Campaign, "campaigns")}
        if RegexResolver is None:  # ua-parser would fall back to pure Python, 25 times slower, without a word
            raise RuntimeError("the package ua-parser-rs is missing; install ua-parser with its extra 'regex'.")
        self._parse = RegexResolver(load_lazy_builtins())
        self.probe_pattern = "(?i)" + "|".join(f"(?:{row.path})" for row in load(Probe, "probes"))
        self._automaton = lru_cache(1 << 16)(self._automaton_uncached)
        self._person = lru_cache(1 << 16)(self._person_uncached)
        self._place = lru_cache(1 << 14)(self._place_uncached)

    def classify(self, request: Request) -> Classification:
        """Who made the request, how sure that is and why. Never raises, whatever the strings hold."""
        user_agent = readable_user_agent(request.user_agent)
        automaton = self._automaton(user_agent)
        if automaton is not None:
            return automaton
        if request.method not in BROWSING_METHODS:
            return _automated("other")
        device_type, operating_system, browser = self._person(user_agent)
        ai_source, confidence, method = self._ai_referral(request)
        if ai_source is None:
            return Classification("human", None, None, None, None, None, None, device_type, operating_system, browser)
        return Classification(
            "ai_referral", "referral", ai_source, None, None, confidence, method, device_type, operating_system, browser
        )

    def origin(self, request: Request) -> Origin:
        """The referrer's host with its type, and the campaign's words, of one request."""
        place = self._place(request.referrer)
        host, row = place or (None, None)
        referrer_type = "direct" if host is None else row.referrer_type if row else "other"
        return Origin(host, referrer_type, campaign_of(request.query))

    def _automaton_uncached(self, user_agent: str) -> Classification | None:
        if not user_agent:
            return _automated("other")
        matches = self._agent_set.Match(user_agent.lower())
        if matches:
            row = self._agents[min(matches)]
            return _automated(
                row.agent_kind,
                row.agent,
                row.confidence,
                method="user_agent",
                operator=row.operator,
                ai_source=row.ai_source,
            )
        matches = self._crawler_set.Match(user_agent)
        if matches:
            crawler = self._crawlers[min(matches)]
            kind = next((_KIND_OF_TAG[tag] for tag in crawler["tags"] if tag in _KIND_OF_TAG), "other")
            agent = re2.search(crawler["pattern"], user_agent).group(0).strip(" /(;")
            return _automated(kind, agent, "medium", method="user_agent")
        if self._telltales.Match(user_agent.lower()) or not _BROWSER_PREFIXES.match(user_agent):
            return _automated("other", _first_product(user_agent))
        return None

    def _person_uncached(self, user_agent: str) -> tuple[str, str | None, str | None]:
        parsed = self._parse(user_agent, Domain.USER_AGENT | Domain.OS)
        return (
            device_type_of(user_agent),
            parsed.os.family if parsed.os else None,
            parsed.user_agent.family if parsed.user_agent else None,
        )

    def _place_uncached(self, referrer: str) -> tuple[str, Referrer | None] | None:
        address = host_and_path(referrer)
        return (address[0], self._places.find(*address)) if address else None

    def _ai_referral(self, request: Request) -> tuple[str | None, str | None, str | None]:
        """The AI product that sent a person, how sure that is and by which sign."""
        campaign = self._campaign(campaign_of(request.query)[0])
        place = self._place(request.referrer)
        row = place[1] if place and place[1] and place[1].referrer_type == "ai" else None
        if campaign and row:
            return campaign.ai_source, "high", "utm"
        if campaign:
            return campaign.ai_source, campaign.confidence, "utm"
        if row:
            return row.ai_source, row.confidence, "referrer"
        return None, None, None

    def _campaign(self, utm_source: str | None) -> Campaign | Referrer | None:
        if utm_source is None:
            return None
        source = utm_source.strip().lower().removeprefix("www.")
        if source in self._campaigns:
            return self._campaigns[source]
        place = self._place(source) if "." in source else None
        return place[1] if place and place[1] and place[1].referrer_type == "ai" else None


@lru_cache(1 << 16)
def readable_user_agent(logged: str) -> str:
    """A user agent as it was sent: escapes of servers undone, at most 1,024 characters, '' for none."""
    text = logged[: 4 * LONGEST_USER_AGENT]
    if "\\" in text:
        text = _ESCAPE.sub(lambda found: _bytes_as_text(found[1]) if found[1] else found[2], text)
    if " " not in text and "%20" in text:
        text = unquote(text, errors="replace")
    if not text.isascii():
        text = text.encode("utf-8", "replace").decode()  # lone surrogates are no text
    text = text[:LONGEST_USER_AGENT].strip(" \t\"'")
    return "" if text == "-" else text


def _bytes_as_text(escapes: str) -> str:
    return bytes.fromhex(escapes.replace("\\x", "")).decode("utf-8", "replace")


@lru_cache(1 << 14)
def campaign_of(query: str) -> tuple[str | None, ...]:
    """The values of utm_source, utm_medium, utm_campaign, utm_term and utm_content in a query string."""
    if "utm_" not in query:
        return (None,) * len(UTM_FIELDS)
    values = dict(reversed(parse_qsl(query[:8192], errors="replace", max_num_fields=None)))  # the first of each wins
    return tuple(values[name].strip()[:LONGEST_UTM] or None if name in values else None for name in UTM_FIELDS)


def device_type_of(user_agent: str) -> str:
    """desktop, mobile or tablet, for a person's user agent. Televisions and consoles are desktops."""
    text = user_agent.lower().replace("tablet pc", "")  # a Windows laptop with a pen
    if _SCREEN.search(text):
        return "desktop"
    if _TABLET.search(text) or ("android" in text and "mobile" not in text):
        return "tablet"
    return "mobile" if _PHONE.search(text) else "desktop"


def _automated(
    kind: str,
    agent: str | None = None,
    confidence: str = "low",
    *,
    method: str = "heuristic",
    operator: str | None = None,
    ai_source: str | None = None,
) -> Classification:
    return Classification(
        CATEGORY_OF_KIND[kind], kind, ai_source, agent, operator, confidence, method, "bot", None, None
    )


def _agent_pattern(row: Agent) -> str:
    token = re2.escape(row.token.lower())
    if row.exact:
        return f"^{token}$"
    return f"(?:^|[^a-z0-9]){token}" + ("" if row.token[-1] in "/ (" else "(?:[^a-z0-9-]|$)")


def _pattern_set(patterns: Iterable[str]) -> "re2.Set":
    options = re2.Options()
    options.log_errors = False
    options.max_mem = 64 << 20
    found = re2.Set.SearchSet(options)
    for pattern in patterns:
        found.Add(pattern)
    found.Compile()
    return found


def _first_product(user_agent: str) -> str | None:
    found = re.match(r"[\w.+-]{2,40}", user_agent)
    return found[0] if found and not found[0].lower().startswith("mozilla") else None
