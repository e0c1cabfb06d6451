"""The fact tables: every row holds, and a row that cannot hold is named."""

import re
from datetime import date

import pytest

from data.rules import tables as reference
from data.rules.classifier import Request
from data.rules.tables import Agent, Campaign, Probe, Referrer, Spammer, load, rules_version
from data.visits import AI_CATEGORIES, CATEGORY_OF_KIND
from tests.support.tables import examples

AGENTS = load(Agent, "agents")
REFERRERS = load(Referrer, "referrers")
CAMPAIGNS = load(Campaign, "campaigns")
AI_KINDS = {kind for kind, category in CATEGORY_OF_KIND.items() if category in AI_CATEGORIES}
TABLES = ("agents", "notcrawlers", "heuristics", "devices", "browsers", "referrers", "spammers", "campaigns", "probes")

GOOD = {
    "token": '"GPTBot"',
    "agent": '"GPTBot"',
    "operator": '"OpenAI"',
    "ai_source": '"ChatGPT"',
    "agent_kind": '"training"',
    "confidence": '"high"',
    "evidence": '"https://openai.com/gptbot"',
    "checked": "2026-11-20",
    "example": '"GPTBot/1.2"',
}


@pytest.fixture
def table(monkeypatch):
    """Loads agents from rows given as field → TOML text."""

    def loaded(*rows):
        text = "".join("[[agent]]\n" + "".join(f"{name} = {value}\n" for name, value in row.items()) for row in rows)
        monkeypatch.setattr(reference, "_bytes_of", lambda name: text.encode())
        return load(Agent, "agents")

    return loaded


# The rows that are shipped


def test_the_example_of_an_agent_is_matched_first_by_its_own_row(classifier):
    first = {
        row.token: min(classifier._bot_rules._agent_set.Match(row.example.lower()), default=None) for row in AGENTS
    }
    assert first == {row.token: number for number, row in enumerate(AGENTS)}


@examples("user_agent", "agent")
def test_an_ai_agent_that_lists_name_is_known_by_its_name(classifier, user_agent, agent):
    told = classifier.classify(Request.from_log(user_agent))
    assert (told.agent, told.bot_category in AI_CATEGORIES) == (agent, True)


def test_the_example_of_an_agent_is_classified_as_its_row_says(classifier):
    names = ("agent", "operator", "agent_kind", "ai_source", "confidence")
    told = {row.token: classifier.classify(Request.from_log(row.example, "GET", "", "")) for row in AGENTS}
    found = {token: [getattr(one, name) for name in names] for token, one in told.items()}
    assert found == {row.token: [getattr(row, name) for name in names] for row in AGENTS}
    assert {one.detection_method for one in told.values()} == {"user_agent"}


def test_many_agents_of_ai_products_are_known():
    assert len({row.agent for row in AGENTS if row.agent_kind in AI_KINDS}) >= 60


def test_exactly_the_agents_of_ai_products_name_an_ai_source():
    assert [row.token for row in AGENTS if (row.agent_kind in AI_KINDS) != (row.ai_source is not None)] == []


def test_no_agent_is_a_referral_or_verified_before_it_was_seen():
    assert [row.token for row in AGENTS if row.agent_kind == "referral"] == []
    assert [row.token for row in AGENTS if row.confidence not in {"high", "medium", "low"}] == []


def test_no_token_stands_twice():
    tokens = [(row.token.lower(), row.exact) for row in AGENTS]
    assert sorted(tokens) == sorted(set(tokens))


def test_exactly_the_hosts_of_ai_products_name_an_ai_source_and_a_confidence():
    for row in REFERRERS:
        assert (row.referrer_type == "ai") == (row.ai_source is not None) == (row.confidence is not None), row.host


def test_no_host_stands_twice_and_all_are_bare():
    hosts = [row.host for row in REFERRERS]
    assert sorted(hosts) == sorted(set(hosts))
    assert [host for host in hosts if not re.fullmatch(r"(android-app://)?[a-z0-9.*/-]+", host)] == []


def test_no_spammer_stands_twice_or_is_a_known_referrer():
    hosts = [row.host for row in load(Spammer, "spammers")]
    assert sorted(hosts) == sorted(set(hosts))
    assert [host for host in hosts if not re.fullmatch(r"[a-z0-9-]+(\.[a-z0-9-]+)+", host)] == []
    assert set(hosts) & {row.host for row in REFERRERS} == set()


def test_every_campaign_of_an_ai_product_is_written_as_it_is_compared():
    for row in CAMPAIGNS:
        assert row.utm_source == row.utm_source.strip().lower().removeprefix("www.")


def test_an_ai_source_has_one_spelling():
    names = {row.ai_source for rows in (AGENTS, REFERRERS, CAMPAIGNS) for row in rows if row.ai_source}
    assert len({name.lower() for name in names}) == len(names)


def test_an_operator_has_one_spelling():
    names = {row.operator for row in AGENTS}
    assert len({name.lower() for name in names}) == len(names)


def test_every_row_was_checked_before_today():
    rows = [*AGENTS, *REFERRERS, *CAMPAIGNS, *load(Probe, "probes"), *load(Spammer, "spammers")]
    assert all(type(row.checked) is date and row.checked >= date(2026, 1, 1) for row in rows)


# Rows that cannot hold


def test_a_good_row_is_loaded_as_written(table):
    (row,) = table(GOOD)
    assert row == Agent(
        "GPTBot",
        "GPTBot",
        "OpenAI",
        "training",
        "high",
        "GPTBot/1.2",
        "ChatGPT",
        evidence="https://openai.com/gptbot",
        checked=date(2026, 11, 20),
    )


@pytest.mark.parametrize("name", sorted(GOOD.keys() - {"ai_source"}))
def test_a_row_without_a_required_field_is_refused(table, name):
    with pytest.raises(ValueError, match=f"agents.toml, row 2: Object missing required field `{name}`"):
        table(GOOD, {key: value for key, value in GOOD.items() if key != name})


def test_optional_fields_may_be_left_out(table):
    (row,) = table({key: value for key, value in GOOD.items() if key != "ai_source"})
    assert (row.ai_source, row.exact) == (None, False)


def test_a_row_with_an_unknown_field_is_refused(table):
    with pytest.raises(ValueError, match=r"agents\.toml, row 1: Object contains unknown field `tokn`"):
        table(GOOD | {"tokn": '"x"'})


@examples("name", "value")
def test_a_field_of_another_type_is_refused(table, name, value):
    with pytest.raises(ValueError, match=rf"agents\.toml, row 3: Expected .* - at `\$\.{name}`"):
        table(GOOD, GOOD, GOOD | {name: value})


@pytest.mark.parametrize(("name", "value"), [("agent_kind", "assistent"), ("confidence", "sure")])
def test_a_word_that_is_not_one_of_the_known_is_refused_naming_them(table, name, value):
    with pytest.raises(ValueError, match=f"agents.toml, row 1: {name} is '{value}', not one of .*(search|low)"):
        table(GOOD | {name: f'"{value}"'})


@pytest.mark.parametrize("evidence", ["openai.com/gptbot", "ftp://openai.com", "see the vendor", "//openai.com"])
def test_evidence_that_is_not_a_web_address_is_refused(table, evidence):
    with pytest.raises(ValueError, match=r"agents\.toml, row 1: Expected .*https\?://.* - at `\$\.evidence`"):
        table(GOOD | {"evidence": f'"{evidence}"'})


@pytest.mark.parametrize(
    ("row_type", "name", "text", "field"),
    [
        (Referrer, "referrers", 'host = "a.example"\nreferrer_type = "friend"', "referrer_type"),
        (Campaign, "campaigns", 'utm_source = "x"\nai_source = "X"', "confidence"),
        (Probe, "probes", "family = 'a'\npath = 7", "path"),
    ],
)
def test_rows_of_every_table_are_checked(monkeypatch, row_type, name, text, field):
    row = f'[[{name[:-1]}]]\n{text}\nevidence = "https://a.example"\nchecked = 2026-11-20\n'
    monkeypatch.setattr(reference, "_bytes_of", lambda _: row.encode())
    with pytest.raises(ValueError, match=rf"{name}\.toml, row 1: .*{field}"):
        load(row_type, name)


# The version of the rules


def test_the_version_of_the_rules_is_twelve_digits_and_stays(classifier):
    assert re.fullmatch("[0-9a-f]{12}", rules_version())
    assert rules_version() == classifier.rules_version


@pytest.mark.parametrize("changed", TABLES)
def test_the_version_of_the_rules_changes_with_every_table(monkeypatch, changed):
    before, read = rules_version(), reference._bytes_of
    monkeypatch.setattr(reference, "_bytes_of", lambda name: read(name) + b"\n" * (name == changed))
    assert rules_version() != before


@pytest.mark.parametrize("changed", ["crawler-user-agents", "ua-parser-builtins"])
def test_the_version_of_the_rules_changes_with_every_rule_package(monkeypatch, changed):
    before, version = rules_version(), reference.metadata.version
    monkeypatch.setattr(reference.metadata, "version", lambda name: version(name) + "x" * (name == changed))
    assert rules_version() != before
