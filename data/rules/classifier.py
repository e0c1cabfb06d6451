"""Classifies requests: a person, one of four kinds of AI traffic, a search crawler or another bot.

The first rule that matches decides, in this order: no user agent → agent table → known crawlers → heuristics →
a user agent that no browser ever had → a method that browsers do not use to open pages → referrer spam → campaign and
referrer of an AI product → a person.
Then the path may correct the classification of people, libraries and unknown bots (paths.py).
Client addresses are evaluated in ip_verification.py, signatures in signers.py.
"""

import re
from collections.abc import Collection, Iterator
from functools import lru_cache
from itertools import chain
from typing import Final, NamedTuple, Self

from data.rules.bots import HUMAN_CLASSIFICATION, BotRules, RuleMatch, bot_classification, readable_user_agent
from data.rules.devices import DeviceRules
from data.rules.lake_tables import SHIPPED, LakeTables, rules_version
from data.rules.paths import PathRules, classify_path
from data.rules.referrers import (
    INTERNAL,
    Campaigns,
    ReferrerTable,
    ai_referral,
    host_and_path,
    is_internal,
    utm_values,
)
from data.rules.releases import BrowserReleases
from data.rules.signers import Signers
from data.rules.tables import Referrer, Spammer, load
from data.text import ShortTextCache
from data.visits import Classification

MAX_REFERRER_LENGTH: Final = 1024
BROWSING_METHODS: Final = ("GET", "POST")
_BUILD: Final = re.compile(r"((?:Chrome|CriOS|Edg|EdgA|OPR)/\d+\.0)\.\d+\.\d+(?=[ ;)]|$)")
"""A browser's version with its build, such as Chrome/145.0.3967.80. There are few versions, but many builds."""
_NO_MATCH = RuleMatch("no sign of automation or of an AI product", "", HUMAN_CLASSIFICATION)


class Request(NamedTuple):
    """The parts of a request that determine its classification; missing parts are ''."""

    user_agent: str  # unescaped, from readable_user_agent
    method: str
    referrer: str
    query: str
    path: str = ""

    @classmethod
    def from_log(
        cls, user_agent: str, method: str = "GET", referrer: str = "", query: str = "", path: str = ""
    ) -> Self:
        """Return a request with the user agent as a server logged it."""
        return cls(readable_user_agent(user_agent), method, referrer, query, path)

    @classmethod
    def from_url(cls, user_agent: str, referrer: str, url: str) -> Self:
        """Return a GET request for a URL, or for a path with its query."""
        address, _, query = url.partition("#")[0].partition("?")
        path = address if address.startswith("/") else f"/{address.partition('://')[2].partition('/')[2]}"
        return cls.from_log(user_agent, "GET", referrer, query, path)


class Origin(NamedTuple):
    """The source of a request: the referrer's host and type, and the utm_ parameters."""

    referrer: str | None
    referrer_type: str
    utm: tuple[str | None, ...]  # in the order of UTM_FIELDS

    def for_domain(self, domain: str | None, link_domains: Collection[str]) -> "Origin":
        """Return the origin of a request to a domain, with the type INTERNAL if the referrer is this domain or one of
        the links' domains.
        """
        is_own = is_internal(self.referrer, domain, link_domains)
        return self._replace(referrer_type=INTERNAL) if is_own else self


class Classifier:
    """The rules, loaded once, with the tables of a lake. Results are cached, because logs repeat the same strings."""

    def __init__(self, tables: LakeTables = SHIPPED) -> None:
        self.rules_version = rules_version(tables)
        self.paths = PathRules()
        self.signers = Signers(tables)
        self.referrers = ReferrerTable(tables.referrers(), load(Spammer, "spammers"))
        self._bot_rules = BotRules(tables)
        self._campaigns = Campaigns(self.referrers)
        self._device_rules = DeviceRules()
        self._releases = BrowserReleases()
        self._find_referrer = ShortTextCache(1 << 14, self._find_referrer_uncached)
        self.classify_user_agent = ShortTextCache(1 << 14, self._classify_user_agent)
        """Classifies by the (unescaped) user agent alone: a bot, or a person with a device."""
        self._classify_any_build = ShortTextCache(1 << 14, self._apply_rules)
        self._classify_referral = ShortTextCache(
            1 << 14, lambda *sent: next(self._referral_matches(*sent)).classification
        )
        self._origin = ShortTextCache(1 << 14, self._origin_uncached)

    def classify(self, request: Request) -> Classification:
        """Classify a request, assuming that its path is not a link. Never raises for a request from a log."""
        path_kind = self.paths.kind(request.path) if request.path else ""
        return combine(self.classify_user_agent(request.user_agent), self.classify_referral(request), path_kind)

    def classify_referral(self, request: Request) -> Classification:
        """Classify by method, referrer and query alone, as if a person with an unknown device had sent the request."""
        return self._classify_referral(request.method, request.referrer, request.query)

    def origin(self, request: Request) -> Origin:
        """Return the referrer's host and type, and the utm_ parameters, of a request."""
        return self._origin(request.referrer, request.query)

    def matches(self, request: Request) -> Iterator[RuleMatch]:
        """Yield every rule that the request matches.

        `classify` returns the classification of the first match, with the device added for a person.
        """
        by_path: RuleMatch | None = None
        for match in chain(
            self._user_agent_matches(request.user_agent),
            self._referral_matches(request.method, request.referrer, request.query),
        ):
            if by_path is None and request.path:
                by_path = next(self.paths.matches(request.path, match.classification), None)
                if by_path:
                    yield by_path
            yield match

    def _classify_user_agent(self, user_agent: str) -> Classification:
        """Apply the rules. People's browsers are cached without their builds, which only BrowserReleases checks."""
        any_build = _BUILD.sub(lambda match: f"{match[1]}.0.0", user_agent)  # a template would take twice as long
        classification = self._classify_any_build(any_build)
        is_own = classification.device_type != "bot" and not any(self._releases.matches(user_agent))
        return classification if is_own or any_build == user_agent else self._apply_rules(user_agent)

    def _apply_rules(self, user_agent: str) -> Classification:
        match = next(self._user_agent_matches(user_agent), None)
        if match:
            return match.classification
        return Classification(*HUMAN_CLASSIFICATION[:7], *self._device_rules.device_info(user_agent))

    def _user_agent_matches(self, user_agent: str) -> Iterator[RuleMatch]:
        yield from self._bot_rules.matches(user_agent)
        yield from self._releases.matches(user_agent)

    def _origin_uncached(self, referrer: str, query: str) -> Origin:
        host, row = self._find_referrer(referrer[:MAX_REFERRER_LENGTH])
        referrer_type = "direct" if host is None else row.referrer_type if row else "other"
        return Origin(host, referrer_type, utm_values(query))

    def _referral_matches(self, method: str, referrer: str, query: str) -> Iterator[RuleMatch]:
        if method not in BROWSING_METHODS:
            yield RuleMatch(
                f"the method {method!r}, which browsers do not use to open pages", "", bot_classification("other")
            )
        host, row = self._find_referrer(referrer[:MAX_REFERRER_LENGTH])
        spammer = self.referrers.spammer(host) if host else None
        if spammer:
            spam = bot_classification("other", method="referrer")
            yield RuleMatch(f'spammers.toml: "{spammer.host}"', spammer.evidence, spam)
        campaign, sender = self._campaigns.match(query), None
        if row and row.referrer_type == "ai":
            classification = ai_referral(row.ai_source, row.confidence, "referrer")
            sender = RuleMatch(f'referrers.toml: "{row.host}"', row.evidence, classification)
        if campaign and sender:
            classification = campaign.classification._replace(confidence="high")
            yield campaign._replace(rule=f"{campaign.rule} and {sender.rule}", classification=classification)
        yield from (match for match in (campaign, sender) if match)
        yield _NO_MATCH

    def _find_referrer_uncached(self, referrer: str) -> tuple[str | None, Referrer | None]:
        address = host_and_path(referrer)
        return (address[0], self.referrers.find(*address)) if address else (None, None)


@lru_cache(1)
def shared_classifier(tables: LakeTables) -> Classifier:
    """Return the classifier with these tables. The process keeps the latest classifier, so that all callers share its
    cache of results.
    """
    return Classifier(tables)


def combine(by_user_agent: Classification, by_referral: Classification, path_kind: str) -> Classification:
    """Combine the classifications of a request's parts.

    The result is a bot if either part is a bot, otherwise the referral with the user agent's device, unless the path
    is more specific.
    """
    if by_user_agent.device_type == "bot":
        classification = by_user_agent
    elif by_referral.device_type == "bot":
        classification = by_referral
    else:
        classification = Classification(*by_referral[:7], *by_user_agent[7:])
    return classify_path(classification, path_kind)
