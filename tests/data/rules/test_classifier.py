"""The classification of requests: the precedence of rules, and pitfalls."""

import re
from itertools import chain

import pytest
from hypothesis import given
from hypothesis import strategies as st

from data.rules.bots import (
    HUMAN_CLASSIFICATION,
    MAX_USER_AGENT_LENGTH,
    BotRules,
    bot_classification,
    readable_user_agent,
)
from data.rules.classifier import Classifier, Request
from data.rules.devices import DeviceRules
from data.rules.referrers import utm_values
from data.rules.releases import BrowserReleases
from data.rules.tables import Browser, load
from data.visits import AI_CATEGORIES, BOT_CATEGORIES, CATEGORY_OF_KIND, CONFIDENCE_SCORES, DEVICE_TYPES, Classification
from tests.support.corpus import LABELS, NAMES, labelled, request_of
from tests.support.tables import examples_at_once
from tests.support.user_agents import CHROME_ON_WINDOWS as CHROME
from tests.support.user_agents import GPTBOT, IPHONE

CHATGPT_USER = (
    "Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko); compatible; ChatGPT-User/1.0; +https://openai.com/bot"
)
AI_REFERRER, AI_QUERY = "https://chatgpt.com/", "utm_source=chatgpt.com"
HUMAN = ("human", None, None, None, None, None, None)
AUTOMATED = bot_classification("other")


@pytest.fixture(scope="module")
def classify(classifier):
    def classified(user_agent=CHROME, method="GET", referrer="", query=""):
        return classifier.classify(Request.from_log(user_agent, method, referrer, query))

    return classified


# Precedence


def test_a_browser_without_any_sign_is_a_person(classify):
    assert classify() == Classification(*HUMAN, "desktop", "Windows", "Chrome")
    assert classify(IPHONE) == Classification(*HUMAN, "mobile", "iOS", "Mobile Safari")


@pytest.mark.parametrize("host", ["semalt.com", "site5.semalt.com", "WWW.Buttons-for-Website.com"])
def test_referrer_spam_is_automated_with_any_browser(classify, host):
    found = classify(referrer=f"https://{host}/crawler?u=x", query=AI_QUERY)
    assert found == Classification("other_bot", "other", None, None, None, "low", "referrer", "bot", None, None)
    assert classify(GPTBOT, referrer=f"https://{host}/").agent == "GPTBot"
    assert classify(referrer=f"https://{host}.example/").bot_category == "human"


@pytest.mark.parametrize("query", ["", AI_QUERY])
@pytest.mark.parametrize("referrer", ["", AI_REFERRER, "https://www.google.com/"])
@examples_at_once("user_agent", "kind", "ai_source")
def test_a_bot_stays_a_bot_regardless_of_referrer_and_query(classify, user_agent, kind, ai_source, referrer, query):
    found = classify(user_agent, referrer=referrer, query=query)
    assert (found.agent_kind, found.ai_source) == (kind, ai_source)
    assert found.bot_category == CATEGORY_OF_KIND[kind]
    assert found.device_type == "bot"


def test_methods_that_browsers_do_not_use_are_automated(classify):
    for method in ("HEAD", "OPTIONS", "PROPFIND", "PUT", "DELETE", "CONNECT", "PRI", ""):
        for sent in ({}, {"referrer": AI_REFERRER, "query": AI_QUERY}):
            assert classify(method=method, **sent) == AUTOMATED
        assert classify(GPTBOT, method).agent == "GPTBot"
    for method in ("GET", "POST"):
        assert classify(method=method).bot_category == "human"


@pytest.mark.parametrize("user_agent", ["", "-", " ", '""', '"-"', "\t", "''"])
def test_a_visitor_without_a_user_agent_is_not_a_person(classify, user_agent):
    assert classify(user_agent, referrer=AI_REFERRER, query=AI_QUERY) == AUTOMATED


def test_a_person_sent_by_an_ai_product_is_a_referral(classify):
    assert classify(IPHONE, referrer="https://claude.ai/chat") == Classification(
        "ai_referral", "referral", "Claude", None, None, "medium", "referrer", "mobile", "iOS", "Mobile Safari"
    )


@examples_at_once("referrer", "query", "expected")
def test_a_campaign_takes_precedence_over_a_referrer(classify, referrer, query, expected):
    found = classify(referrer=referrer, query=query)
    assert (found.bot_category, found.ai_source, found.confidence, found.detection_method) == expected


@examples_at_once("source", "ai_source")
def test_a_campaign_names_an_ai_product_exactly_or_not_at_all(classify, source, ai_source):
    assert classify(query=f"a=b&utm_source={source}&c=d").ai_source == ai_source


@examples_at_once("referrer", "expected")
def test_the_origin_has_the_referring_host_and_its_type(classifier, referrer, expected):
    origin = classifier.origin(Request.from_log(CHROME, "GET", referrer, ""))
    assert (origin.referrer, origin.referrer_type) == expected
    assert origin.utm == (None,) * 5


# Campaigns


@examples_at_once("query", "expected")
def test_campaign_words_are_read_from_the_query(query, expected):
    assert utm_values(query) == expected


def test_campaign_words_are_truncated():
    assert utm_values("utm_source=" + "x" * 5000)[0] == "x" * 256


def test_only_the_beginning_of_a_long_query_is_read():
    assert utm_values("a&" * 50_000 + "utm_source=late") == (None,) * 5


# Agents and lookalikes


@examples_at_once("user_agent", "category", "agent")
def test_agents_are_recognized_by_their_tokens(classify, user_agent, category, agent):
    found = classify(user_agent)
    assert (found.bot_category, found.agent) == (category, agent)


@examples_at_once("user_agent")
def test_a_word_within_a_word_is_not_an_ai_agent(classify, user_agent):
    found = classify(user_agent)
    assert found.bot_category not in (*AI_CATEGORIES, "human")
    assert found.ai_source is None


@examples_at_once("what", "referrer", "expected", "user_agents")
def test_similar_people_and_bots_are_distinguished(classify, what, referrer, expected, user_agents):
    for user_agent in user_agents:
        found = classify(user_agent, referrer=referrer)._asdict()
        assert {name: found[name] for name in expected} == expected, (what, user_agent)


def test_the_browser_of_an_agentic_editor_may_be_an_agent(classify):
    def classify_in(editor):
        return classify(CHROME.replace("Chrome/", f"{editor} Chrome/").replace(" Safari", " Electron/34.5.1 Safari"))

    found = classify_in("Cursor/3.1.0")
    assert (found.bot_category, found.ai_source, found.confidence) == ("ai_coding_agent", "Cursor", "low")
    assert classify_in("Code/1.100.0")[:7] == HUMAN


# Devices

PEOPLE = DeviceRules()


@examples_at_once("user_agent", "device_type")
def test_devices_are_desktops_phones_or_tablets(user_agent, device_type):
    assert PEOPLE.device_type(user_agent) == device_type


BROWSERS = load(Browser, "browsers")
ON_IPHONE = IPHONE.partition(" Version")[0]


def browser_of(user_agent):
    return PEOPLE.device_info(user_agent)[2]


@pytest.mark.parametrize("row", BROWSERS, ids=[row.name for row in BROWSERS])
def test_the_example_of_a_row_gets_its_name(row):
    assert browser_of(row.example) == row.name


def test_no_ua_parser_name_is_in_two_rows():
    names = [name for row in BROWSERS for name in row.names]
    assert len(set(names)) == len(names)


def test_safari_on_a_phone_has_one_name_in_every_app():
    for rest in (" Version/17.5 Mobile/15E148 Safari/604.1", " Mobile/15E148", " Mobile/15E148 Safari/604.1"):
        assert browser_of(ON_IPHONE + rest) == "Mobile Safari"
    assert browser_of("MobileSafari/8617.2.4.10.8 CFNetwork/1492.0.1 Darwin/23.3.0") == "Mobile Safari"


def test_other_browsers_keep_the_names_from_ua_parser():
    assert browser_of(CHROME) == "Chrome"
    assert browser_of("Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0") == "Firefox"


# User agents as servers write them


@examples_at_once("logged", "readable")
def test_a_user_agent_is_read_as_sent(logged, readable):
    assert readable_user_agent(logged) == readable
    assert readable_user_agent(r"\xff\xfe") != ""


@pytest.mark.parametrize("letter", ["x", "Ж", r"\x22", r"\\", "%20", "(", "\0", "🙂"])
def test_an_overlong_user_agent_is_truncated(letter):
    assert len(readable_user_agent("a" + letter * 8000)) <= MAX_USER_AGENT_LENGTH
    assert len(readable_user_agent("a" * 8000)) == MAX_USER_AGENT_LENGTH


@given(st.text(max_size=60) | st.text('\\x2"- %0a', max_size=60))
def test_a_readable_user_agent_has_no_outer_quotes_or_blanks(logged):
    readable = readable_user_agent(logged)
    assert readable == readable.strip(" \t\"'")
    assert readable != "-"
    assert len(readable) <= MAX_USER_AGENT_LENGTH


# Arbitrary strings

HOSTILE = [
    "(" * 8000, "((((" * 500 + "Mozilla/5.0" + "))))" * 500, "Mozilla/5.0 " + "(compatible; " * 1000,
    "Mozilla/5.0 (" + "a" * 8000, "Mozilla/5.0 " + "Android " * 1000,
    "Mozilla/5.0 (Linux; Android 10; " + "; " * 4000, "\0" * 8000, "Mozilla/5.0 \0\x01\x02\x7f", "\ufffd" * 8000,
    "\u017f" * 2000, "\u0130" * 2000,  # changes its length with its case
    "Mozilla/5.0 " + "\\x" * 4000, "Mozilla/5.0 " + "%20" * 4000, "\u202e\u0000\U0010ffff", "\ud800",
    CHROME + "\udcff",
]  # fmt: skip


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_strings_are_classified_without_errors(classify, classifier, text):
    assert_values_fit(classify(text, text, text, f"utm_source={text}"))
    assert_values_fit(classify(CHROME + text, "GET", "https://chatgpt.com/" + text, f"utm_campaign={text}"))
    classifier.origin(Request.from_log(text, "GET", text, f"utm_source={text}"))


def assert_values_fit(found):
    """Check that the values of a classification are consistent."""
    assert found.bot_category in BOT_CATEGORIES
    person = found.bot_category in {"human", "ai_referral"}
    assert found.bot_category == ("human" if found.agent_kind is None else CATEGORY_OF_KIND[found.agent_kind])
    assert (found.ai_source is not None) == (found.bot_category in AI_CATEGORIES)
    assert (found.confidence is None) == (found.detection_method is None) == (found.bot_category == "human")
    assert found.confidence is None or found.confidence in CONFIDENCE_SCORES
    assert found.device_type in DEVICE_TYPES
    assert (found.device_type == "bot") == (not person)
    if person:
        assert (found.agent, found.operator) == (None, None)
    else:
        assert (found.operating_system, found.browser) == (None, None)


# Builds of a version: only one rule reads them, so one result stands for all others

BUILD = re.compile(r"((?:Chrome|CriOS|Edg|EdgA|OPR)/)\d+\.0\.\d+\.\d+")
BUILDS = ("9.0.1.2", "18.0.1025.133", "120.0.6099.109", "145.0.360.11", "199.0.9999.999")
FAMILIAR = list(
    dict.fromkeys(row["user_agent"] for row in chain.from_iterable(map(labelled, NAMES)) if "user_agent" in row)
)


def test_shortcuts_do_not_change_how_a_build_is_classified():
    automata, people, releases, classifier = BotRules(), DeviceRules(), BrowserReleases(), Classifier()
    made_up = {BUILD.sub(rf"\g<1>{build}", agent) for agent in FAMILIAR for build in BUILDS if BUILD.search(agent)}
    assert len(made_up) > 1000
    for agent in made_up | set(FAMILIAR):
        sign = next(chain(automata.matches(agent), releases.matches(agent)), None)
        expected = (
            sign.classification if sign else Classification(*HUMAN_CLASSIFICATION[:7], *people.device_info(agent))
        )
        assert classifier.classify_user_agent(agent) == expected, agent


# The labelled corpus: real user agents, referrers and campaigns, with their classifications

LEAST = {("people", "bot_category"): 1.0, ("people", "device_type"): 0.98} | dict.fromkeys(
    [*((name, "bot_category") for name in NAMES[1:]), ("ai_agents", "ai_source"), ("referrals", "ai_source")], 0.99
)


@pytest.mark.parametrize(("name", "label"), LEAST)
def test_nearly_all_of_the_corpus_is_classified_as_labelled(classifier, name, label):
    rows = [row for row in labelled(name) if label in row]
    results = [(row[label], getattr(classifier.classify(request_of(row)), label), row) for row in rows]
    wrong = [(expected, found, row) for expected, found, row in results if found != expected]
    share = 1 - len(wrong) / len(rows)
    assert share >= LEAST[name, label], f"{share:.4f}, such as {wrong[:5]}"


@pytest.mark.parametrize("name", NAMES)
def test_every_row_of_the_corpus_has_labels_and_a_source(name):
    rows = labelled(name)
    assert len(rows) >= 200
    for row in rows:
        assert row.keys() <= {"user_agent", "referrer", "url", "source", *LABELS}
        assert row["bot_category"] in BOT_CATEGORIES
        assert CATEGORY_OF_KIND.get(row.get("agent_kind"), row["bot_category"]) == row["bot_category"]
        assert row.get("device_type", "bot") in DEVICE_TYPES
        assert row["source"].startswith("https://")


def test_no_file_of_the_corpus_has_duplicate_requests():
    requests = [
        (name, row.get("user_agent"), row.get("referrer"), row.get("url")) for name in NAMES for row in labelled(name)
    ]
    assert len(set(requests)) == len(requests)
