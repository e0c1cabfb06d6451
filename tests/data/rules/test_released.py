"""Releases of the rules: which files are rejected, and how a valid release's tables replace the shipped ones."""

import pytest

from data.errors import BadInput
from data.rules.classifier import Classifier, Request
from data.rules.ip_verification import Verifier
from data.rules.lake_tables import LakeTables, rules_version
from data.rules.own_agents import checked_agents
from data.rules.released import MAX_BYTES, checked_release, newest_check, shipped_release
from data.rules.tables import Agent, Referrer, load
from tests.support.own_agents import MONITOR, table_of
from tests.support.releases import AGENT, CHECKED, REFERRER, release_of
from tests.support.user_agents import CHROME, CHROME_ON_WINDOWS, GPTBOT


@pytest.fixture(scope="module")
def released():
    return checked_release("rules.toml", release_of())


@pytest.fixture(scope="module")
def newer(released):
    return Classifier(LakeTables((), released))


def test_the_shipped_release_has_the_shipped_tables():
    shipped = checked_release("rules.toml", shipped_release())
    assert [*shipped.agents] == load(Agent, "agents")
    assert [*shipped.referrers] == load(Referrer, "referrers")


def test_a_release_is_as_new_as_its_newest_row():
    assert newest_check(release_of(checked="2099-01-02")) == "2099-01-02"


def test_a_file_without_rows_has_no_newest_day():
    assert newest_check(b"") == ""


REFUSED = {
    "no TOML": (b"a = [", "rules.toml: "),
    "no referrers": (table_of({**AGENT, "checked": "x"}), "a [[agent]] or a [[referrer]]"),
    "another table": (b"[[spammer]]\n" + shipped_release(), "not spammer, agent, referrer"),
    "a table of no rows": (b"agent = [1]\nreferrer = []\n", "a [[agent]] or a [[referrer]]"),
    "a field of a later version": (release_of({**AGENT, "speed": "high"}), "[[agent]], row 1: "),
    "an agent without evidence": (release_of({**AGENT, "evidence": "ours"}), "[[agent]], row 1: "),
    "a token of browsers": (
        release_of({**AGENT, "token": "Mozilla/", "example": CHROME_ON_WINDOWS}), "[[agent]], row 1: token 'Mozilla/'",
    ),
    "a token that its example lacks": (release_of({**AGENT, "example": "Other/1"}), "is not in the example"),
    "a token of two rows": (release_of({**AGENT, "token": "GPTBot", "example": GPTBOT}), "comes first"),
    "a host with a scheme": (release_of(referrer={**REFERRER, "host": "https://new.example"}), "[[referrer]], row 1: "),
    "an unknown type": (release_of(referrer={**REFERRER, "referrer_type": "a"}), "[[referrer]], row 1: referrer_type"),
    "a search engine with a product": (release_of(referrer={**REFERRER, "referrer_type": "search"}), "ai_source and"),
    "a large file": (bytes(MAX_BYTES + 1), "has at most 4,194,304"),
}  # fmt: skip


@pytest.mark.parametrize(("content", "message"), REFUSED.values(), ids=REFUSED)
def test_an_invalid_release_is_rejected(content, message):
    with pytest.raises(BadInput) as refused:
        checked_release("rules.toml", content)
    assert str(refused.value).startswith("rules.toml")
    assert message in str(refused.value)


def test_a_release_may_name_lists_that_this_version_lacks():
    agents = checked_release("rules.toml", release_of({**AGENT, "verify": ["ip:new-list"]})).agents
    verdict = Verifier({}, tables=LakeTables((), checked_release("a", shipped_release())._replace(agents=agents)))
    assert verdict.verdict("Newcomer", "20.42.10.7", None).inside is None


def test_an_agent_in_a_release_is_recognized(classifier, newer):
    request = Request.from_log("Newcomer/1.0")
    assert [one.classify(request).bot_category for one in (classifier, newer)] == ["other_bot", "ai_training"]


def test_a_referrer_in_a_release_is_recognized(classifier, newer):
    request = Request.from_log(CHROME, referrer="https://new.example/")
    assert [one.classify(request).bot_category for one in (classifier, newer)] == ["human", "ai_referral"]


def test_a_campaign_named_after_a_released_host_is_recognized(newer):
    assert newer.classify(Request.from_log(CHROME, query="utm_source=new.example")).ai_source == "New"


def test_an_agent_missing_from_a_release_is_not_recognized(released):
    tables = LakeTables((), released._replace(agents=released.agents[:1]))
    told = [one.rule for one in Classifier(tables).matches(Request.from_log(GPTBOT))]
    assert [rule for rule in told if rule.startswith("agents.toml")] == []


def test_a_custom_agent_takes_precedence_over_a_release(released):
    own = checked_agents("agents.toml", table_of({**MONITOR, "token": "newcomer/", "example": "Newcomer/1.0"}))
    tables = LakeTables(own, released)
    assert Classifier(tables).classify(Request.from_log("Newcomer/1.0")).agent == "Intranet Monitor"


def test_a_release_has_its_own_rules_version(released):
    assert rules_version(LakeTables((), released)) != rules_version()


def test_different_releases_have_different_rules_versions(released):
    other = checked_release("rules.toml", release_of({**AGENT, "operator": "Other"}))
    assert rules_version(LakeTables((), released)) != rules_version(LakeTables((), other))


def test_a_shipped_row_was_checked_on_the_date_of_the_tables():
    assert CHECKED in {str(row.checked) for row in (*load(Agent, "agents"), *load(Referrer, "referrers"))}
