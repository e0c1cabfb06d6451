"""Which automata a user agent shows: agents of our table, crawlers of a public list, tell-tale strings.

What else a request may show (its method, referrer and campaign) is in classify.py.
"""

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Final
from urllib.parse import unquote

import crawleruseragents
import re2

from data.reference import Agent, Heuristic, NotCrawler, load
from data.signs import Sign, automated

LONGEST_USER_AGENT: Final = 1024
_CRAWLER_LIST: Final = "https://github.com/monperrus/crawler-user-agents"
_KIND_OF_TAG: Final = {
    "search-engine": "search",
    "seo": "seo",
    "monitoring": "monitor",
    "social-preview": "preview",
    "feed-reader": "feed",
    "http-library": "library",
    "scanner": "scanner",
}
_ESCAPE = re.compile(r'((?:\\x[0-9a-fA-F]{2})+)|\\(["\\])')
_BROWSERS: Final = re2.compile(
    r"(?i)^(mozilla/|opera|dalvik/|ucweb|nokia|blackberry|samsung|sonyericsson|mot-|lg[-/]"
    r"|lynx/|links |links/|w3m/|elinks|netsurf)"
)
"""How the user agents of browsers begin."""
_NAMELESS = Sign("no user agent", "", automated("other"))


class Automata:
    """The rules about user agents, compiled once."""

    def __init__(self) -> None:
        self._agents = load(Agent, "agents")
        self._agent_set = _pattern_set(_agent_pattern(row) for row in self._agents)
        people = {row.pattern for row in load(NotCrawler, "notcrawlers")}
        self._crawlers = [row for row in crawleruseragents.CRAWLER_USER_AGENTS_DATA if row["pattern"] not in people]
        self._crawler_set = _pattern_set(row["pattern"] for row in self._crawlers)
        self._heuristics = load(Heuristic, "heuristics")
        self._heuristic_set = _pattern_set(row.pattern for row in self._heuristics)

    def signs(self, user_agent: str) -> Iterator[Sign]:
        """Every rule that a readable user agent meets, the one that decides first."""
        if not user_agent:
            yield _NAMELESS
        lower = user_agent.lower()
        for number in sorted(self._agent_set.Match(lower) or ()):
            yield _agent_sign(self._agents[number])
        for number in sorted(self._crawler_set.Match(user_agent) or ()):
            yield _crawler_sign(self._crawlers[number], user_agent)
        for number in sorted(self._heuristic_set.Match(lower) or ()):
            yield _heuristic_sign(self._heuristics[number], user_agent)
        if not _BROWSERS.search(user_agent):
            yield Sign("does not begin as browsers do", "", automated("other", _first_product(user_agent)))


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


def _agent_sign(row: Agent) -> Sign:
    rule = f'agents.toml: {"exactly " if row.exact else ""}"{row.token}"'
    says = automated(
        row.agent_kind,
        row.agent,
        row.confidence,
        method="user_agent",
        operator=row.operator,
        ai_source=row.ai_source,
    )
    return Sign(rule, row.evidence, says)


def _crawler_sign(row: dict[str, str], user_agent: str) -> Sign:
    kind = next((_KIND_OF_TAG[tag] for tag in row["tags"] if tag in _KIND_OF_TAG), "other")
    agent = re2.search(row["pattern"], user_agent).group(0).strip(" /(;")
    rule = f'crawler-user-agents: "{row["pattern"]}"'
    return Sign(rule, row.get("url") or _CRAWLER_LIST, automated(kind, agent, "medium", method="user_agent"))


def _heuristic_sign(row: Heuristic, user_agent: str) -> Sign:
    return Sign(f"heuristics.toml: {row.name}", row.evidence, automated(row.agent_kind, _first_product(user_agent)))


def _first_product(user_agent: str) -> str | None:
    found = re.match(r"[\w.+-]{2,40}", user_agent)
    return found[0] if found and not found[0].lower().startswith("mozilla") else None


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


def _bytes_as_text(escapes: str) -> str:
    return bytes.fromhex(escapes.replace("\\x", "")).decode("utf-8", "replace")
