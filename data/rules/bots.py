"""Recognizes bots by their user agents: our table of agents, a public list of crawlers, and heuristics.

Method, referrer and campaign are evaluated in classifier.py.
"""

import re
from collections.abc import Iterator
from functools import cache
from typing import Any, Final, NamedTuple
from urllib.parse import unquote

import crawleruseragents
import re2

from data.rules.lake_tables import SHIPPED, LakeTables
from data.rules.patterns import pattern_set
from data.rules.tables import Agent, Heuristic, NotCrawler, OwnAgent, load
from data.visits import CATEGORY_OF_KIND, Classification

MAX_USER_AGENT_LENGTH: Final = 1024
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
_SEO = re.compile(r"\bseo\b|backlink|search engine optimi|link analysis", re.IGNORECASE)
_ESCAPE = re.compile(r'((?:\\x[0-9a-fA-F]{2})+)|\\(["\\])')
_FIRST_PRODUCT = re.compile(r"(?i)(?!mozilla)[\w.+-]{2,40}")
HUMAN_CLASSIFICATION = Classification("human", None, None, None, None, None, None, "desktop", None, None)
"""A person with the default device type; operating system and browser are unknown."""


class RuleMatch(NamedTuple):
    """A rule that a request matches. If several match, the first decides."""

    rule: str  # the rule's file, and what the rule matches
    evidence: str  # URL of the rule's source; '' for a convention of this project
    classification: Classification


def bot_classification(
    kind: str,
    agent: str | None = None,
    confidence: str = "low",
    *,
    method: str = "heuristic",
    operator: str | None = None,
    ai_source: str | None = None,
) -> Classification:
    """Return the classification of a bot of this agent_kind."""
    return Classification(
        CATEGORY_OF_KIND[kind], kind, ai_source, agent, operator, confidence, method, "bot", None, None
    )


def agent_classification(row: Agent, confidence: str, method: str) -> Classification:
    """Return the classification of an agent in the table."""
    return bot_classification(
        row.agent_kind, row.agent, confidence, method=method, operator=row.operator, ai_source=row.ai_source
    )


_NO_USER_AGENT = RuleMatch("no user agent", "", bot_classification("other"))


class BotRules:
    """The rules for user agents, compiled once, including the agents in a lake's tables."""

    def __init__(self, tables: LakeTables = SHIPPED) -> None:
        self._agents = tables.agents()
        self._agent_set = pattern_set(agent_pattern(row.token, row.exact) for row in self._agents)
        tokens = "|".join(sorted(re2.escape(row.token.lower()) for row in self._agents))
        self._any_agent = pattern_set([f"(?:^|[^a-z0-9])(?:{tokens})"])
        self._our_tokens = {_literal(row.token) for row in self._agents if row.ai_source}
        excluded = {row.pattern for row in load(NotCrawler, "notcrawlers")}
        self._crawlers = [row for row in crawleruseragents.CRAWLER_USER_AGENTS_DATA if row["pattern"] not in excluded]
        self._crawler_set = pattern_set(row["pattern"] for row in self._crawlers)
        self._heuristics = load(Heuristic, "heuristics")
        self._heuristic_set = pattern_set(row.pattern for row in self._heuristics)

    def matches(self, user_agent: str) -> Iterator[RuleMatch]:
        """Yield every rule that a user agent from `readable_user_agent` matches. The first match decides."""
        if not user_agent:
            yield _NO_USER_AGENT
            return
        lower = user_agent.lower()
        if self._any_agent.Match(lower):  # a quick first check: people's user agents match none of the patterns
            for row in (self._agents[number] for number in sorted(self._agent_set.Match(lower) or ())):
                table = "own agents.toml" if isinstance(row, OwnAgent) else "agents.toml"
                rule = f'{table}: {"exactly " if row.exact else ""}"{row.token}"'
                yield RuleMatch(rule, row.evidence, agent_classification(row, row.confidence, "user_agent"))
        for number in sorted(self._crawler_set.Match(user_agent) or ()):
            crawler = self._crawlers[number]
            yield _crawler_match(crawler, user_agent, is_ours=_literal(crawler["pattern"]) in self._our_tokens)
        for heuristic in (self._heuristics[number] for number in sorted(self._heuristic_set.Match(lower) or ())):
            if heuristic.unless is None or not _compile(heuristic.unless).search(lower):
                product = _FIRST_PRODUCT.match(user_agent)
                classification = bot_classification(heuristic.agent_kind, product[0] if product else None)
                yield RuleMatch(f"heuristics.toml: {heuristic.name}", heuristic.evidence, classification)


def readable_user_agent(logged: str) -> str:
    """Return the user agent that a client sent, given its form in a log; up to 1,024 characters, '' if none."""
    text = unescaped(logged[: 4 * MAX_USER_AGENT_LENGTH])
    for _ in range(2):  # older CloudFront logs are percent-encoded twice
        if " " not in text and ("%20" in text or "%2520" in text):
            text = unquote(text, errors="replace")
    if not text.isascii():
        text = text.encode("utf-8", "replace").decode()  # replaces lone surrogates
    text = text[:MAX_USER_AGENT_LENGTH].strip(" \t\"'")
    return "" if text == "-" else text


def unescaped(logged: str) -> str:
    """Return the text that a client sent, given its form in a log that escapes quotes, backslashes and bytes."""
    if "\\" not in logged:
        return logged
    return _ESCAPE.sub(
        lambda found: found[2] or bytes.fromhex(found[1].replace("\\x", "")).decode("utf-8", "replace"), logged
    )


def _crawler_match(row: dict[str, Any], user_agent: str, is_ours: bool) -> RuleMatch:
    """Return the match for a row of the public list.

    With `is_ours`, an AI agent in our table has the row's token. If that agent does not match first, the token is only
    part of another bot's name.
    """
    kind = next((_KIND_OF_TAG[tag] for tag in row["tags"] if tag in _KIND_OF_TAG), "other")
    if kind == "seo" and not _SEO.search(f"{row['pattern']} {row.get('description', '')}"):
        kind = "other"  # the list also tags crawlers as seo for lack of a better tag
    match = _compile(row["pattern"]).search(user_agent)
    agent = match.group(0).strip(" /(;")
    if is_ours:
        start, end = match.span()
        before, after = re.search(r"[\w.-]*$", user_agent[:start]), re.match(r"[\w.-]*", user_agent[end:])
        word = f"{before[0]}{match[0]}{after[0]}"  # type: ignore[index]  # both match ""
        kind, agent = "other", word.strip(" /(;")
    rule = f'crawler-user-agents: "{row["pattern"]}"'
    url = row.get("url", "")
    evidence = url if url.startswith("http") else _CRAWLER_LIST
    return RuleMatch(rule, evidence, bot_classification(kind, agent, "medium", method="user_agent"))


@cache
def _compile(pattern: str) -> "re2._Regexp":
    return re2.compile(pattern)  # re2's own cache is limited to 128 patterns


def _literal(pattern: str) -> str:
    return pattern.replace("\\", "").strip("/ (").lower()


def agent_pattern(token: str, exact: bool = False) -> str:
    """Return a regular expression (RE2 or PCRE) that finds a token in a user agent in lower case. The token must begin
    a word and, unless it ends with `/`, a space, `(` or `-`, end it; with `exact`, it must be the whole user agent.
    """
    escaped = re2.escape(token.lower())
    if exact:
        return f"^{escaped}$"
    return f"(?:^|[^a-z0-9]){escaped}" + ("" if token[-1] in "/ (-" else "(?:[^a-z0-9-]|$)")
