"""Findings with one cause are one job: which job gets a finding, what an approval freezes, and what is merged."""

import json
from dataclasses import replace
from datetime import timedelta

import pytest

from data import BadInput
from data.tasks.erasure import Criteria
from queries import DETECTORS, Finding, days_before
from service.jobs.erasure import erase_evidence
from service.jobs.findings import causes_of, priority_of
from service.jobs.implementations import RULE, Draft
from service.jobs.subjects import read_shipped
from tests.service.jobs.findings import ANNA, NOW, ROW, mark

DAY = timedelta(days=1)
DETECTOR = DETECTORS["broken_link"]
TARGET = "https://example.com/guide"


def findings(*paths, kind="broken_link", weight=40.0, **row):
    """Generate a detector's findings about these paths on go.example.com."""
    for path in paths:
        subject = {"domain": "go.example.com", "path": path}
        yield Finding(kind, "acme", subject, {**ROW, "short_code": None, **subject, **row}, weight)


@pytest.fixture
def find(jobs):
    """Create or refresh the jobs about these paths; return the results."""

    def find(*paths, now=NOW, **how):
        return [
            jobs.upsert(cause, now) for cause in causes_of(DETECTOR, findings(*paths, **how), days_before(now.date()))
        ]

    return find


@pytest.fixture
def paths(jobs):
    """Return the paths of each of acme's jobs with one of these statuses, newest job first."""

    def paths(*statuses):
        rows = [row for row in jobs.of("acme") if row.status in (statuses or ("new", "reviewed", "approved"))]
        return [[one["path"] for one in jobs.record("acme", row.id).subjects] for row in rows]

    return paths


def act(jobs, action, now=NOW):
    row = jobs.of("acme")[0]
    return jobs.act("acme", row.id, action, ANNA, now)


def test_paths_in_one_folder_are_one_job(find, paths):
    assert find("/old/a", "/old/b/c", "/old/d") == ["created"]
    assert paths() == [["/old/a", "/old/b/c", "/old/d"]]


def test_paths_in_no_folder_are_separate_jobs(find, paths):
    assert find("/a", "/b", "/c/") == ["created"] * 3
    assert sorted(paths()) == [["/a"], ["/b"], ["/c/"]]


def test_the_same_folder_on_two_domains_is_two_causes():
    found = [*findings("/old/a")]
    other = replace(found[0], subject={**found[0].subject, "domain": "other.example"})
    assert len(causes_of(DETECTOR, [*found, other], days_before(NOW.date()))) == 2


@pytest.mark.parametrize(
    ("kind", "subjects"),
    [
        ("blocked_agent", [{"domain": "a.example", "agent": "GPTBot"}, {"domain": "a.example", "agent": "ClaudeBot"}]),
        ("impersonated_agent", [{"domain": None, "agent": "GPTBot"}, {"domain": None, "agent": "ClaudeBot"}]),
        ("training_without_return", [{"domain": "a.example", "operator": name} for name in ("OpenAI", "Meta")]),
        ("referral_drop", [{"domain": None, "short_code": code, "ai_source": "ChatGPT"} for code in "ab"]),
    ],
)
def test_findings_of_one_rule_or_product_share_a_cause(kind, subjects):
    found = [Finding(kind, "acme", subject, {}, 1.0) for subject in subjects]
    assert [len(one.findings) for one in causes_of(DETECTORS[kind], found, days_before(NOW.date()))] == [2]


def test_the_weight_of_a_cause_sums_its_findings():
    (cause,) = causes_of(DETECTOR, findings("/old/a", "/old/b"), days_before(NOW.date()))
    assert cause.weight == 80


@pytest.mark.parametrize(
    ("kind", "weight", "priority"),
    [
        ("exposed_path", 0.1, "high"),
        ("broken_link", 9.9, "medium"),
        ("broken_link", 99.9, "medium"),
        ("broken_link", 100.0, "high"),
        ("ai_attention_gap", 99.9, "low"),
        ("ai_attention_gap", 100.0, "medium"),
    ],
)
def test_the_priority_depends_on_kind_then_on_volume(kind, weight, priority):
    finding = Finding(kind, "acme", dict.fromkeys(DETECTORS[kind].subject, "a"), {}, weight)
    (cause,) = causes_of(DETECTORS[kind], [finding], days_before(NOW.date()))
    assert priority_of(cause) == priority


def test_a_job_about_several_paths_names_none_of_them(find, only):
    find("/old/a", "/old/b")
    job = only()
    assert (job.domain, job.path, job.short_code) == ("go.example.com", None, None)
    assert job.title == "AI products hit a missing page on go.example.com (2 paths)"
    assert "by AI products (120) and by people whom they sent (20)" in job.summary
    assert [row["path"] for row in job.evidence.rows] == ["/old/a", "/old/b"]


def test_hostile_paths_in_a_group_are_encoded(find, only):
    find("/old/<script>", "/old/merge it")
    assert [one["path"] for one in only().subjects] == ["/old/%3Cscript%3E", "/old/merge%20it"]


def test_a_new_path_with_the_same_cause_joins_an_undecided_job(find, paths):
    find("/old/a")
    assert find("/old/a", "/old/b", now=NOW + DAY) == ["refreshed"]
    assert paths() == [["/old/a", "/old/b"]]


def test_a_path_that_is_not_found_again_leaves_its_job(find, paths):
    find("/old/a", "/old/b")
    find("/old/b", now=NOW + DAY)
    assert paths() == [["/old/b"]]


def test_an_approved_job_keeps_its_paths(jobs, find, paths):
    find("/old/a", "/old/b")
    act(jobs, "approve_fix")
    assert find("/old/a", "/old/b", "/old/c", now=NOW + DAY) == ["created"]
    assert paths("approved") == [["/old/a", "/old/b"]]
    assert paths("new") == [["/old/c"]]


def test_an_approved_job_gets_new_evidence_on_its_paths(jobs, find):
    find("/old/a", "/old/b")
    job = act(jobs, "approve_fix")
    assert find("/old/b", "/old/a", now=NOW + DAY, agent_fetches=61) == ["refreshed"]
    rows = jobs.record("acme", job.id).evidence.rows
    assert {row["path"]: row["agent_fetches"] for row in rows} == {"/old/a": 61, "/old/b": 61}


def test_an_approved_job_counts_all_paths_if_only_one_is_found(jobs, find):
    find("/old/a", "/old/b")
    job = act(jobs, "approve_fix")
    find("/old/b", now=NOW + DAY)
    assert jobs.record("acme", job.id).title == "AI products hit a missing page on go.example.com (2 paths)"


def test_a_new_job_names_the_approved_job_with_the_same_cause(jobs, find):
    find("/old/a")
    older = act(jobs, "approve_fix")
    find("/old/b", now=NOW + DAY)
    newer = jobs.record("acme", jobs.of("acme")[0].id)
    assert newer.history[0].note == f"the same cause as {older.id}"


def test_dismissing_a_cause_dismisses_its_future_paths(jobs, find, paths):
    find("/old/a")
    act(jobs, "dismiss")
    assert find("/old/a", "/old/b", now=NOW + 60 * DAY) == ["ignored"]
    assert paths() == []


def test_a_reopened_cause_accepts_new_paths_again(jobs, find, paths):
    find("/old/a")
    act(jobs, "dismiss")
    act(jobs, "reopen")
    assert find("/old/a", "/old/b", now=NOW + DAY) == ["refreshed"]
    assert paths() == [["/old/a", "/old/b"]]


def test_a_resolved_cause_returns_after_a_week(jobs, find, paths):
    find("/old/a")
    act(jobs, "approve_fix")
    act(jobs, "resolve")
    assert find("/old/a", now=NOW + 6 * DAY) == ["ignored"]
    assert find("/old/a", "/old/b", now=NOW + 7 * DAY) == ["reopened"]
    assert paths("new") == [["/old/a", "/old/b"]]


def test_a_new_path_with_a_resolved_cause_gets_a_new_job(jobs, find, paths):
    find("/old/a")
    act(jobs, "approve_fix")
    act(jobs, "resolve")
    assert find("/old/a", "/old/b", now=NOW + DAY) == ["created"]
    assert paths("new") == [["/old/b"]]


@pytest.fixture
def apart(jobs):
    """Create a separate job for each path, as before there were causes."""

    def apart(*paths):
        for number, finding in enumerate(findings(*paths)):
            (cause,) = causes_of(replace(DETECTOR, cause=()), [finding], days_before(NOW.date()))
            jobs.upsert(cause, NOW + number * timedelta(seconds=1))

    return apart


def test_undecided_jobs_with_the_same_cause_are_merged(jobs, find, paths, apart):
    apart("/old/a", "/old/b", "/old/c")
    oldest = jobs.of("acme")[-1].id
    assert find("/old/a", "/old/b", "/old/c", now=NOW + DAY) == ["refreshed"]
    assert paths() == [["/old/a", "/old/b", "/old/c"]]
    merged = [jobs.record("acme", row.id) for row in jobs.of("acme") if row.id != oldest]
    assert [(job.status, job.history[-1].note) for job in merged] == [("dismissed", f"into {oldest}")] * 2
    assert [len(job.history) for job in merged] == [2, 2]


def test_an_approved_job_is_not_merged_with_undecided_ones(jobs, find, paths, apart):
    apart("/old/a", "/old/b", "/old/c")
    act(jobs, "approve_fix")
    find("/old/a", "/old/b", "/old/c", now=NOW + DAY)
    assert paths("approved") == [["/old/c"]]
    assert paths("new") == [["/old/a", "/old/b"]]


def test_a_path_that_was_dismissed_alone_does_not_join_a_job(jobs, find, paths, apart):
    apart("/old/a")
    act(jobs, "dismiss")
    assert find("/old/a", "/old/b", now=NOW + DAY) == ["created"]
    assert paths() == [["/old/b"]]


def test_jobs_with_the_same_cause_merge_after_a_failed_fix(jobs, find, paths):
    find("/old/a")
    act(jobs, "approve_fix")
    find("/old/b", now=NOW + DAY)
    jobs.database.rows("UPDATE jobs SET status = 'reviewed' WHERE status = 'approved'")
    find("/old/a", "/old/b", now=NOW + 2 * DAY)
    assert paths() == [["/old/a", "/old/b"]]


def test_a_link_that_turns_out_to_be_invented_keeps_its_job(jobs, find, paths):
    find("/old")
    found = findings("/old", kind="invented_link")
    (invented,) = causes_of(DETECTORS["invented_link"], found, days_before(NOW.date()))
    assert jobs.upsert(invented, NOW + DAY) == "refreshed"
    assert len(paths()) == 1


@pytest.fixture
def approved(jobs, find):
    """Return the id of an approved job about two paths."""
    find("/old/a", "/old/b")
    return act(jobs, "approve_fix").id


def attach(jobs, job_id, **draft):
    return jobs.attach("acme", job_id, Draft("patch", **draft), ANNA, NOW)


def test_one_redirect_covers_all_paths_of_a_job(jobs, approved):
    attach(jobs, approved, redirect_to=TARGET)
    mark(jobs, approved)
    assert [(one.path, one.target) for one in jobs.redirects("acme")] == [("/old/a", TARGET), ("/old/b", TARGET)]


def test_a_redirect_can_be_for_one_of_a_jobs_paths(jobs, approved):
    assert attach(jobs, approved, redirect_to=TARGET, subject=2).subject == 2
    mark(jobs, approved)
    assert [one.path for one in jobs.redirects("acme")] == ["/old/b"]


def test_the_outcome_is_measured_for_the_redirected_path(jobs, approved):
    attach(jobs, approved, redirect_to=TARGET, subject=2)
    mark(jobs, approved)
    (shipped,) = read_shipped(jobs.database, "acme")
    assert shipped.subjects == [{"domain": "go.example.com", "path": "/old/b"}]


def test_a_subject_number_that_the_job_lacks_is_rejected(jobs, approved):
    with pytest.raises(BadInput, match="subject is 3; the job has 2"):
        attach(jobs, approved, redirect_to=TARGET, subject=3)


def test_a_rule_for_a_path_outside_the_job_is_rejected(jobs, approved):
    rule = json.dumps({**RULE, "from": "/new/a"})
    with pytest.raises(BadInput, match="must be a path of the job"):
        attach(jobs, approved, content_type="application/json", content=rule)


@pytest.fixture
def mixed(jobs):
    """Create or refresh a job about two paths, found in this order: the path of the link "gone" and another path."""

    def mixed(first="/old/a", second="/old/b", now=NOW):
        codes = {"/old/a": None, "/old/b": "gone"}
        found = [finding for path in (first, second) for finding in findings(path, short_code=codes[path])]
        return jobs.upsert(*causes_of(DETECTOR, found, days_before(now.date())), now)

    return mixed


def erase_gone(jobs):
    erase_evidence(jobs.database, "acme", Criteria(short_code="gone"), NOW + 2 * DAY)


def test_an_erased_path_is_removed_from_its_jobs_subjects(jobs, mixed, only):
    mixed()
    erase_gone(jobs)
    assert [one.get("path") for one in only().subjects] == ["/old/a", None]


def test_an_erasure_finds_a_rows_path_whatever_the_order_of_rows(jobs, mixed, only):
    mixed()
    act(jobs, "approve_fix")
    mixed("/old/b", "/old/a", now=NOW + DAY)
    erase_gone(jobs)
    assert [one.get("path") for one in only().subjects] == ["/old/a", None]


def test_an_implementation_for_an_erased_path_is_not_measured(jobs, mixed, only):
    mixed()
    job_id = act(jobs, "approve_fix").id
    attach(jobs, job_id, redirect_to=TARGET, subject=2)
    mark(jobs, job_id)
    erase_gone(jobs)
    (shipped,) = read_shipped(jobs.database, "acme")
    assert shipped.subjects == []
    assert only().implementation.subject == 2
