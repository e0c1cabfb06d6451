"""The rules that match a request, of which the first decides, and the cost of matching."""

import functools
import itertools
import re
import statistics
import time

import crawleruseragents
import pytest
import re2
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from data.rules.bots import HUMAN_CLASSIFICATION
from data.rules.classifier import Request
from data.rules.tables import Agent, Campaign, Heuristic, NotCrawler, Referrer, load
from data.visits import REFERRER_TYPES
from tests.data.rules.test_classifier import PEOPLE as DEVICES
from tests.data.rules.test_classifier import assert_values_fit
from tests.support.tables import examples, examples_at_once
from tests.support.user_agents import CHROME_ON_WINDOWS as CHROME
from tests.support.user_agents import GPTBOT, IPHONE

AGENTS, HEURISTICS, NOT_CRAWLERS = (
    load(row, name) for row, name in ((Agent, "agents"), (Heuristic, "heuristics"), (NotCrawler, "notcrawlers"))
)
PEOPLE = {row.pattern for row in NOT_CRAWLERS}
CRAWLERS = [row for row in crawleruseragents.CRAWLER_USER_AGENTS_DATA if row["pattern"] not in PEOPLE]

AI_REFERRER, AI_QUERY = "https://chatgpt.com/", "utm_source=chatgpt.com"
REAL = sorted(
    {CHROME, IPHONE, "", *(row.example for row in (*AGENTS, *HEURISTICS))}
    | {instance for row in CRAWLERS for instance in row["instances"][:1]}
)
ORDER = (
    "no user agent",
    "agents.toml: ",
    "crawler-user-agents: ",
    "heuristics.toml: ",
    "the method ",
    ("campaigns.toml: ", "referrers.toml: "),
    "no sign of automation or of an AI product",
)
"""The beginnings of the rules of each kind, in order of precedence."""


@pytest.fixture(scope="module")
def signs(classifier):
    def signs(user_agent=CHROME, method="GET", referrer="", query=""):
        return list(classifier.matches(Request.from_log(user_agent, method, referrer, query)))

    return signs


def kind(sign):
    """Return the place of a sign's rule in ORDER."""
    (place,) = (number for number, begin in enumerate(ORDER) if sign.rule.startswith(begin))
    return place


def check(classifier, request):
    """Check that the signs of a request agree with each other and with its classification, and that the values of its
    classification and origin are consistent.
    """
    signs, told = list(classifier.matches(request)), classifier.classify(request)
    assert_values_fit(told)
    first = signs[0].classification
    assert told == (first if first.device_type == "bot" else first[:7] + DEVICES.device_info(request.user_agent))
    assert (signs[-1].classification, signs[-1].evidence) == (HUMAN_CLASSIFICATION, "")
    assert [sign for sign in signs if sign.classification.bot_category == "human"] == signs[-1:]
    assert [kind(sign) for sign in signs] == sorted(map(kind, signs))
    assert len({sign.rule for sign in signs}) == len(signs)
    ours = [sign for sign in signs if not sign.rule.startswith("crawler-user-agents")]
    assert [sign for sign in ours if sign.evidence and not re.match(r"https?://[^\s/]+\.", sign.evidence)] == []
    origin = classifier.origin(request)
    assert origin.referrer_type in REFERRER_TYPES
    assert (origin.referrer is None) == (origin.referrer_type == "direct")
    assert all(word is None or 0 < len(word) <= 256 for word in origin.utm)


# The first sign decides

KNOWN = st.sampled_from(REAL) | st.sampled_from([row.token for row in AGENTS] + ["Mozilla/5.0 ", "bot", "; ", "("])
USER_AGENTS = KNOWN | st.text(max_size=60) | st.lists(KNOWN | st.text(max_size=8), max_size=5).map(" ".join)
METHODS = st.sampled_from(["GET", "POST", "HEAD", "OPTIONS", ""]) | st.text(max_size=8)
REFERRERS = st.text(max_size=60) | st.tuples(
    st.sampled_from(["", AI_REFERRER, "https://google.com/", "https://claude.ai/chat"]), st.text(max_size=10)
).map("".join)
SOURCES = st.sampled_from(["chatgpt.com", "copilot", "www.perplexity.ai"]) | st.text(max_size=30)
QUERIES = st.text(max_size=60) | st.just("") | SOURCES.map(lambda value: f"utm_source={value}")


@given(user_agent=USER_AGENTS, method=METHODS, referrer=REFERRERS, query=QUERIES)
@settings(max_examples=250)
def test_the_first_sign_decides_and_no_sign_means_a_person(classifier, user_agent, method, referrer, query):
    check(classifier, Request.from_log(user_agent, method, referrer, query))


def test_the_first_sign_decides_for_every_known_bot(classifier):
    for user_agent in REAL:
        check(classifier, Request.from_log(user_agent))


def test_the_evidence_for_every_crawler_is_a_web_address(signs):
    found = {sign.evidence for row in CRAWLERS for instance in row["instances"][:1] for sign in signs(instance)}
    assert {evidence for evidence in found if evidence and not evidence.startswith(("https://", "http://"))} == set()


@examples_at_once("field")
def test_a_request_with_lone_surrogates_is_classified(classifier, field):
    check(classifier, Request(CHROME, "GET", "", "")._replace(**{field: "utm_source=\ud800"}))


# Every matching rule is named


def rules(found):
    return [sign.rule for sign in found]


def test_an_agent_from_a_tagged_ai_link_shows_signs_in_order(signs):
    found = signs(GPTBOT, "HEAD", AI_REFERRER, AI_QUERY)
    automata = [sign.rule for sign in found if sign.classification.device_type == "bot"]
    assert automata[:2] == ['agents.toml: "GPTBot"', 'crawler-user-agents: "GPTBot"']
    assert automata[2].startswith("heuristics.toml: ")
    assert automata[-1] == "the method 'HEAD', which browsers do not use to open pages"
    referrals = [sign for sign in found if sign.classification.bot_category == "ai_referral"]
    campaign, referrer = 'campaigns.toml: "chatgpt.com"', 'referrers.toml: "chatgpt.com"'
    assert rules(referrals) == [f"{campaign} and {referrer}", campaign, referrer]
    assert [(sign.classification.confidence, sign.classification.detection_method) for sign in referrals] == [
        ("high", "utm"),
        ("medium", "utm"),
        ("medium", "referrer"),
    ]
    assert rules(found) == [*automata, *rules(referrals), "no sign of automation or of an AI product"]


def test_a_campaign_that_names_an_ai_host_shows_the_hosts_row(signs):
    campaigns = {row.utm_source for row in load(Campaign, "campaigns")}
    ai_hosts = [row.host for row in load(Referrer, "referrers") if row.referrer_type == "ai"]
    host = next(host for host in ai_hosts if re.fullmatch(r"[a-z.-]+", host) and host not in campaigns)
    assert rules(signs(query=f"utm_source=WWW.{host}"))[0] == f'referrers.toml: "{host}" as utm_source'


def test_an_exact_token_is_shown_as_exact(signs):
    row = next(row for row in AGENTS if row.exact)
    assert f'agents.toml: exactly "{row.token}"' in rules(signs(row.token))
    assert f'agents.toml: exactly "{row.token}"' not in rules(signs(row.token + " 1"))


def bounded(row):
    """Return a regular expression for an agent's token, as described in agents.toml, for Python's own engine."""
    token = re.escape(row.token.lower())
    if row.exact:
        return f"^{token}$"
    return f"(?<![a-z0-9]){token}" + ("" if row.token.endswith(("/", " ", "(", "-")) else "(?![a-z0-9-])")


compiled = functools.cache(re.compile)  # re itself caches 512


def matches(pattern, text):
    return bool(pattern and compiled(pattern).search(text))


def rules_found(user_agent):
    """Yield the rules that match a readable user agent, found by Python's own engine directly from the tables."""
    lower = user_agent.lower()
    for row in AGENTS:
        if matches(bounded(row), lower):
            yield f'agents.toml: {"exactly " * row.exact}"{row.token}"'
    for row in CRAWLERS:
        if matches(row["pattern"], user_agent):
            yield f'crawler-user-agents: "{row["pattern"]}"'
    for row in HEURISTICS:
        if matches(row.pattern, lower) and not matches(row.unless, lower):
            yield f"heuristics.toml: {row.name}"


PLAIN = [text for text in REAL if text.isascii() and text.isprintable()]  # where both engines agree


@given(st.lists(st.sampled_from(PLAIN), min_size=1, max_size=3).map(" ".join))
@settings(max_examples=150)
def test_exactly_the_rules_found_by_another_engine_are_named(signs, user_agent):
    readable = Request.from_log(user_agent).user_agent
    assume(readable)
    named = [rule for rule in rules(signs(user_agent)) if rule.startswith(ORDER[1:4])]
    assert named == list(rules_found(readable))


# Tables used after agents and crawlers, and crawler patterns that also match people

KNOWN_BY_NAME = {"a browser without a window", "a service of Google"}
"""Rows whose example also matches a row of agents.toml, which decides; another example would test them better."""


@pytest.mark.parametrize("row", HEURISTICS, ids=[row.name for row in HEURISTICS])
def test_the_example_of_a_heuristic_is_decided_by_its_row(classifier, signs, row):
    found = signs(row.example)
    first = next(sign for sign in found if sign.rule.startswith("heuristics.toml: "))
    assert (first.rule, first.evidence) == (f"heuristics.toml: {row.name}", row.evidence)
    told = first.classification
    assert (told.agent_kind, told.confidence, told.detection_method) == (row.agent_kind, "low", "heuristic")
    if row.name not in KNOWN_BY_NAME:
        assert found[0] == first
        assert classifier.classify(Request.from_log(row.example)) == told
    for pattern in filter(None, (row.pattern, row.unless)):  # compared with user agents in lower case
        assert re.sub(r"\\.", "", pattern) == re.sub(r"\\.", "", pattern).lower()
    assert not (row.unless and re2.search(row.unless, ""))


@pytest.mark.parametrize("row", NOT_CRAWLERS, ids=[row.pattern for row in NOT_CRAWLERS])
def test_an_excluded_pattern_exists_and_matches_a_person(classifier, signs, row):
    known = {crawler["pattern"] for crawler in crawleruseragents.CRAWLER_USER_AGENTS_DATA}
    assert row.pattern in known, f"delete the row {row.pattern!r} of notcrawlers.toml: the package no longer has it"
    assert re2.search(row.pattern, row.example), f"the example of {row.pattern!r} does not show why it is left out"
    assert classifier.classify(Request.from_log(row.example)).bot_category == "human"
    assert len(signs(row.example)) == 1


# Cost


@examples("filler", "longest")
def test_the_cost_of_an_overlong_user_agent_is_limited(classifier, filler, longest):
    """Only the beginning of a string is read, however long the string is. No string is classified twice."""
    number = itertools.count()

    def work(length):
        begin = f"Mozilla/5.0 (X11; Linux x86_64; {next(number)}) AppleWebKit/537.36 "
        text = begin + (filler * length)[: length - len(begin)]
        start = time.process_time()
        classifier.classify(Request.from_log(text))
        return time.process_time() - start

    times = [(work(longest), work(8_000), work(100_000)) for _ in range(41)]
    usual, long, very_long = map(statistics.median, zip(*times, strict=True))
    assert max(long, very_long) < 4 * max(usual, 1e-5)


# User agents as servers write them


@given(
    st.text(max_size=60)
    | st.text("- \t\"'a%2", max_size=20)
    | st.tuples(st.sampled_from(REAL), st.text(max_size=4)).map("".join)
    | st.integers(1000, 1100).map(lambda length: ("word " * length)[:length])
)
@settings(max_examples=300)
def test_readable_text_stays_unchanged(logged):
    request = Request.from_log(logged, "GET", "https://a.example/", "a=b")
    assume("\\" not in request.user_agent and "%" not in request.user_agent)
    assert Request.from_log(*request) == request


@pytest.mark.parametrize(
    "escaped", [lambda text: "".join(f"\\x{byte:02X}" for byte in text.encode()), lambda text: text.replace(" ", "%20")]
)
def test_signs_do_not_depend_on_the_escaping_of_the_log(signs, escaped):
    for user_agent in (GPTBOT, IPHONE, "curl/8.5.0", *(row.example for row in HEURISTICS)):
        assert signs(escaped(user_agent)) == signs(user_agent)
