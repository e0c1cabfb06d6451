"""`traffic robots`: what lines for robots.txt would mean, in the numbers of the reports, and who went against them."""

from contextlib import closing
from datetime import UTC, datetime, time, timedelta

import httpx2
import pytest

from data.store.behaviour import switch_behaviour
from queries import Warehouse
from service.jobs.detection import Detection
from service.jobs.store import Jobs
from service.robots import Crawled, cost, make_job
from tests.service.commands.runs import refused
from tests.service.jobs.findings import ANNA
from tests.support.control import open_store
from tests.support.visits import land, links, visit
from tests.support.web_servers import serving

pytestmark = pytest.mark.usefixtures("forked_own_sql")
GPTBOT = {"bot_category": "ai_training", "agent_kind": "training", "agent": "GPTBot", "operator": "OpenAI",
          "ai_source": "ChatGPT", "confidence": "high", "bytes_sent": 7}  # fmt: skip
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
    """Runs `traffic robots` over the lake of this file."""
    return lambda *flags: traffic("robots", *flags)


@pytest.fixture
def closed(tmp_path):
    """A robots.txt that closes a folder to everybody and everything to assistants of one operator."""
    path = tmp_path / "robots.txt"
    path.write_text(
        "\ufeffUser-agent: *\nDisallow: /closed/\nAllow: /closed/b\n\nUser-agent: claude-user\nDisallow: /\n"
    )
    return path


def test_a_plan_lists_what_agents_fetched_what_ignores_the_present_file_and_whom_operators_sent(robots, closed):
    rows = robots("plan", "--org", "acme", "--robots", closed, "--format", "json").json
    shown = ("operator", "purpose", "agents", "agent_fetches", "ai_referrals", "ignored")
    assert [tuple(row[name] for name in shown) for row in rows] == [
        ("OpenAI", "trained", "GPTBot", 18, 6, 8), ("OpenAI", "indexed", "OAI-SearchBot", 8, 6, 4),
        ("Anthropic", "asked", "Claude-User", 4, 0, 4), ("Nobody", "trained", "Crawler\x1b[31m/x", 2, 0, 1),
    ]  # fmt: skip


def test_the_file_of_a_plan_says_what_it_saves_and_the_people_at_risk(robots, today):
    run = robots("plan", "--org", "acme", "--block", "OpenAI:trained", "--block", "Anthropic")
    first, last = today - timedelta(days=28), today - timedelta(days=1)
    assert (run.code, run.out) == (
        0,
        f"""\
# {first} to {last}: 22 requests and 126 bytes saved.
# At risk: 6 visits by people whom products of Anthropic, OpenAI sent.
# OpenAI:trained: 18 requests
# Anthropic:asked: 4 requests
User-agent: Claude-User
User-agent: GPTBot
Disallow: /
""",
    )
    told = "'OpenAI:coding' was not seen in these days; choose from: OpenAI:trained, OpenAI:indexed"
    assert told in refused(robots("plan", "--org", "acme", "--block", "OpenAI:coding"))


def test_a_plan_becomes_one_approved_job_with_its_file_and_what_ignored_the_present_one(
    robots, traffic, shared_lake, closed
):
    flags = ("plan", "--org", "acme", "--block", "OpenAI", "--as", "nginx", "--robots", closed, "--job")
    run = robots(*flags)
    job_id = run.err.split()[0]
    job = traffic("jobs", "show", job_id, "--format", "json").json
    assert (job["type"], job["status"], job["title"]) == (
        "crawler_plan", "approved", "Keep AI crawlers out: OpenAI (trained), OpenAI (indexed)"
    )  # fmt: skip
    assert "they made 26 requests" in job["summary"]
    assert job["summary"].endswith("products of their operators sent: 6.")
    rows = job["evidence"]["rows"]
    assert [(row["agent"], row["agent_fetches"], row["ignored"]) for row in rows] == [
        ("GPTBot", 18, 8), ("OAI-SearchBot", 8, 4)
    ]  # fmt: skip
    with open_store(Jobs, shared_lake) as jobs:
        assert jobs.implementation("acme", job_id, 1).content == run.out
    assert [line["action"] for line in job["history"]] == ["create", "approve", "attach"]
    assert robots(*flags).err == run.err
    assert "planned or written by hand" in refused(traffic("jobs", "replay", job_id))


@pytest.mark.parametrize(
    ("since", "outcome"),
    [((GPTBOT | {"status": 403}, 5), "improved"), ((GPTBOT, 0), "improved"), ((GPTBOT, 5), "unchanged")],
)
def test_a_plan_is_judged_by_what_its_agents_still_get(lake, today, since, outcome):
    shipped, visits = today - timedelta(days=30), []
    for day in (today - timedelta(days=number) for number in range(60, 0, -1)):
        columns, many = (GPTBOT, 5) if day <= shipped else since
        for path, by, times in (("/open", columns, many), ("/robots.txt", GPTBOT, 1), ("/open", BINGBOT, 9)):
            visits += [visit(visited_at=noon(day), path=path, domain="go.example", **by)] * times
    land(lake, "acme", visits)
    switch_behaviour(lake.manifest, "acme", on=False)
    then, now = (datetime.combine(day, time(12), UTC) for day in (shipped, today))
    days = (shipped - timedelta(days=28), shipped - timedelta(days=1))
    plan = cost([Crawled("OpenAI", "trained", ("GPTBot",), 140, 0, 0)], ["OpenAI"])
    with open_store(Jobs, lake) as jobs, closing(Warehouse(lake)) as warehouse:
        job = make_job(jobs, "acme", plan, "robots.txt", days, ANNA, then)
        jobs.set_implementation_status("acme", job.id, 1, ANNA, then, status="shipped")
        assert Detection(warehouse, lake, jobs, "acme").measure_outcomes(now).failed == {}
        found = jobs.record("acme", job.id)
    assert (found.outcome.status, found.outcome.judged_by, found.status == "resolved") == (outcome, "rate", False)
    assert "140 of " in found.outcome.verdict


@pytest.mark.parametrize("server", ["nginx", "caddy"])
def test_a_web_server_refuses_the_agents_of_a_plan_and_serves_others(robots, tmp_path, server):
    run = robots("plan", "--org", "acme", "--block", "OpenAI", "--block", "Nobody", "--as", server)
    outside, inside = "", f"{run.out}\nrespond 204"
    if server == "nginx":
        outside, _, condition = run.out.partition("# in the server block: ")
        inside = f"{condition} return 204;"
    with serving(server, tmp_path, inside, outside) as port:
        agents = ("Mozilla/5.0 (compatible; GPTBot/1.2)", "oai-searchbot/1.0", "Mozilla/5.0", "xgptbot", "GPTBot-x")
        assert [
            httpx2.get(f"http://127.0.0.1:{port}/", headers={"User-Agent": one}, trust_env=False).status_code
            for one in agents
        ] == [403, 403, 204, 204, 204]


def test_a_check_lists_who_went_against_the_file_and_where(robots, closed):
    rows = robots("check", closed, "--org", "acme", "--format", "json").json
    assert [(row["agent"], row["path"], row["visits"]) for row in rows] == [
        ("GPTBot", "/closed/a", 8), ("bingbot", "/closed/a", 6), ("OAI-SearchBot", "/closed/a", 4),
        ("Claude-User", "/closed/a", 2), ("Claude-User", "/open", 2), ("Crawler\x1b[31m/x", "/closed/a", 1),
    ]  # fmt: skip
    assert set(rows[0]) == {"agent", "operator", "path", "visits", "last_visit"}
    closed.write_text("User-agent: *\nDisallow: /")
    rows = robots("check", closed, "--org", "acme", "--domain", "other.example", "--format", "json").json
    assert [(row["agent"], row["path"], row["visits"]) for row in rows] == [("GPTBot", "/closed/b", 1)]
    for text in (b"", b"\0\xff nothing of this\n: is a rule", b"User-agent: *\nAllow: /"):
        closed.write_bytes(text)
        assert robots("check", closed, "--org", "acme") == (0, "", "No crawler violated it.\n")
