"""`traffic robots`: what lines for robots.txt would mean, in the numbers of the reports, and who went against them."""

import re
from collections import Counter
from datetime import datetime, timedelta

import pytest
from protego import Protego

from queries import Scope
from service.robots import GROUPS, people_by_operator
from tests.recount import recount
from tests.service.commands.runs import refused
from tests.support.visits import land, links, visit

GPTBOT = {"bot_category": "ai_training", "agent_kind": "training", "agent": "GPTBot", "operator": "OpenAI",
          "ai_source": "ChatGPT", "confidence": "high"}  # fmt: skip
SEARCHBOT = GPTBOT | {"bot_category": "ai_assistant", "agent_kind": "ai_search_index", "agent": "OAI-SearchBot"}
BINGBOT = {"bot_category": "search_crawler", "agent_kind": "search", "agent": "bingbot", "operator": "Microsoft"}
CLAUDE = {"bot_category": "ai_assistant", "agent_kind": "assistant_fetch", "agent": "Claude-User",
          "operator": "Anthropic", "ai_source": "Claude", "confidence": "medium"}  # fmt: skip
PERSON = {"bot_category": "ai_referral", "agent_kind": "referral", "ai_source": "ChatGPT", "referrer_type": "ai"}
IMPOSTOR = GPTBOT | {"bot_category": "other_bot", "agent_kind": "other", "confidence": "contradicted"}
LIBRARY = {"bot_category": "other_bot", "agent_kind": "library", "agent": "curl", "operator": "curl"}
NAMELESS = GPTBOT | {"agent": "Crawler\x1b[31m/x", "operator": "Nobody"}

PLAN = [
    (GPTBOT, 5, 1), (GPTBOT | {"confidence": "verified"}, 3, 28), (GPTBOT, 7, 29), (GPTBOT, 2, 0), (SEARCHBOT, 4, 2),
    (BINGBOT, 6, 3), (CLAUDE, 2, 4), (PERSON, 3, 5), (IMPOSTOR, 50, 6), (IMPOSTOR | {"agent_kind": "training"}, 9, 6),
    (LIBRARY, 8, 7), (NAMELESS, 1, 8), ({}, 10, 9),
]  # fmt: skip
"""The columns of a visit, how often it came to each of two paths, and how many days ago."""


def noon(day):
    return datetime(day.year, day.month, day.day, 12)


def planned(today):
    for columns, many, days in PLAN:
        for path in ("/open", "/closed/a"):
            yield from [
                visit(visited_at=noon(today - timedelta(days=days)), path=path, domain="go.example", **columns)
            ] * many
    yield visit(visited_at=noon(today - timedelta(days=1)), path="/robots.txt", domain="go.example", **GPTBOT)
    yield visit(visited_at=noon(today - timedelta(days=1)), path="/closed/b", domain="other.example", **GPTBOT)


@pytest.fixture(scope="module")
def shared_lake(shared_lake, today):
    land(shared_lake, "acme", planned(today))
    land(shared_lake, "bee", [visit(visited_at=noon(today - timedelta(days=1)), **CLAUDE)])
    links(shared_lake, "acme", [])
    return shared_lake


@pytest.fixture
def robots(traffic, shared_lake):
    return lambda *flags: traffic("robots", *flags, "--lake", shared_lake.root)


@pytest.fixture
def closed(tmp_path):
    """A robots.txt that closes a folder to everybody and everything to assistants of one operator."""
    path = tmp_path / "robots.txt"
    path.write_text(
        "\ufeffUser-agent: *\nDisallow: /closed/\nAllow: /closed/b\n\nUser-agent: claude-user\nDisallow: /\n"
    )
    return path


def test_lines_stand_by_group_with_what_they_keep_away_and_whom_the_operator_sent(robots):
    run = robots("--org", "acme")
    assert run.code == 0, run.err
    assert (
        run.out.partition("\n")[2]
        == """\
# training: 20 visits
# GPTBot (OpenAI): 18 visits kept away; OpenAI sent 6 people
User-agent: GPTBot
# Crawler\ufffd[31m/x (Nobody): 2 visits kept away; Nobody sent 0 people
# no line: robots.txt cannot address this name
Disallow: /

# search: 20 visits
# bingbot (Microsoft): 12 visits kept away; Microsoft sent 0 people
User-agent: bingbot
# OAI-SearchBot (OpenAI): 8 visits kept away; OpenAI sent 6 people
User-agent: OAI-SearchBot
Disallow: /

# assistants: 4 visits
# Claude-User (Anthropic): 4 visits kept away; Anthropic sent 0 people
User-agent: Claude-User
Disallow: /

"""
    )


def test_the_numbers_are_those_of_a_recount_by_hand(robots, today):
    first, last = today - timedelta(days=28), today - timedelta(days=1)
    visits = [one | {"organization": "acme"} for one in planned(today)]
    scope = Scope("acme", first, last)
    kinds = {kind for kinds in GROUPS.values() for kind in kinds}
    expected = Counter()
    for row in recount("bot-traffic", visits, scope):
        if row["agent_kind"] in kinds and row["confidence"] != "contradicted":
            expected[row["agent"].replace("\x1b", "\ufffd")] += row["visits"]
    people = people_by_operator({row["ai_source"]: row["ai_referrals"] for row in recount("ai-sources", visits, scope)})
    found = re.findall(
        r"^# (.+) \((.+)\): ([\d,]+) visits? kept away; .* sent (\d+) people$",
        robots("--org", "acme").out,
        re.MULTILINE,
    )
    assert {agent: int(count) for agent, _, count, _ in found} == expected
    assert {operator: int(sent) for _, operator, _, sent in found} == {
        operator: people.get(operator, 0) for _, operator, _, _ in found
    }


def test_the_lines_close_everything_to_those_they_name_and_to_nobody_else(robots):
    parsed = Protego.parse(robots("--org", "acme").out)
    for agent in ("GPTBot", "OAI-SearchBot", "bingbot", "Claude-User"):
        assert not parsed.can_fetch("/open", agent)
    for agent in ("Googlebot", "curl", "Crawler"):
        assert parsed.can_fetch("/open", agent)


def test_a_check_lists_who_went_against_the_file_and_where(robots, closed):
    rows = robots("check", closed, "--org", "acme", "--format", "json").json
    assert [(row["agent"], row["path"], row["visits"]) for row in rows] == [
        ("GPTBot", "/closed/a", 8), ("bingbot", "/closed/a", 6), ("OAI-SearchBot", "/closed/a", 4),
        ("Claude-User", "/closed/a", 2), ("Claude-User", "/open", 2), ("Crawler\x1b[31m/x", "/closed/a", 1),
    ]  # fmt: skip
    assert set(rows[0]) == {"agent", "operator", "path", "visits", "last_visit"}


def test_a_check_of_a_domain_counts_its_visits_only(robots, closed):
    closed.write_text("User-agent: *\nDisallow: /")
    rows = robots("check", closed, "--org", "acme", "--domain", "other.example", "--format", "json").json
    assert [(row["agent"], row["path"], row["visits"]) for row in rows] == [("GPTBot", "/closed/b", 1)]


@pytest.mark.parametrize("text", ["", "\0\xff nothing of this\n: is a rule", "User-agent: *\nAllow: /"])
def test_a_file_that_closes_nothing_has_no_offender(robots, tmp_path, text):
    path = tmp_path / "robots.txt"
    path.write_bytes(text.encode("latin-1"))
    run = robots("check", path, "--org", "acme")
    assert (run.code, run.out, run.err) == (0, "", "No crawler went against it.\n")


def test_what_cannot_be_read_or_is_misplaced_is_refused(robots, traffic, tmp_path, closed):
    assert "No such file" in refused(robots("check", tmp_path / "none", "--org", "acme"))
    assert "has no organization 'cow'" in refused(robots("--org", "cow"))
    assert "write options after check" in refused(traffic("robots", "--org", "acme", "check", closed, "--org", "acme"))
