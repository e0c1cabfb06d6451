"""The tables of rules: every shipped row is valid, and an invalid row is reported."""

import re
from datetime import date
from ipaddress import ip_network

import pytest

from data.errors import BadInput
from data.rules import lake_tables
from data.rules import tables as reference
from data.rules.bots import BotRules
from data.rules.classifier import Request
from data.rules.ip_verification import Verifier, known_proxies
from data.rules.lake_tables import rules_version
from data.rules.patterns import check_short_code_pattern
from data.rules.tables import (
    Agent,
    Campaign,
    Heuristic,
    Hosting,
    IpList,
    NotCrawler,
    Probe,
    Proxy,
    Referrer,
    Spammer,
    load,
)
from data.visits import AI_CATEGORIES, CATEGORY_OF_KIND
from tests.support.tables import examples, examples_at_once, tables

FILES = {
    Agent: "agents", Heuristic: "heuristics", NotCrawler: "notcrawlers", IpList: "ip_lists", Proxy: "proxies",
    Referrer: "referrers", Campaign: "campaigns", Probe: "probes", Spammer: "spammers",
    Hosting: "hosting",
}  # fmt: skip
ROWS = {row_type: load(row_type, name) for row_type, name in FILES.items()}
AGENTS, REFERRERS, CAMPAIGNS = ROWS[Agent], ROWS[Referrer], ROWS[Campaign]
AI_KINDS = {kind for kind, category in CATEGORY_OF_KIND.items() if category in AI_CATEGORIES}
TABLES = (
    "agents", "notcrawlers", "heuristics", "devices", "browsers", "referrers", "spammers", "campaigns", "probes",
    "releases", "forged",
)  # fmt: skip
EVIDENCE = {"evidence": '"https://a.example"', "checked": "2026-11-21"}
BY_NAME = {row_type.__name__: row_type for row_type in FILES}
GOOD = {BY_NAME[name]: EVIDENCE | row for name, row in tables(__file__)["good"].items()}
"""A valid row for each table, as field → TOML text."""


@pytest.fixture
def table(monkeypatch):
    """Load rows, given as field → TOML text or as a whole file, instead of one table; the other tables stay as
    shipped.
    """
    read = reference.bytes_of

    def table(row_type, *rows):
        texts = [
            row
            if isinstance(row, str)
            else f"[[{row_type.__name__.lower()}]]\n" + "".join(f"{name} = {value}\n" for name, value in row.items())
            for row in rows
        ]
        body = "".join(texts).encode()
        monkeypatch.setattr(reference, "bytes_of", lambda name: body if name == FILES[row_type] else read(name))
        known_proxies.cache_clear()
        return load(row_type, FILES[row_type])

    yield table
    known_proxies.cache_clear()


# Shipped rows


def test_the_example_of_an_agent_matches_its_own_row_first(classifier):
    first = {
        row.token: min(classifier._bot_rules._agent_set.Match(row.example.lower()), default=None) for row in AGENTS
    }
    assert first == {row.token: number for number, row in enumerate(AGENTS)}


@examples_at_once("user_agent", "agent")
def test_an_ai_agent_is_recognized_by_its_published_name(classifier, user_agent, agent):
    told = classifier.classify(Request.from_log(user_agent))
    assert (told.agent, told.bot_category in AI_CATEGORIES) == (agent, True)


def test_the_example_of_an_agent_is_classified_by_its_row(classifier):
    names = ("agent", "operator", "agent_kind", "ai_source", "confidence")
    told = {row.token: classifier.classify(Request.from_log(row.example, "GET", "", "")) for row in AGENTS}
    found = {token: [getattr(one, name) for name in names] for token, one in told.items()}
    assert found == {row.token: [getattr(row, name) for name in names] for row in AGENTS}
    assert {one.detection_method for one in told.values()} == {"user_agent"}


def test_exactly_the_rows_for_ai_products_name_an_ai_source():
    assert [row.token for row in AGENTS if (row.agent_kind in AI_KINDS) != (row.ai_source is not None)] == []
    for row in REFERRERS:
        assert (row.referrer_type == "ai") == (row.ai_source is not None) == (row.confidence is not None), row.host
    assert len({row.agent for row in AGENTS if row.agent_kind in AI_KINDS}) >= 60
    assert [row.token for row in AGENTS if row.agent_kind == "referral"] == []


def test_agents_in_tables_have_a_confidence_below_verified():
    assert [row.token for row in AGENTS if row.confidence not in {"high", "medium", "low"}] == []


def test_tables_have_no_duplicate_rows():
    for row_type, *names in (
        (Agent, "token", "exact"), (Heuristic, "name"), (Heuristic, "pattern"), (NotCrawler, "pattern"),
        (Referrer, "host"), (Spammer, "host"),
    ):  # fmt: skip
        keys = [tuple(str(getattr(row, name)).lower() for name in names) for row in ROWS[row_type]]
        assert len(set(keys)) == len(keys), (row_type, names)


def test_hosts_are_bare_and_spammers_are_not_referrers():
    hosts, spammers = ([row.host for row in ROWS[row_type]] for row_type in (Referrer, Spammer))
    assert [host for host in hosts if not re.fullmatch(r"(android-app://)?[a-z0-9.*/-]+", host)] == []
    assert [host for host in spammers if not re.fullmatch(r"[a-z0-9-]+(\.[a-z0-9-]+)+", host)] == []
    assert set(hosts) & set(spammers) == set()


def test_campaign_sources_are_in_normalized_form():
    for row in CAMPAIGNS:
        assert row.utm_source == row.utm_source.strip().lower().removeprefix("www.")


def test_sources_and_operators_do_not_differ_only_in_case():
    sources = {row.ai_source for rows in (AGENTS, REFERRERS, CAMPAIGNS) for row in rows if row.ai_source}
    for names in (sources, {row.operator for row in AGENTS}):
        assert len({name.lower() for name in names}) == len(names)


def test_hosting_networks_are_public_and_listed_once():
    networks = [ip_network(text) for row in ROWS[Hosting] for text in row.networks]
    assert all(network.is_global and network.prefixlen >= 8 for network in networks)
    assert len(networks) == len(set(networks)) > 15_000


def test_rows_of_most_tables_were_checked_in_2026_or_later():
    checked = [row.checked for row_type, rows in ROWS.items() if row_type not in (IpList, Proxy) for row in rows]
    assert all(type(day) is date and day >= date(2026, 1, 1) for day in checked)


# Invalid rows


@pytest.mark.parametrize("row_type", GOOD)
def test_valid_rows_are_loaded_unchanged(table, row_type):
    one, other = table(row_type, GOOD[row_type], GOOD[row_type])
    assert one == other
    assert {name: str(getattr(one, name)) for name in GOOD[row_type]} == {
        name: text.strip('"') for name, text in GOOD[row_type].items()
    }


@pytest.mark.parametrize("row_type", GOOD)
def test_rows_with_missing_or_unknown_fields_are_rejected(table, row_type):
    good, file = GOOD[row_type], FILES[row_type]
    optional = {"ai_source"} if row_type is Agent else set()
    for name in good.keys() - optional:
        with pytest.raises(ValueError, match=rf"^{file}\.toml, row 2: Object missing required field `{name}`$"):
            table(row_type, good, {field: text for field, text in good.items() if field != name})
    with pytest.raises(ValueError, match=rf"^{file}\.toml, row 1: Object contains unknown field `patern`$"):
        table(row_type, good | {"patern": '"word"'})


@pytest.mark.parametrize("row_type", GOOD)
def test_evidence_that_is_not_a_web_address_is_rejected(table, row_type):
    good, file = GOOD[row_type], FILES[row_type]
    for evidence in ("see the vendor", "a.example/bots", "ftp://a.example", "//a.example"):
        with pytest.raises(ValueError, match=rf"^{file}\.toml, row 1: Expected .*https\?://.* - at `\$\.evidence`"):
            table(row_type, good | {"evidence": f'"{evidence}"'})


@pytest.mark.parametrize("row_type", GOOD)
def test_tables_with_no_rows_or_unexpected_rows_are_rejected(table, row_type):
    for text in ("", '[[thing]]\nname = "a"\n'):
        with pytest.raises(ValueError, match=rf"^{FILES[row_type]}\.toml: every row must be a \[\["):
            table(row_type, text)


@examples_at_once("row_type", "name", "values")
def test_a_field_of_another_type_is_rejected(table, row_type, name, values):
    row_type = BY_NAME[row_type]
    good = GOOD[row_type]
    for value in values:
        with pytest.raises(ValueError, match=rf"^{FILES[row_type]}\.toml, row 3: Expected .* - at `\$\.{name}"):
            table(row_type, good, good, good | {name: value})


def test_verification_methods_keep_their_order(table):
    ways = '["ip:openai-gptbot", "dns:a.example", "signature:chatgpt.com"]'
    (row,) = table(Agent, GOOD[Agent] | {"verify": ways, "server_side": "true"})
    assert row.verify == ("ip:openai-gptbot", "dns:a.example", "signature:chatgpt.com")
    assert row.server_side is True


def test_optional_fields_may_be_left_out(table):
    (row,) = table(Agent, {name: text for name, text in GOOD[Agent].items() if name != "ai_source"})
    assert (row.ai_source, row.exact, row.verify, row.server_side) == (None, False, (), False)


@examples_at_once("row_type", "name", "word", "known")
def test_the_error_about_an_unknown_word_lists_the_known_words(table, row_type, name, word, known):
    row_type = BY_NAME[row_type]
    with pytest.raises(ValueError, match=rf"^{FILES[row_type]}\.toml, row 1: {name} is '{word}', not one of .*{known}"):
        table(row_type, GOOD[row_type] | {name: f'"{word}"'})


@pytest.mark.parametrize(
    ("row_type", "field", "value", "use"),
    [
        *((Heuristic, field, "(", BotRules) for field in ("pattern", "unless")),
        *((Proxy, "network", value, lambda: Verifier({})) for value in ("192.0.2.0/33", "192.0.2.1/24", "example.com")),
    ],
)
def test_an_invalid_pattern_or_network_is_rejected(table, row_type, field, value, use):
    good = GOOD[row_type]
    for refusing in (lambda: table(row_type, good, good | {field: f'"{value}"'}), use):
        with pytest.raises(ValueError, match=rf"^{FILES[row_type]}\.toml, row 2: {field} is not valid: "):
            refusing()


@pytest.mark.parametrize("text", ["[proxy]\noperator = 'A'\n", "proxy = ['A']\n", "proxy = 7\n", "[[proxy]\n"])
def test_the_error_about_a_table_without_rows_names_its_file(table, text):
    with pytest.raises(ValueError, match=r"^proxies\.toml"):
        table(Proxy, text)


# Operators' patterns, and the version of the rules


@examples("pattern", "error")
def test_an_invalid_pattern_is_reported_in_one_sentence_only(pattern, error, capfd):
    with pytest.raises(BadInput) as caught:
        check_short_code_pattern(pattern)
    assert str(caught.value) == error
    assert capfd.readouterr() == ("", "")


def test_the_rules_version_changes_with_every_table_and_package(classifier, monkeypatch):
    before, read, version = rules_version(), lake_tables.bytes_of, lake_tables.metadata.version
    assert re.fullmatch("[0-9a-f]{12}", before)
    assert before == classifier.rules_version
    changed = ""
    monkeypatch.setattr(lake_tables, "bytes_of", lambda name: read(name) + b"\n" * (name == changed))
    monkeypatch.setattr(lake_tables.metadata, "version", lambda name: version(name) + "x" * (name == changed))
    assert rules_version() == before
    for changed in (*TABLES, "crawler-user-agents", "ua-parser-builtins"):
        assert rules_version() != before, changed
