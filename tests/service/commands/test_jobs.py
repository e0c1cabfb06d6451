"""`traffic jobs`: lists, shows, approves and dismisses, in the same words as the API."""

import json
import re
import sqlite3
from contextlib import closing
from datetime import UTC, datetime, timedelta

import pytest

from data.store.behaviour import switch_behaviour
from queries import DETECTORS
from service.control_database import ControlDatabase
from service.jobs.implementations import Draft
from service.jobs.store import Jobs
from tests.service.commands.runs import refused
from tests.service.jobs.findings import ANNA, NOW, broken
from tests.support.control import open_store
from tests.support.lakes import files_of
from tests.support.visits import land, links, visit

pytestmark = pytest.mark.usefixtures("forked_own_sql")


@pytest.fixture
def jobs(traffic, lake):
    """Runs `traffic jobs` over a lake with two jobs of acme."""
    store = Jobs(ControlDatabase(lake))
    store.upsert(broken("/gone"), NOW)
    store.upsert(broken("/\x1b[2Jwiped"), NOW)
    store.database.close()
    return lambda *arguments: traffic("jobs", *arguments, "--lake", lake.root)


@pytest.fixture
def job_id(jobs):
    rows = jobs("list", "--org", "acme", "--format", "json").json
    return next(row["id"] for row in rows if row["path"] == "/gone")


def test_jobs_are_listed_for_people_and_whole_for_programs(jobs, job_id):
    code, out, _ = jobs("list", "--org", "acme")
    assert (code, out.count("AI products hit a missing page: a path of go.example.com")) == (0, 2)
    assert job_id in out
    assert "\x1b" not in out
    rows = jobs("list", "--org", "acme", "--format", "json").json
    assert list(rows[0])[7:9] == ["priority", "domain"]
    assert jobs("list", "--org", "acme", "--status", "approved", "--format", "json").json == []
    assert jobs("list", "--org", "other", "--format", "json").json == []
    assert tuple(jobs("list", "--org", "other"))[:3] == (0, "", "other has no jobs.\n")
    assert jobs("list", "--org", "acme", "--status", "sent")[2] == "acme has no jobs that are sent.\n"
    assert jobs("list", "--org", "acme", "--format", "csv").out.startswith("id,organization,type,status,title,")


def test_a_job_is_shown_with_all_that_belongs_to_it(jobs, job_id):
    code, out, _ = jobs("show", job_id)
    assert code == 0
    assert all(word in out for word in ("evidence", "agent_fetches", "actions", "add_redirect", "history", "version"))
    record = jobs("show", job_id, "--format", "json").json
    assert record["evidence"]["rows"][0]["path"] == "/gone"


def test_a_job_is_approved_and_dismissed_with_a_note(jobs, job_id):
    code, out, err = jobs("approve", job_id, "--implementation-type", "manual", "--note", "as discussed")
    assert (code, out) == (0, "")
    assert err.startswith(f"{job_id} is approved: ")
    code, out, err = jobs("approve", job_id)
    assert (code, out) == (1, "")
    assert "approved" in err
    assert jobs("dismiss", job_id, "--note", "no longer").code == 0
    record = jobs("show", job_id, "--format", "json").json
    assert (record["status"], record["implementation_type"]) == ("dismissed", "manual")
    told = [(line["action"], line["actor_kind"], line["note"]) for line in record["history"]]
    assert told[1:] == [("approve", "command_line", "as discussed"), ("dismiss", "command_line", "no longer")]


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
    export = ("links", "export", "--org", "acme", "--domain", "go.example.com", "--lake", lake.root, "--format")
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


def test_what_is_wrong_is_said_in_one_line(jobs, job_id):
    assert "job_x" in refused(jobs("show", "job_x"))
    assert "job_x" in refused(jobs("approve", "job_x"))
    assert "parquet" in refused(jobs("list", "--org", "acme", "--format", "parquet"))
    assert "open" in refused(jobs("list", "--org", "acme", "--status", "open"))
    assert "organization" in refused(jobs("list", "--org", "no/name"))
    assert "csv" in refused(jobs("show", job_id, "--format", "csv"))
    assert "rewrite" in refused(jobs("approve", job_id, "--action", "rewrite"))
    assert "magic" in refused(jobs("approve", job_id, "--implementation-type", "magic"))


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


def test_a_job_whose_row_was_too_long_to_be_kept_is_not_replayed(jobs, lake):
    land(lake, "acme", [visit()])
    with open_store(Jobs, lake) as store:
        store.upsert(broken("/long", rows=[{**broken("/long").rows[0], "statuses": "4" * 70_000}]), NOW)
    (job_id,) = [row["id"] for row in jobs("list", "--org", "acme", "--format", "json").json if row["path"] == "/long"]
    assert "no evidence to replay" in refused(jobs("replay", job_id))


def test_an_outcome_that_cannot_be_measured_ends_with_an_error(jobs, job_id, lake):
    now = datetime.now(UTC)
    jobs("approve", job_id)
    with open_store(Jobs, lake) as store:
        store.attach("acme", job_id, Draft("manual", note="repaired"), ANNA, now)
        at = now - timedelta(days=5)
        store.set_implementation_status("acme", job_id, 1, ANNA, now, status="shipped", shipped_at=at)
    land(lake, "acme", [visit(visited_at=(now - timedelta(days=6)).replace(tzinfo=None))])
    (file,) = files_of(lake)
    whole = (lake.root / file.path).read_bytes()
    (lake.root / file.path).write_bytes(b"damaged")
    run = jobs("outcome", "--org", "acme")
    assert (run.code, run.err.splitlines()[-1].startswith(f"traffic: {job_id} could not be measured")) == (1, True)
    (lake.root / file.path).write_bytes(whole)
    run = jobs("outcome", "--org", "acme")
    assert (run.code, job_id in run.out) == (0, True)


def test_detect_explains_what_it_asks_for_and_what_came_near_and_changes_nothing(jobs, lake):
    crawl = {"bot_category": "search_crawler", "agent": "Googlebot", "status": 503, "path": "/page"}
    land(lake, "acme", [visit(visited_at=datetime(2026, 3, 1 + number % 2), **crawl) for number in range(9)])
    arguments = ("detect", "--org", "acme", "--as-of", "2026-03-15")
    assert "Not judged yet, so left out: 2 days; run `traffic compact`." in jobs(*arguments, "--dry-run").err
    switch_behaviour(lake.manifest, "acme", on=False)
    said = jobs(*arguments, "--dry-run").err
    assert ("found nothing in 2026-02-15 to 2026-03-14" in said, "Left out" in said) == (True, False)
    code, out, _ = jobs(*arguments, "--explain")
    assert code == 0
    assert all(f"{kind}: 0 found" in out for kind in DETECTORS)
    said = out.partition("search_errors: ")[2]
    assert said.startswith(
        "0 found, 1 considered.\n  It looks for: Domains at which search crawlers get 500 to 599: 10 times"
    )
    assert "domain go.example, visits 9, errors 9, percentage 100.0" in said
    assert {row["type"] for row in jobs("list", "--org", "acme", "--format", "json").json} == {"broken_link"}


def test_without_a_shipped_job_outcome_prints_one_sentence(jobs, lake):
    land(lake, "acme", [visit()])
    assert tuple(jobs("outcome", "--org", "acme"))[:3] == (0, "", "No shipped job waits for its outcome.\n")


def test_a_placebo_without_eight_weeks_of_visits_prints_one_sentence(jobs, lake):
    land(lake, "acme", [visit()])
    said = "acme does not have 8 weeks of visits in which anything was found.\n"
    assert tuple(jobs("placebo", "--org", "acme"))[:3] == (0, "", said)


def test_erase_says_in_its_receipt_what_evidence_it_deleted(jobs, job_id, traffic, lake, monkeypatch):
    monkeypatch.setattr("service.commands.erase.finish", lambda *_: None)
    arguments = ("erase", "--org", "acme", "--domain", "go.example.com", "--lake", lake.root)
    traffic("keys", "create", "--org", "acme", "--name", "x", "--lake", lake.root)
    assert traffic(*arguments, "--dry-run").json["jobs"] == {"jobs": 2, "rows": 2, "implementations": 0}
    assert jobs("show", job_id, "--format", "json").json["path"] == "/gone"
    assert traffic(*arguments, "--yes").json["jobs"] == {"jobs": 2, "rows": 2, "implementations": 0}
    assert jobs("show", job_id, "--format", "json").json["path"] is None


def test_an_erasure_of_a_visitor_leaves_evidence_alone(jobs, traffic, lake):
    traffic("keys", "create", "--org", "acme", "--name", "x", "--lake", lake.root)
    run = traffic("erase", "--org", "acme", "--visitor", "7", "--dry-run", "--lake", lake.root)
    assert run.json["jobs"]["jobs"] == 0


def test_retain_deletes_the_evidence_of_old_days(jobs, job_id, traffic, lake, monkeypatch):
    monkeypatch.setattr("service.commands.retain.finish", lambda *_: None)
    run = traffic("retain", "--days", "1", "--dry-run", "--lake", lake.root)
    assert "The evidence of 2 jobs about such days would be deleted, too." in run.err
    run = traffic("retain", "--days", "1", "--yes", "--lake", lake.root)
    assert "The evidence of 2 jobs about such days is deleted, too." in run.err
    assert jobs("show", job_id, "--format", "json").json["evidence"] is None


def test_status_counts_jobs_and_a_backup_has_them(jobs, job_id, traffic, lake, tmp_path):
    jobs("approve", job_id)
    counted = traffic("status", "--format", "json", "--lake", lake.root).json["jobs"]
    assert counted == {"acme": {"approved": 1, "new": 1}}
    assert "1 approved, 1 new" in traffic("status", "--lake", lake.root).out
    assert traffic("backup", tmp_path / "copy", "--lake", lake.root).code == 0
    assert json.loads(traffic("jobs", "show", job_id, "--format", "json", "--lake", tmp_path / "copy").out)


def test_verify_finds_a_damaged_implementation(jobs, job_id, traffic, lake):
    jobs("approve", job_id)
    with open_store(Jobs, lake) as store:
        store.attach("acme", job_id, Draft("patch", "text/plain", "Disallow: /"), ANNA, NOW)
    assert traffic("verify", "--lake", lake.root).code == 0
    with closing(sqlite3.connect(lake.root / "control.sqlite")) as database, database:
        database.execute("UPDATE implementations SET content = x'00'")
    run = traffic("verify", "--lake", lake.root)
    assert run.code == 1
    assert run.out == f"control.sqlite: implementation 1 of {job_id} is damaged: its SHA-256 differs\n"
