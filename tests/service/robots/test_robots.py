"""The effects of blocking crawlers. The output of `traffic robots` is tested by transcripts/robots.txt."""

from contextlib import closing
from datetime import UTC, datetime, time, timedelta

import httpx2
import pytest

from data import BadInput
from queries import Warehouse
from service.jobs.detection import Detection
from service.jobs.store import Jobs
from service.robots.plans import Crawled, cost, make_job
from tests.service.jobs.findings import ANNA
from tests.support.control import open_store
from tests.support.visits import land, visit
from tests.support.web_servers import serving

GPTBOT = {"bot_category": "ai_training", "agent_kind": "training", "agent": "GPTBot", "operator": "OpenAI",
          "ai_source": "ChatGPT", "confidence": "high", "bytes_sent": 7}  # fmt: skip
BINGBOT = {"bot_category": "search_crawler", "agent_kind": "search", "agent": "bingbot", "operator": "Microsoft"}


def noon(day):
    return datetime(day.year, day.month, day.day, 12)


@pytest.mark.parametrize(
    ("since", "outcome"),
    [((GPTBOT | {"status": 403}, 5), "improved"), ((GPTBOT, 0), "improved"), ((GPTBOT, 5), "unchanged")],
)
def test_a_plan_is_measured_by_requests_that_are_still_answered(lake, today, since, outcome):
    shipped, visits = today - timedelta(days=30), []
    for day in (today - timedelta(days=number) for number in range(60, 0, -1)):
        columns, many = (GPTBOT, 5) if day <= shipped else since
        for path, by, times in (("/open", columns, many), ("/robots.txt", GPTBOT, 1), ("/open", BINGBOT, 9)):
            visits += [visit(visited_at=noon(day), path=path, domain="go.example", **by)] * times
    land(lake, "acme", visits)
    lake.manifest.behaviour.switch("acme", on=False)
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
def test_a_web_server_rejects_only_the_agents_of_a_plan(traffic, lake, today, tmp_path, server):
    crawlers = (("GPTBot", "OpenAI"), ("OAI-SearchBot", "OpenAI"), ("Crawler\x1b[31m/x", "Nobody"))
    yesterday = noon(today) - timedelta(days=1)
    land(lake, "acme", [visit(visited_at=yesterday, **GPTBOT | {"agent": agent, "operator": operator})
                        for agent, operator in crawlers])  # fmt: skip
    run = traffic("robots", "plan", "--org", "acme", "--block", "OpenAI", "--block", "Nobody", "--as", server)
    outside, inside = "", f"{run.out}\nrespond 204"
    if server == "nginx":
        outside, _, condition = run.out.partition("# in the server block: ")
        inside = f"{condition} return 204;"
    with serving(server, tmp_path, inside, outside) as port, httpx2.Client(trust_env=False, verify=False) as client:
        agents = ("Mozilla/5.0 (compatible; GPTBot/1.2)", "oai-searchbot/1.0", "Mozilla/5.0", "xgptbot", "GPTBot-x")
        assert [client.get(f"http://127.0.0.1:{port}/", headers={"User-Agent": one}).status_code for one in agents] == [
            403,
            403,
            204,
            204,
            204,
        ]


def test_a_choice_is_rejected_if_no_agent_was_seen():
    with pytest.raises(BadInput, match="'OpenAI' was not seen on these days; nor was any other AI agent"):
        cost([], ["OpenAI"])
