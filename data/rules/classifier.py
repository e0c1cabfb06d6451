"""Who made a request: a person, one of four kinds of AI traffic, a search crawler or another automaton.

The order of decision, first answer wins: no user agent → agent table → known crawlers → tell-tale
strings → a method no browser opens a page with → campaign and referrer of an AI product → a person.
Client addresses (ip_verification.py) and storage are not here.
"""

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Final, NamedTuple, Self

from data.rules.bots import HUMAN_CLASSIFICATION, BotRules, RuleMatch, bot_classification, readable_user_agent
from data.rules.devices import DeviceRules
from data.rules.referrers import Campaigns, ReferrerTable, ai_referral, host_and_path, utm_values
from data.rules.tables import Probe, Referrer, load, rules_version
from data.visits import Classification

MAX_REFERRER_LENGTH: Final = 1024
BROWSING_METHODS: Final = ("GET", "POST")
_BUILD: Final = re.compile(r"((?:Chrome|CriOS|Edg|EdgA|OPR)/\d+\.0)\.\d+\.\d+(?=[ ;)]|$)")
"""The build of a browser's version, as in Chrome/145.0.3967.80: few versions come in many builds."""
_NO_MATCH = RuleMatch("no sign of automation or of an AI product", "", HUMAN_CLASSIFICATION)


class Request(NamedTuple):
    """The facts of a request that classification rests on; '' stands for what is missing."""

    user_agent: str  # as it was sent
    method: str
    referrer: str
    query: str

    @classmethod
    def from_log(cls, user_agent: str, method: str = "GET", referrer: str = "", query: str = "") -> Self:
        """A request with its user agent as a server wrote it into a log."""
        return cls(readable_user_agent(user_agent), method, referrer, query)


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
        self.probe_pattern = "(?i)" + "|".join(f"(?:{row.path})" for row in load(Probe, "probes"))
        self.referrers = ReferrerTable(load(Referrer, "referrers"))
        self._bot_rules = BotRules()
        self._campaigns = Campaigns(self.referrers)
        self._device_rules = DeviceRules()
        self._find_referrer = lru_cache(1 << 14)(self._find_referrer_uncached)
        self._classify_user_agent = lru_cache(1 << 16)(self._classify_user_agent_uncached)
        self._classify_any_build = lru_cache(1 << 14)(self._apply_rules)
        self._classify_referral = lru_cache(1 << 14)(self._classify_referral_uncached)
        self._origin = lru_cache(1 << 14)(self._origin_uncached)

    def classify(self, request: Request) -> Classification:
        """Who made the request, how sure that is and why. Raises nothing for a request that was logged."""
        return merge(self.classify_user_agent(request.user_agent), self.classify_referral(request))

    def classify_user_agent(self, user_agent: str) -> Classification:
        """What a readable user agent tells by itself: an automaton, or a person with a device."""
        return self._classify_user_agent(user_agent)

    def classify_referral(self, request: Request) -> Classification:
        """Who comes like that if the user agent is a person's, whose device is not known here."""
        return self._classify_referral(request.method, request.referrer, request.query)

    def origin(self, request: Request) -> Origin:
        """The referrer's host with its type, and the campaign's words, of one request."""
        return self._origin(request.referrer, request.query)

    def matches(self, request: Request) -> Iterator[RuleMatch]:
        """Every rule that the request meets; the first one decides what `classify` says."""
        yield from self._bot_rules.matches(request.user_agent)
        yield from self._referral_matches(request.method, request.referrer, request.query)

    def _classify_user_agent_uncached(self, user_agent: str) -> Classification:
        """What its rules tell: of people's browsers once for all builds, as no rule looks at these."""
        classification = self._classify_any_build(_BUILD.sub(r"\1.0.0", user_agent))
        return self._apply_rules(user_agent) if classification.device_type == "bot" else classification

    def _apply_rules(self, user_agent: str) -> Classification:
        match = next(self._bot_rules.matches(user_agent), None)
        if match:
            return match.classification
        return Classification(*HUMAN_CLASSIFICATION[:7], *self._device_rules.device_info(user_agent))

    def _classify_referral_uncached(self, method: str, referrer: str, query: str) -> Classification:
        return next(self._referral_matches(method, referrer, query)).classification

    def _origin_uncached(self, referrer: str, query: str) -> Origin:
        host, row = self._find_referrer(referrer[:MAX_REFERRER_LENGTH])
        referrer_type = "direct" if host is None else row.referrer_type if row else "other"
        return Origin(host, referrer_type, utm_values(query))

    def _referral_matches(self, method: str, referrer: str, query: str) -> Iterator[RuleMatch]:
        if method not in BROWSING_METHODS:
            yield RuleMatch(f"the method {method!r}, by which no browser opens a page", "", bot_classification("other"))
        yield from self._ai_referral_matches(referrer, query)
        yield _NO_MATCH

    def _ai_referral_matches(self, referrer_header: str, query: str) -> Iterator[RuleMatch]:
        """The AI product that sent a person, by campaign or referrer. Both together are surer than each."""
        campaign = self._campaigns.match(query)
        _, row = self._find_referrer(referrer_header[:MAX_REFERRER_LENGTH])
        referrer = None
        if row and row.referrer_type == "ai":
            classification = ai_referral(row.ai_source, row.confidence, "referrer")
            referrer = RuleMatch(f'referrers.toml: "{row.host}"', row.evidence, classification)
        if campaign and referrer:
            surer = campaign.classification._replace(confidence="high")
            yield campaign._replace(rule=f"{campaign.rule} and {referrer.rule}", classification=surer)
        yield from (match for match in (campaign, referrer) if match)

    def _find_referrer_uncached(self, referrer: str) -> tuple[str | None, Referrer | None]:
        address = host_and_path(referrer)
        return (address[0], self.referrers.find(*address)) if address else (None, None)


def merge(by_user_agent: Classification, by_referral: Classification) -> Classification:
    """What a user agent and the way it came tell together: an automaton by either, or who came, with the device."""
    if by_user_agent.device_type == "bot":
        return by_user_agent
    return by_referral if by_referral.device_type == "bot" else Classification(*by_referral[:7], *by_user_agent[7:])
