"""Browser versions that never existed, and outdated versions."""

import json
from datetime import date
from itertools import pairwise
from pathlib import Path

import pytest
import re2

from data.rules.bots import readable_user_agent
from data.rules.classifier import Request
from data.rules.releases import BrowserReleases
from data.rules.tables import Forged, Lifetime, Release, load

CASES = json.loads(Path(__file__).with_suffix(".json").read_text("utf-8"))
RELEASES, LIFETIMES = load(Release, "releases"), load(Lifetime, "lifetimes")
FORGED = load(Forged, "forged")


@pytest.fixture(scope="module")
def releases():
    return BrowserReleases()


@pytest.mark.parametrize(("user_agent", "reason"), CASES["never was"])
def test_a_version_that_never_existed_indicates_a_bot(classifier, user_agent, reason):
    told = classifier.classify(Request.from_log(user_agent))
    assert (told.bot_category, told.agent_kind, told.confidence, told.detection_method, told.device_type) == (
        "other_bot", "other", "low", "heuristic", "bot",
    )  # fmt: skip
    first = next(classifier.matches(Request.from_log(user_agent)))
    assert first.rule.removeprefix("releases.toml: ") == reason
    assert first.classification == told
    assert first.evidence.startswith("https://")


@pytest.mark.parametrize("user_agent", CASES["may be"].values(), ids=CASES["may be"].keys())
def test_a_possible_version_indicates_a_person(classifier, user_agent):
    assert classifier.classify(Request.from_log(user_agent)).bot_category == "human"


@pytest.mark.parametrize(
    ("user_agent", "since"), [case[1:] for case in CASES["outdated since"]], ids=[c[0] for c in CASES["outdated since"]]
)
def test_a_browser_is_outdated_some_years_after_its_next_version(releases, user_agent, since):
    assert releases.outdated_since(readable_user_agent(user_agent)) == (since and date.fromisoformat(since))


def test_a_version_superseded_on_feb_29_is_outdated_on_march_1(releases, monkeypatch):
    row = Release("Chrome", 79, date(2020, 2, 29), evidence="https://a.example", checked=date(2026, 1, 1))
    monkeypatch.setitem(releases._releases, ("Chrome", 79), row)
    assert releases.outdated_since("Mozilla/5.0 (X11) Chrome/79.0.1.1 leap") == date(2022, 3, 1)


def test_every_browser_with_releases_has_a_lifetime():
    assert {row.browser for row in LIFETIMES} == {row.browser for row in RELEASES}


def test_each_browser_version_is_released_only_once():
    assert len({(row.browser, row.version) for row in RELEASES}) == len(RELEASES)


def test_each_browsers_releases_are_in_order():
    for before, row in pairwise(RELEASES):
        if before.browser == row.browser:
            assert (before.version, before.superseded) < (row.version, row.superseded)
            assert (before.build < row.build) or not row.build


def test_a_release_was_checked_after_it_was_superseded():
    assert all(row.superseded <= row.checked for row in RELEASES)


@pytest.mark.parametrize("row", LIFETIMES, ids=[row.name for row in LIFETIMES])
def test_the_example_of_a_lifetime_is_decided_by_its_row(row):
    first = next(other for other in LIFETIMES if re2.search(other.pattern, row.example.lower()))
    assert first == row
    assert any(re2.search(row.pattern, row.example.lower()).groups()) == bool(row.years)


@pytest.mark.parametrize("row", FORGED, ids=[row.name for row in FORGED])
def test_a_forged_example_matches_only_its_own_row(row):
    assert [other for other in FORGED if re2.search(other.pattern, row.example)] == [row]


def test_chrome_beyond_a_systems_last_version_indicates_a_bot(releases):
    last = next(row.pattern for row in LIFETIMES if row.name.startswith("the last Chrome of a system"))
    engine = "AppleWebKit/537.36 (KHTML, like Gecko)"
    phone = f"Mozilla/5.0 (Linux; Android {{}}; SM-G960F) {engine} Chrome/{{}}.0.0.0 Mobile Safari/537.36"
    for system, version in ((5, 95), (6, 106), (7, 119), (8, 138), (9, 138)):
        user_agents = [phone.format(f"{system}.0", version + newer) for newer in (0, 1, 100)]
        assert re2.search(last, user_agents[0].lower())
        assert [any(releases.matches(user_agent)) for user_agent in user_agents] == [False, True, True]
