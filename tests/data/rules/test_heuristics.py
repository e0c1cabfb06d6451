"""The tables that decide where agents and crawlers are silent, and rows of theirs that cannot hold."""

import re
from datetime import date

import crawleruseragents
import pytest
import re2

from data.rules import tables as reference
from data.rules.bots import BotRules
from data.rules.classifier import Request
from data.rules.ip_verification import Verifier
from data.rules.tables import Agent, Heuristic, IpList, NotCrawler, Proxy, load

HEURISTICS, NOT_CRAWLERS = load(Heuristic, "heuristics"), load(NotCrawler, "notcrawlers")
KNOWN_BY_NAME = {"a browser without a window", "a service of Google"}
"""Rows whose example is an agent of agents.toml too, which decides: one that is not would show more."""


@pytest.fixture(scope="module")
def signs(classifier):
    return lambda user_agent: list(classifier.matches(Request.from_log(user_agent)))


# heuristics.toml


@pytest.mark.parametrize("row", HEURISTICS, ids=[row.name for row in HEURISTICS])
def test_the_example_of_a_heuristic_is_decided_by_its_own_row(classifier, signs, row):
    found = signs(row.example)
    heuristics = [sign for sign in found if sign.rule.startswith("heuristics.toml: ")]
    assert heuristics[0].rule == f"heuristics.toml: {row.name}"
    assert (heuristics[0].evidence, heuristics[0].classification.agent_kind) == (row.evidence, row.agent_kind)
    assert (heuristics[0].classification.confidence, heuristics[0].classification.detection_method) == (
        "low",
        "heuristic",
    )
    if row.name not in KNOWN_BY_NAME:
        assert found[0] == heuristics[0]
        assert classifier.classify(Request.from_log(row.example)) == heuristics[0].classification


@pytest.mark.parametrize("row", HEURISTICS, ids=[row.name for row in HEURISTICS])
def test_the_patterns_of_a_heuristic_are_in_lower_case_as_what_they_are_held_against(row):
    for pattern in filter(None, (row.pattern, row.unless)):
        assert re2.compile(pattern).groups >= 0
        assert re.sub(r"\\.", "", pattern) == re.sub(r"\\.", "", pattern).lower()


def test_no_heuristic_matches_everything_or_nothing():
    for row in HEURISTICS:
        assert re2.search(row.pattern, row.example.lower())
        if row.unless:
            assert not re2.search(row.unless, "")
            assert not re2.search(row.unless, row.example.lower())


def test_no_heuristic_stands_twice():
    for words in ([row.name for row in HEURISTICS], [row.pattern for row in HEURISTICS]):
        assert sorted(words) == sorted(set(words))


# notcrawlers.toml


@pytest.mark.parametrize("row", NOT_CRAWLERS, ids=[row.pattern for row in NOT_CRAWLERS])
def test_a_pattern_that_is_left_out_is_one_of_the_package(row):
    known = {crawler["pattern"] for crawler in crawleruseragents.CRAWLER_USER_AGENTS_DATA}
    assert row.pattern in known, f"delete the row {row.pattern!r} of notcrawlers.toml: the package has it no more"


@pytest.mark.parametrize("row", NOT_CRAWLERS, ids=[row.pattern for row in NOT_CRAWLERS])
def test_whom_a_pattern_that_is_left_out_meets_is_a_person(classifier, signs, row):
    assert re2.search(row.pattern, row.example), f"the example of {row.pattern!r} does not show why it is left out"
    assert classifier.classify(Request.from_log(row.example)).bot_category == "human"
    assert len(signs(row.example)) == 1


def test_no_pattern_is_left_out_twice():
    patterns = [row.pattern for row in NOT_CRAWLERS]
    assert sorted(patterns) == sorted(set(patterns))


def test_both_tables_were_checked_lately():
    assert all(type(row.checked) is date and row.checked >= date(2026, 1, 1) for row in (*HEURISTICS, *NOT_CRAWLERS))


# Rows that cannot hold

EVIDENCE = {"evidence": '"https://a.example"', "checked": "2026-11-21"}
GOOD = {
    Agent: EVIDENCE
    | {
        "token": '"GPTBot"',
        "agent": '"GPTBot"',
        "operator": '"OpenAI"',
        "ai_source": '"ChatGPT"',
        "agent_kind": '"training"',
        "confidence": '"high"',
        "example": '"GPTBot/1.2"',
    },
    Heuristic: EVIDENCE | {"name": '"a word"', "pattern": '"word"', "agent_kind": '"other"', "example": '"word/1"'},
    NotCrawler: EVIDENCE | {"pattern": '"Sonic"', "meets": '"ViewSonic"', "example": '"ViewSonic"'},
    IpList: EVIDENCE | {"name": '"a-bot"', "operator": '"A"', "url": '"https://a.example/ips"', "format": '"prefixes"'},
    Proxy: EVIDENCE | {"network": '"192.0.2.0/24"', "operator": '"A"'},
}
FILES = {
    Agent: "agents",
    Heuristic: "heuristics",
    NotCrawler: "notcrawlers",
    IpList: "ip_lists",
    Proxy: "proxies",
}


@pytest.fixture
def written(monkeypatch):
    """Puts rows, given as field → TOML text, or a whole text in place of one table; the others stay as shipped."""
    read = reference._bytes_of

    def written(row_type, *rows):
        head = f"[[{row_type.__name__.lower()}]]\n"
        texts = [
            row if isinstance(row, str) else head + "".join(f"{name} = {value}\n" for name, value in row.items())
            for row in rows
        ]
        file, body = FILES[row_type], "".join(texts).encode()
        monkeypatch.setattr(reference, "_bytes_of", lambda name: body if name == file else read(name))

    return written


@pytest.fixture
def table(written):
    """Loads rows, given as field → TOML text."""

    def table(row_type, *rows):
        written(row_type, *rows)
        return load(row_type, FILES[row_type])

    return table


@pytest.mark.parametrize("row_type", GOOD)
def test_good_rows_are_loaded_as_written(table, row_type):
    one, other = table(row_type, GOOD[row_type], GOOD[row_type])
    assert one == other
    assert {name: str(getattr(one, name)) for name in GOOD[row_type]} == {
        name: text.strip('"') for name, text in GOOD[row_type].items()
    }


@pytest.mark.parametrize(
    ("row_type", "name"),
    [(row_type, name) for row_type in GOOD for name in sorted(GOOD[row_type].keys() - {"ai_source"})],
)
def test_a_row_without_a_required_field_is_refused(table, row_type, name):
    short = {field: text for field, text in GOOD[row_type].items() if field != name}
    with pytest.raises(ValueError, match=rf"^{FILES[row_type]}\.toml, row 2: Object missing required field `{name}`$"):
        table(row_type, GOOD[row_type], short)


@pytest.mark.parametrize("row_type", GOOD)
def test_a_row_with_an_unknown_field_is_refused(table, row_type):
    with pytest.raises(ValueError, match=rf"^{FILES[row_type]}\.toml, row 1: Object contains unknown field `patern`$"):
        table(row_type, GOOD[row_type] | {"patern": '"word"'})


@pytest.mark.parametrize(
    ("row_type", "name", "value"),
    [
        *(
            (Agent, "verify", value)
            for value in (
                '"ip:openai-gptbot"',
                '["openai-gptbot"]',
                '["ip"]',
                '["ip:"]',
                '["IP:openai-gptbot"]',
                '["ip:OpenAI"]',
                '["ip:a", "ip:b c"]',
                '["asn:as64496"]',
                '["ip:a\\n"]',
                '[["ip:a"]]',
                "[7]",
                "true",
                '{ ip = "a" }',
            )
        ),
        *((Agent, "server_side", value) for value in ('"yes"', "1", "[true]", '""')),
        *((Heuristic, "pattern", value) for value in ("7", '""', '["word"]', "true")),
        (Heuristic, "unless", '""'),
        (Heuristic, "unless", "false"),
        (Heuristic, "name", "2026-11-21"),
        (Heuristic, "checked", '"2026-11-21"'),
        (NotCrawler, "meets", '""'),
        (NotCrawler, "pattern", "1.5"),
        (NotCrawler, "evidence", "7"),
        (IpList, "name", '""'),
        (IpList, "url", '["https://a.example"]'),
        (IpList, "format", "true"),
        (Proxy, "network", "7"),
        (Proxy, "network", '["192.0.2.0/24"]'),
        (Proxy, "operator", '""'),
    ],
)
def test_a_field_of_another_shape_is_refused(table, row_type, name, value):
    with pytest.raises(ValueError, match=rf"^{FILES[row_type]}\.toml, row 3: Expected .* - at `\$\.{name}"):
        table(row_type, GOOD[row_type], GOOD[row_type], GOOD[row_type] | {name: value})


def test_ways_to_verify_are_kept_in_their_order(table):
    ways = '["ip:openai-gptbot", "dns:a.example", "signature:chatgpt.com"]'
    (row,) = table(Agent, GOOD[Agent] | {"verify": ways, "server_side": "true"})
    assert row.verify == ("ip:openai-gptbot", "dns:a.example", "signature:chatgpt.com")
    assert row.server_side is True
    (row,) = table(Agent, GOOD[Agent])
    assert (row.verify, row.server_side) == ((), False)


def test_the_kind_of_a_heuristic_is_one_of_the_known(table):
    with pytest.raises(ValueError, match=r"^heuristics\.toml, row 1: agent_kind is 'robot', not one of .*"):
        table(Heuristic, GOOD[Heuristic] | {"agent_kind": '"robot"'})


@pytest.mark.parametrize("row_type", GOOD)
def test_evidence_that_is_not_a_web_address_is_refused(table, row_type):
    with pytest.raises(
        ValueError,
        match=rf"^{FILES[row_type]}\.toml, row 1: Expected .*https\?://.* - at `\$\.evidence`",
    ):
        table(row_type, GOOD[row_type] | {"evidence": '"see the vendor"'})


@pytest.mark.parametrize("row_type", GOOD)
def test_rows_of_another_table_are_refused(table, row_type):
    for text in ("", '[[thing]]\nname = "a"\n'):
        with pytest.raises(ValueError, match=rf"^{FILES[row_type]}\.toml: every row must be a \[\["):
            table(row_type, text)


# What a row cannot hold


@pytest.mark.parametrize("field", ["pattern", "unless"])
def test_a_pattern_that_is_none_is_refused(written, field):
    written(Heuristic, GOOD[Heuristic], GOOD[Heuristic] | {"name": '"other"', field: '"("'})
    with pytest.raises(ValueError, match=rf"^heuristics\.toml, row 2: {field} is not valid"):
        list(BotRules().matches("word"))


@pytest.mark.parametrize("network", ["192.0.2.0/33", "192.0.2.1/24", "example.com"])
def test_a_network_that_is_none_is_refused(written, network):
    written(Proxy, GOOD[Proxy], GOOD[Proxy] | {"network": f'"{network}"'})
    with pytest.raises(ValueError, match=r"^proxies\.toml, row 2: network is not valid: "):
        Verifier({})


@pytest.mark.parametrize("form", ["prefix", "json", "csv"])
def test_a_form_of_lists_that_nothing_reads_is_refused(table, form):
    with pytest.raises(ValueError, match=r"^ip_lists\.toml, row 1: Expected .*prefixes.* - at `\$\.format`"):
        table(IpList, GOOD[IpList] | {"format": f'"{form}"'})


def test_a_date_with_a_time_is_refused(table):
    with pytest.raises(ValueError, match=r"^proxies\.toml, row 1: Expected `date`, got `datetime` - at `\$\.checked`"):
        table(Proxy, GOOD[Proxy] | {"checked": "2026-11-21T10:00:00Z"})


@pytest.mark.parametrize("text", ["[proxy]\noperator = 'A'\n", "proxy = ['A']\n", "proxy = 7\n", "[[proxy]\n"])
def test_a_file_that_holds_no_rows_is_refused_naming_it(table, text):
    with pytest.raises(ValueError, match=r"^proxies\.toml"):
        table(Proxy, text)
