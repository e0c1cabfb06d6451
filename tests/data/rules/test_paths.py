"""A request for a path that people do not open is never a person's, regardless of its user agent."""

import re

import pytest
import re2

from data.rules.classifier import Request
from data.rules.paths import PROBE, PROGRAM, PathRules, classify_path
from data.rules.tables import Attack, Probe, load
from data.visits import Classification
from tests.support.tables import examples_at_once, tables
from tests.support.user_agents import CHROME_ON_WINDOWS as CHROME
from tests.support.user_agents import GOOGLEBOT

ROWS = load(Probe, "probes")
SCANNERS = [row for row in ROWS if row.agent_kind == "scanner"]
PROGRAMS = [row for row in ROWS if row.agent_kind == "other"]


@pytest.fixture(scope="module")
def paths():
    return PathRules()


@pytest.fixture(scope="module")
def classify(classifier):
    return lambda path, user_agent=CHROME, referrer="": classifier.classify(
        Request.from_log(user_agent, "GET", referrer, "", path)
    )


def by_path(kind, confidence):
    return Classification("other_bot", kind, None, None, None, confidence, "path", "bot", None, None)


def test_the_table_has_at_least_22_probe_families():
    assert len({row.family for row in SCANNERS}) == len(SCANNERS) >= 22
    assert {row.confidence for row in SCANNERS} == {"medium"}
    assert {(row.confidence, row.agent_kind) for row in PROGRAMS} == {("low", "other")}


@pytest.mark.parametrize("row", ROWS, ids=[row.family for row in ROWS])
def test_the_example_of_a_row_is_decided_by_that_row(classifier, classify, row):
    first = next(classifier.matches(Request.from_log(CHROME, path=row.example)))
    assert (first.rule, first.evidence) == (f"probes.toml: {row.family}", row.evidence)
    assert classify(row.example) == first.classification == by_path(row.agent_kind, row.confidence)


@examples_at_once("word")
def test_an_ordinary_word_is_not_a_probe(classify, word):
    assert {classify(path).bot_category for path in (f"/{word}", f"/{word}/")} == {"human"}


@examples_at_once("path")
def test_fetching_a_program_file_means_a_bot_with_low_confidence(classify, path):
    assert classify(path) == by_path("other", "low")
    assert classify(path, GOOGLEBOT).bot_category == "search_crawler"


def test_people_and_unknown_bots_that_probe_are_scanners(classify):
    for user_agent, referrer in ((CHROME, "https://chatgpt.com/"), ("curl/8.5.0", ""), ("some-script", ""), ("", "")):
        found = classify("/.env", user_agent, referrer)
        assert (found.agent_kind, found.ai_source, found.detection_method) == ("scanner", None, "path")
    assert classify("/.env", "curl/8.5.0").agent == "curl"


def test_a_known_agent_keeps_its_class_when_probing(classify):
    for user_agent in (GOOGLEBOT, "Mozilla/5.0 (compatible; GPTBot/1.2; +https://openai.com/gptbot)"):
        assert classify("/wp-login.php", user_agent) == classify("/launch", user_agent)


def test_a_contradicted_agent_stays_contradicted_when_probing(classify):
    contradicted = classify("/launch", GOOGLEBOT)._replace(confidence="contradicted", detection_method="ip_range")
    assert classify_path(contradicted, PROBE) == contradicted


def test_a_short_code_in_the_links_file_is_not_a_probe(paths):
    assert paths.kind("/phpmyadmin") == PROBE
    assert paths.kind("/phpmyadmin", is_link=True) == ""
    assert paths.kind("/robots.txt", is_link=True) == PROGRAM


def test_paths_that_pythons_engine_matches_are_recognized(paths):
    for row in ROWS:
        for path in (row.example, row.example.upper(), row.example + "x", "/launch"):
            assert bool(re.search(row.path, path, re.IGNORECASE)) <= (paths.kind(path) != "")


# Attacks in a query


@pytest.mark.parametrize("row", load(Attack, "attacks"), ids=lambda row: row.family)
def test_the_example_of_an_attack_matches_its_own_row(paths, row):
    assert re2.search(f"(?i){row.pattern}", row.example)
    assert paths.is_attack(row.example)


@pytest.mark.parametrize("is_attack", [True, False], ids=["attacks", "words of people"])
def test_attacks_in_queries_are_distinguished_from_plain_words(paths, is_attack):
    for query in tables(__file__)["attacks" if is_attack else "words of people"]:
        assert paths.is_attack(query) is is_attack, query
