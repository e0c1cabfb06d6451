"""A lake's own agents: rejected rows, and their precedence over shipped rows."""

import re
from datetime import date

import pytest

from data.errors import BadInput
from data.rules.classifier import Classifier, Request, shared_classifier
from data.rules.ip_verification import Verifier
from data.rules.lake_tables import LakeTables, rules_version
from data.rules.own_agents import MAX_ROWS, checked_agents
from data.store.agents_file import MAX_BYTES
from tests.support.forks import ROOT
from tests.support.own_agents import MONITOR, USER_AGENT, table_of
from tests.support.user_agents import CHROME_ON_WINDOWS, GPTBOT

NAMED = {**MONITOR, "token": "GPTBot", "agent": "Our GPTBot", "example": GPTBOT}


def rows(*changed):
    return checked_agents("agents.toml", table_of(*changed))


def first_match(own, user_agent):
    return next(Classifier(LakeTables(own)).matches(Request.from_log(user_agent)))


def test_a_custom_row_needs_neither_evidence_nor_a_date():
    (row,) = rows(MONITOR)
    assert (row.evidence, row.checked) == ("", date.min)


def test_a_custom_row_may_cite_evidence():
    assert rows({**MONITOR, "evidence": "https://wiki.example/monitor"})[0].evidence == "https://wiki.example/monitor"


@pytest.mark.parametrize("content", [b"", b"\n"])
def test_an_empty_table_has_no_rows(content):
    assert checked_agents("agents.toml", content) == ()


REFUSED = {
    "a bad word": ({"agent_kind": "robot"}, "agent_kind is 'robot', not one of"),
    "a kind that no user agent shows": ({"agent_kind": "disguised"}, "agent_kind 'disguised'"),
    "a kind that only a header shows": ({"agent_kind": "prefetch"}, "agent_kind 'prefetch'"),
    "an unknown field": ({"tokn": "a"}, "tokn"),
    "an empty token": ({"token": ""}, "token"),
    "a long token": ({"token": "a" * 101}, "token has 101 characters"),
    "a token of browsers": ({"token": "Mozilla/", "example": CHROME_ON_WINDOWS}, "people's user agents"),
    "a space": ({"token": " ", "example": "a b"}, "people's user agents"),
    "a token that its example lacks": ({"token": "Monitor-X"}, "is not in the example"),
    "a confidence of addresses": ({"confidence": "verified"}, "confidence is 'verified'; use high"),
    "an AI kind without its product": ({"agent_kind": "training"}, "ai_source is missing"),
    "a product without an AI kind": ({"ai_source": "ChatGPT"}, "ai_source is 'ChatGPT'"),
    "an unknown list": ({"verify": ["ip:nowhere"]}, "verify has 'ip:nowhere'"),
    "no URL": ({"evidence": "our wiki"}, "evidence"),
}


@pytest.mark.parametrize(("changed", "message"), REFUSED.values(), ids=REFUSED)
def test_the_error_about_an_invalid_row_gives_its_number(changed, message):
    with pytest.raises(BadInput) as refused:
        rows({**MONITOR, "token": "Other/", "example": "Other/1"}, MONITOR | changed)
    assert str(refused.value).startswith("agents.toml, row 2: ")
    assert message in str(refused.value)


def test_a_row_hidden_by_an_earlier_row_is_rejected():
    with pytest.raises(BadInput, match="row 2: token 'intranet-monitor/' of row 1"):
        rows({**MONITOR, "token": "intranet-monitor/"}, MONITOR)


def test_too_many_rows_are_rejected():
    with pytest.raises(BadInput, match="501 rows; keep at most 500"):
        rows(*({**MONITOR, "token": f"m{number}/"} for number in range(MAX_ROWS + 1)))


def test_the_maximum_number_of_long_tokens_can_be_compiled():
    tokens = [f"{'é' * 95}{number:05}" for number in range(MAX_ROWS)]
    own = rows(*({**MONITOR, "token": token, "example": token, "agent": token[-5:]} for token in tokens))
    assert first_match(own, tokens[-1]).classification.agent == "00499"


@pytest.mark.parametrize("content", [b"a = [", b"\xff", b"a = " + b"[" * 5_000, b"[[agents]]\n"])
def test_a_file_that_is_not_an_agents_table_is_rejected(content):
    with pytest.raises(BadInput, match=r"^agents\.toml: .*; correct it, or remove the row"):
        checked_agents("agents.toml", content)


def test_an_agent_in_a_custom_row_is_recognized(classifier):
    own = rows(MONITOR)
    assert classifier.classify(Request.from_log(USER_AGENT)).operator is None
    told = Classifier(LakeTables(own)).classify(Request.from_log(USER_AGENT))
    assert (told.agent, told.operator, told.agent_kind) == ("Intranet Monitor", "Acme", "monitor")


def test_the_deciding_rule_shows_that_its_row_is_custom():
    assert first_match(rows(MONITOR), USER_AGENT).rule == 'own agents.toml: "Intranet-Monitor/"'


def test_custom_rows_precede_shipped_rows():
    own = rows({**MONITOR, "example": f"{GPTBOT} {USER_AGENT}"})
    assert first_match(own, f"{GPTBOT} {USER_AGENT}").classification.agent == "Intranet Monitor"


def test_a_custom_row_replaces_the_shipped_row_with_its_token():
    matches = Classifier(LakeTables(rows({**NAMED, "token": "gptbot"}))).matches(Request.from_log(GPTBOT))
    assert [one.rule for one in matches if "agents.toml" in one.rule] == ['own agents.toml: "gptbot"']


def test_equal_custom_rows_share_a_classifier():
    assert shared_classifier(LakeTables(rows(MONITOR))) is shared_classifier(LakeTables(rows(MONITOR)))


def test_the_shared_classifier_uses_custom_rows():
    request = Request.from_log(USER_AGENT)
    agents = [shared_classifier(LakeTables(own)).classify(request).agent for own in ((), rows(MONITOR))]
    assert agents[0] != agents[1] == "Intranet Monitor"


def test_without_custom_rows_the_shipped_rules_version_is_used():
    assert rules_version(LakeTables()) == Classifier().rules_version


def test_the_rules_version_identifies_custom_rows():
    own, other = rows(MONITOR), rows({**MONITOR, "operator": "Partner"})
    versions = [Classifier(LakeTables(one)).rules_version.partition("+") for one in ((), own, other)]
    assert len({shipped for shipped, *_ in versions}) == 1
    assert len({digest for *_, digest in versions}) == 3


def test_an_agent_in_a_custom_row_is_verified_by_its_list():
    own = rows({**MONITOR, "verify": ["ip:openai-gptbot"]})
    assert Verifier({}, tables=LakeTables(own)).verification_methods("Intranet Monitor") == ("ip:openai-gptbot",)


def test_a_custom_row_decides_how_its_agent_is_verified():
    own = rows({**MONITOR, "agent": "GPTBot", "verify": ["dns:acme.example"]})
    assert Verifier({}, tables=LakeTables(own)).verification_methods("GPTBot") == ("dns:acme.example",)


MANUAL = (ROOT / "data/rules/README.md").read_text("utf-8")
(TABLE,) = re.findall(r"^```toml\n(.*?)^```", MANUAL, re.DOTALL | re.MULTILINE)


def test_the_rows_in_the_manual_classify_their_examples():
    own = checked_agents("agents.toml", TABLE.encode())
    told = [first_match(own, row.example) for row in own]
    assert [(one.classification.agent, one.classification.agent_kind) for one in told] == [
        ("Intranet Monitor", "monitor"), ("PartnerBot", "assistant_fetch"), ("deepprobe", "scanner"),
    ]  # fmt: skip
    assert all(one.rule.startswith("own agents.toml") for one in told)


def test_the_limits_in_the_manual_match_the_program():
    assert f"{MAX_BYTES // 1_000_000} MB or {MAX_ROWS} rows" in MANUAL
