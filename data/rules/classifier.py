"""Who made a request: a person, one of four kinds of AI traffic, a search crawler or another automaton.

The order of decision, first answer wins: no user agent → agent table → known crawlers → tell-tale
strings → a method no browser opens a page with → campaign and referrer of an AI product → a person.
Client addresses (ip_verification.py) and storage are not here.
"""

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Final, NamedTuple, Self

from data.rules.bots import Automata, readable_user_agent
from data.rules.devices import People
from data.rules.referrers import Campaigns, Places, campaign_of, host_and_path
from data.rules.signs import PERSON, Sign, automated, referred
from data.rules.tables import Probe, Referrer, load, rules_version
from data.visits import Classification

LONGEST_REFERRER: Final = 1024
BROWSING_METHODS: Final = ("GET", "POST")
_BUILD: Final = re.compile(r"((?:Chrome|CriOS|Edg|EdgA|OPR)/\d+\.0)\.\d+\.\d+(?=[ ;)]|$)")
"""The build of a browser's version, as in Chrome/145.0.3967.80: few versions come in many builds."""
_NO_SIGN = Sign("no sign of automation or of an AI product", "", PERSON)


class Request(NamedTuple):
    """The facts of a request that classification rests on; '' stands for what is missing."""

    user_agent: str  # as it was sent
    method: str
    referrer: str
    query: str

    @classmethod
    def logged(cls, user_agent: str, method: str = "GET", referrer: str = "", query: str = "") -> Self:
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
        self.places = Places(load(Referrer, "referrers"))
        self._automata = Automata()
        self._campaigns = Campaigns(self.places)
        self._people = People()
        self._place = lru_cache(1 << 14)(self._place_uncached)
        self._agent = lru_cache(1 << 16)(self._agent_uncached)
        self._alike = lru_cache(1 << 14)(self._told)
        self._arrival = lru_cache(1 << 14)(self._arrival_uncached)
        self._origin = lru_cache(1 << 14)(self._origin_uncached)

    def classify(self, request: Request) -> Classification:
        """Who made the request, how sure that is and why. Raises nothing for a request that was logged."""
        return merge(self.classify_user_agent(request.user_agent), self.classify_referral(request))

    def classify_user_agent(self, user_agent: str) -> Classification:
        """What a readable user agent tells by itself: an automaton, or a person with a device."""
        return self._agent(user_agent)

    def classify_referral(self, request: Request) -> Classification:
        """Who comes like that if the user agent is a person's, whose device is not known here."""
        return self._arrival(request.method, request.referrer, request.query)

    def origin(self, request: Request) -> Origin:
        """The referrer's host with its type, and the campaign's words, of one request."""
        return self._origin(request.referrer, request.query)

    def signs(self, request: Request) -> Iterator[Sign]:
        """Every rule that the request meets; the first one decides what `classify` says."""
        yield from self._automata.signs(request.user_agent)
        yield from self._signs_of_people(request.method, request.referrer, request.query)

    def _agent_uncached(self, user_agent: str) -> Classification:
        """What its rules tell: of people's browsers once for all builds, as no rule looks at these."""
        says = self._alike(_BUILD.sub(r"\1.0.0", user_agent))
        return self._told(user_agent) if says.device_type == "bot" else says

    def _told(self, user_agent: str) -> Classification:
        sign = next(self._automata.signs(user_agent), None)
        return sign.says if sign else Classification(*PERSON[:7], *self._people.person(user_agent))

    def _arrival_uncached(self, method: str, referrer: str, query: str) -> Classification:
        return next(self._signs_of_people(method, referrer, query)).says

    def _origin_uncached(self, referrer: str, query: str) -> Origin:
        host, row = self._place(referrer[:LONGEST_REFERRER])
        referrer_type = "direct" if host is None else row.referrer_type if row else "other"
        return Origin(host, referrer_type, campaign_of(query))

    def _signs_of_people(self, method: str, referrer: str, query: str) -> Iterator[Sign]:
        if method not in BROWSING_METHODS:
            yield Sign(f"the method {method!r}, by which no browser opens a page", "", automated("other"))
        yield from self._signs_of_referral(referrer, query)
        yield _NO_SIGN

    def _signs_of_referral(self, from_address: str, query: str) -> Iterator[Sign]:
        """The AI product that sent a person, by campaign or referrer. Both together are surer than each."""
        campaign = self._campaigns.sign(query)
        _, row = self._place(from_address[:LONGEST_REFERRER])
        referrer = None
        if row and row.referrer_type == "ai":
            says = referred(row.ai_source, row.confidence, "referrer")
            referrer = Sign(f'referrers.toml: "{row.host}"', row.evidence, says)
        if campaign and referrer:
            yield campaign._replace(
                rule=f"{campaign.rule} and {referrer.rule}", says=campaign.says._replace(confidence="high")
            )
        yield from (sign for sign in (campaign, referrer) if sign)

    def _place_uncached(self, referrer: str) -> tuple[str | None, Referrer | None]:
        address = host_and_path(referrer)
        return (address[0], self.places.find(*address)) if address else (None, None)


def merge(agent: Classification, arrived: Classification) -> Classification:
    """What a user agent and the way it came tell together: an automaton by either, or who came, with the device."""
    if agent.device_type == "bot":
        return agent
    return arrived if arrived.device_type == "bot" else Classification(*arrived[:7], *agent[7:])
