"""`traffic jobs` once something was shipped or is found again; what it prints before is in transcripts/jobs.txt."""

import re
from datetime import UTC, datetime, timedelta

import pytest

from data.store.behaviour import switch_behaviour
from service.jobs.implementations import Draft
from service.jobs.store import Jobs
from tests.service.commands.runs import refused
from tests.service.jobs.findings import ANNA, NOW, broken
from tests.support.control import open_store
from tests.support.lakes import files_of, flipped
from tests.support.visits import land, links, visit

pytestmark = pytest.mark.usefixtures("forked_own_sql")


@pytest.fixture
def job_id(lake):
    """A job of acme, about a broken link."""
    with open_store(Jobs, lake) as store:
        store.upsert(broken("/gone"), NOW)
        return store.of("acme")[0].id


@pytest.fixture
def jobs(traffic):
    """Runs `traffic jobs`."""
    return lambda *arguments: traffic("jobs", *arguments)


def test_a_path_is_redirected_where_a_guess_leads_and_exported_once_it_is_shipped(jobs, job_id, lake, traffic):
    land(lake, "acme", [visit()])
    assert jobs("redirect", job_id).err == "No link or path has a similar spelling.\n"
    links(lake, "acme", [{"short_code": "gones", "target_url": "https://example.com/gones"}])
    assert "https://example.com/gones" in jobs("redirect", job_id).out
    assert "before it is approved" in jobs("redirect", job_id, "https://example.com/").err
    jobs("approve", job_id)
    run = jobs("redirect", job_id, "https://example.com/")
    assert (run.code, run.out) == (0, "")
    assert '"from":"/gone","to":"https://example.com/"' in run.err
    export = ("links", "export", "--org", "acme", "--domain", "go.example.com", "--format")
    with open_store(Jobs, lake) as store:
        store.upsert(broken("/a/b"), NOW)
        other = next(row.id for row in store.of("acme") if row.path == "/a/b")
        store.act("acme", other, "approve_fix", ANNA, NOW)
        store.attach("acme", other, Draft("patch", redirect_to="https://example.com/b"), ANNA, NOW)
        assert "/a/b" not in traffic(*export, "csv").out
        for one in (job_id, other):
            store.set_implementation_status("acme", one, 1, ANNA, NOW, status="shipped")
    for name in ("nginx", "caddy", "csv"):
        run = traffic(*export, name)
        assert (run.code, run.out.count("https://example.com/"), run.out.count("a/b")) == (0, 3, 1)


def referral(day, **changes):
    """Somebody whom ChatGPT sent to a path that is not there, so that the link is an invented one."""
    named = {"bot_category": "ai_referral", "agent_kind": "referral", "ai_source": "ChatGPT", "confidence": "high"}
    found = {"domain": "go.example.com", "path": "/gone", "status": 404, "visited_at": datetime(2026, 3, day)}
    return visit(**named | found | changes)


def test_a_broken_link_that_is_an_invented_one_now_is_found_again_by_a_replay(jobs, job_id, lake):
    switch_behaviour(lake.manifest, "acme", on=False)  # otherwise only judged days count
    land(lake, "acme", [referral(day) for day in (10, 11, 12)])
    run = jobs("replay", job_id)
    assert run.code == 0
    assert re.search(r"ai_referrals +10 +3\b", run.out)
    assert "no longer finds" not in run.err
    land(lake, "acme", [referral(13, bot_category=None, agent_kind=None, ai_source=None, status=302)])
    assert "The query no longer finds it in this period." in jobs("replay", job_id).err
    with open_store(Jobs, lake) as store:
        store.upsert(broken("/long", rows=[{**broken("/long").rows[0], "statuses": "4" * 70_000}]), NOW)
        (too_long,) = [row.id for row in store.of("acme") if row.path == "/long"]
    assert "no evidence to replay" in refused(jobs("replay", too_long))


def test_an_outcome_that_cannot_be_measured_ends_with_an_error(jobs, job_id, lake):
    now = datetime.now(UTC)
    jobs("approve", job_id)
    with open_store(Jobs, lake) as store:
        store.attach("acme", job_id, Draft("manual", note="repaired"), ANNA, now)
        at = now - timedelta(days=5)
        store.set_implementation_status("acme", job_id, 1, ANNA, now, status="shipped", shipped_at=at)
    land(lake, "acme", [visit(visited_at=(now - timedelta(days=6)).replace(tzinfo=None))])
    (file,) = files_of(lake)
    with flipped(lake.root / file.path):
        run = jobs("outcome", "--org", "acme")
    assert (run.code, run.err.splitlines()[-1].startswith(f"traffic: {job_id} could not be measured")) == (1, True)
    run = jobs("outcome", "--org", "acme")
    assert (run.code, job_id in run.out) == (0, True)
