"""The tables that decide where agents and crawlers are silent, and the patterns of crawlers that meet people."""

import re

import crawleruseragents
import pytest
import re2

from data.rules.classifier import Request
from data.rules.tables import Heuristic, NotCrawler, load

HEURISTICS, NOT_CRAWLERS = load(Heuristic, "heuristics"), load(NotCrawler, "notcrawlers")
KNOWN_BY_NAME = {"a browser without a window", "a service of Google"}
"""Rows whose example is an agent of agents.toml too, which decides: one that is not would show more."""


@pytest.fixture(scope="module")
def signs(classifier):
    return lambda user_agent: list(classifier.matches(Request.from_log(user_agent)))


@pytest.mark.parametrize("row", HEURISTICS, ids=[row.name for row in HEURISTICS])
def test_the_example_of_a_heuristic_is_decided_by_its_own_row(classifier, signs, row):
    found = signs(row.example)
    first = next(sign for sign in found if sign.rule.startswith("heuristics.toml: "))
    assert (first.rule, first.evidence) == (f"heuristics.toml: {row.name}", row.evidence)
    told = first.classification
    assert (told.agent_kind, told.confidence, told.detection_method) == (row.agent_kind, "low", "heuristic")
    if row.name not in KNOWN_BY_NAME:
        assert found[0] == first
        assert classifier.classify(Request.from_log(row.example)) == told
    for pattern in filter(None, (row.pattern, row.unless)):  # which are compared with user agents in lower case
        assert re.sub(r"\\.", "", pattern) == re.sub(r"\\.", "", pattern).lower()
    assert not (row.unless and re2.search(row.unless, ""))


@pytest.mark.parametrize("row", NOT_CRAWLERS, ids=[row.pattern for row in NOT_CRAWLERS])
def test_a_pattern_that_is_left_out_is_one_of_the_package_and_meets_a_person(classifier, signs, row):
    known = {crawler["pattern"] for crawler in crawleruseragents.CRAWLER_USER_AGENTS_DATA}
    assert row.pattern in known, f"delete the row {row.pattern!r} of notcrawlers.toml: the package has it no more"
    assert re2.search(row.pattern, row.example), f"the example of {row.pattern!r} does not show why it is left out"
    assert classifier.classify(Request.from_log(row.example)).bot_category == "human"
    assert len(signs(row.example)) == 1
