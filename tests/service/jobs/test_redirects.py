"""Redirects of dead paths: guessed from the spelling, typed, written as links, and exported while they are shipped."""

from contextlib import closing
from datetime import date, datetime, timedelta
from itertools import pairwise

import pytest

from data import BadInput, LakeDamaged
from data.links.links import links_of, remove_link
from data.links.redirect_maps import caddy_map, links_on, nginx_map
from data.manifest.coverage import note_received
from data.tasks.erasure import Criteria
from queries import Warehouse
from service.jobs.detection import Detection
from service.jobs.erasure import erase_evidence
from service.jobs.implementation_tables import organizations_that_want_links
from service.jobs.implementations import Draft
from service.jobs.manual import manual_job
from service.jobs.redirects import redirect_guesses, with_redirects
from service.jobs.states import JobChanged, JobConflict
from service.ops.maintenance import Maintenance
from tests.service.jobs.findings import ANNA, NOW, ROW, broken, mark
from tests.support.lakes import fail_at, links_path
from tests.support.manifests import database_of
from tests.support.visits import land, links, visit

TARGET = "https://example.com/guide"
TO_TARGET = Draft("patch", redirect_to=TARGET)


@pytest.fixture
def approve(jobs):
    """Find a dead path and approve its job; return its id."""

    def approve(path, **row):
        jobs.upsert(broken(path, rows=[{**ROW, "path": path, "short_code": None, **row}]), NOW)
        job = next(row for row in jobs.of("acme") if row.status == "new")
        jobs.act("acme", job.id, "approve_fix", ANNA, NOW)
        return job.id

    return approve


def exported(jobs, lake):
    """Return the paths and targets in both web servers' files for go.example.com, which must be equal."""
    files = links_on(with_redirects(links_of(lake, "acme"), jobs.redirects("acme")), "go.example.com")
    assert nginx_map(files).written == caddy_map(files).written == len(files)
    return {f"/{link.short_code}": link.target_url for link in files}


def test_a_redirect_from_a_short_code_becomes_a_link(jobs, lake, approve):
    links(lake, "acme", [{"short_code": "gone", "target_url": "https://old.example/", "domain": "go.example.com"}])
    job_id = approve("/gone", short_code="gone")
    attached = jobs.attach("acme", job_id, TO_TARGET, ANNA, NOW)
    assert (attached.content_type, attached.status) == ("application/json", "attached")
    (link,) = links_of(lake, "acme")
    assert (link.short_code, link.domain, link.target_url) == ("gone", "go.example.com", TARGET)
    assert exported(jobs, lake) == {"/gone": TARGET}
    mark(jobs, job_id)
    assert exported(jobs, lake) == {"/gone": TARGET}
    assert [one.path for one in jobs.redirects("acme")] == ["/gone"]


@pytest.mark.parametrize("short_code", [None, "old", "guide"])
def test_the_newest_shipped_redirect_for_a_path_is_exported(jobs, lake, approve, short_code):
    job_id, path, newer = approve("/café/old", short_code=short_code), "/caf%C3%A9/old", "https://example.com/new"
    jobs.attach("acme", job_id, TO_TARGET, ANNA, NOW)
    assert (links_of(lake, "acme"), exported(jobs, lake)) == ([], {})
    mark(jobs, job_id)
    assert exported(jobs, lake) == {path: TARGET}
    assert jobs.redirects("acme", "other.example") == jobs.redirects("other") == []
    jobs.attach("acme", job_id, Draft("patch", redirect_to=newer), ANNA, NOW)
    mark(jobs, job_id, "shipped", 2, NOW + timedelta(minutes=1))
    assert exported(jobs, lake) == {path: newer}
    for number, left in ((2, {path: TARGET}), (1, {})):
        mark(jobs, job_id, "withdrawn", number)
        assert exported(jobs, lake) == left


def test_a_redirect_outlives_its_evidence_and_its_job(jobs, lake, approve):
    job_id = approve("/guide/old")
    jobs.attach("acme", job_id, TO_TARGET, ANNA, NOW)
    mark(jobs, job_id)
    erase_evidence(jobs.database, "acme", Criteria(domain="go.example.com"), NOW)
    jobs.dismiss_gone("acme", ["broken_link"], NOW + timedelta(days=400))
    assert exported(jobs, lake) == {"/guide/old": TARGET}
    with jobs.database.transaction() as connection:
        connection.execute("UPDATE job_history SET action = 'expire' WHERE action = 'erase'")
    jobs.dismiss_gone("acme", [], NOW + timedelta(days=400))
    assert exported(jobs, lake) == {"/guide/old": TARGET}


def test_a_rejected_redirect_writes_nothing(jobs, lake, approve):
    job_id = approve("/gone", short_code="gone")
    for draft, problem in [
        (Draft("patch", redirect_to="https://go.example.com/gone"), "the path itself"),
        (Draft("patch", redirect_to="ftp://example.com/"), "http"),
        (Draft("manual", redirect_to=TARGET), "patch"),
        (Draft("patch", url=TARGET, redirect_to=TARGET), "replaces"),
    ]:
        with pytest.raises(BadInput, match=problem):
            jobs.attach("acme", job_id, draft, ANNA, NOW)
    with pytest.raises(BadInput, match="paths without"):
        jobs.attach("acme", approve("/edit/*"), TO_TARGET, ANNA, NOW)
    with pytest.raises(JobChanged):
        jobs.attach("acme", job_id, TO_TARGET, ANNA, NOW, version=1)
    jobs.act("acme", job_id, "dismiss", ANNA, NOW)
    with pytest.raises(JobConflict):
        jobs.attach("acme", job_id, TO_TARGET, ANNA, NOW)
    assert (links_of(lake, "acme"), jobs.record("acme", job_id).implementation) == ([], None)


def test_unreadable_links_prevent_attaching_a_redirect(jobs, lake, approve):
    job_id = approve("/gone", short_code="gone")
    links(lake, "acme", [{"short_code": "other", "target_url": TARGET}])
    links_path(lake, "acme").unlink()
    with pytest.raises(LakeDamaged):
        jobs.attach("acme", job_id, TO_TARGET, ANNA, NOW)
    assert jobs.record("acme", job_id).implementation is None


def test_a_failed_write_of_a_link_is_repeated_later(jobs, lake, approve, monkeypatch):
    job_id = approve("/gone", short_code="gone")
    with monkeypatch.context() as patched:
        fail_at(patched, "data.store.link_files", "write_parquet")
        with pytest.raises(OSError, match="space"):
            jobs.attach("acme", job_id, TO_TARGET, ANNA, NOW)
    assert (links_of(lake, "acme"), jobs.record("acme", job_id).implementation_status) == ([], "attached")
    Maintenance(lake, jobs.database, lambda: NOW).write_links()
    assert [link.target_url for link in links_of(lake, "acme")] == [TARGET]
    assert organizations_that_want_links(jobs.database) == []


def test_a_redirects_link_is_written_once(jobs, lake, approve, monkeypatch):
    """A program that is killed before it deletes the pending link must not overwrite later edits by writing the link
    again."""
    job_id = approve("/gone", short_code="gone")
    jobs.add_implementation("acme", job_id, TO_TARGET, ANNA, NOW)
    with monkeypatch.context() as patched:
        fail_at(patched, "service.jobs.store", "delete_wanted_links")
        with pytest.raises(OSError, match="space"):
            jobs.write_links("acme")
    assert [link.target_url for link in links_of(lake, "acme")] == [TARGET]
    remove_link(lake, "acme", "gone", "go.example.com")
    jobs.write_links("acme")
    assert (links_of(lake, "acme"), organizations_that_want_links(jobs.database)) == ([], [])


@pytest.mark.parametrize("how", ["withdrawn", "erased"])
def test_a_withdrawn_or_erased_redirect_writes_no_link(jobs, lake, approve, how):
    job_id = approve("/gone", short_code="gone")
    jobs.add_implementation("acme", job_id, TO_TARGET, ANNA, NOW)
    if how == "withdrawn":
        mark(jobs, job_id, how)
    else:
        erase_evidence(jobs.database, "acme", Criteria(domain="go.example.com"), NOW)
    jobs.write_links("acme")
    assert links_of(lake, "acme") == []


def test_the_newer_of_two_redirects_for_one_code_wins(jobs, lake, approve):
    job_id = approve("/gone", short_code="gone")
    for target in (TARGET, "https://example.com/newer"):
        jobs.add_implementation("acme", job_id, Draft("patch", redirect_to=target), ANNA, NOW)
    jobs.write_links("acme")
    assert [link.target_url for link in links_of(lake, "acme")] == ["https://example.com/newer"]


def test_the_redirects_version_changes_only_with_redirects(jobs, approve):
    job_id, seen = approve("/guide/old"), [(jobs.redirects_version("acme"), [])]

    def look():
        seen.append((jobs.redirects_version("acme"), jobs.redirects("acme")))

    for number in (1, 2):
        jobs.attach("acme", job_id, Draft("patch", redirect_to=f"{TARGET}/{number}"), ANNA, NOW)
        look()
        mark(jobs, job_id, "shipped", number, NOW + timedelta(minutes=number))
        look()
    for number in (2, 1):
        mark(jobs, job_id, "withdrawn", number)
        look()
    versions = [version for version, _ in seen]
    assert [one == other for one, other in pairwise(versions)] == [True, False, True, False, False, False]
    assert len(set(versions)) == 5
    assert jobs.redirects_version("other") == ""


def test_an_organizations_shipped_redirects_are_limited(jobs, approve, monkeypatch):
    monkeypatch.setattr("service.jobs.implementation_tables.MAX_SHIPPED_REDIRECTS", 1)
    first, second = approve("/guide/old"), approve("/guide/older")
    for job_id in (first, second):
        jobs.attach("acme", job_id, TO_TARGET, ANNA, NOW)
    mark(jobs, first)
    with pytest.raises(JobConflict, match="acme would have 2 shipped redirects; the maximum is 1"):
        mark(jobs, second)
    mark(jobs, first, "withdrawn")
    mark(jobs, second)
    assert [one.path for one in jobs.redirects("acme")] == ["/guide/older"]


def test_the_three_most_similar_live_targets_are_suggested(jobs, lake, approve):
    def answered(path, times, **columns):
        at = {"domain": "go.example.com", "status": 200, "visited_at": datetime(2026, 3, 10, 9)} | columns
        return [visit(path=path, **at)] * times

    land(lake, "acme", [
        *answered("/spring-guides", 5), *answered("/spring-guide-2026", 3), *answered("/springguide", 4),
        *answered("/spring-guids", 2),  # too few
        *answered("/spring-guidd", 9, status=404), *answered("/spring-guidf", 9, domain="other.example"),
        *answered("/autumn-guide", 9), *answered("/spring-guidg", 9, visited_at=datetime(2026, 1, 1)),
        *answered("/spring-guidh", 9, is_malicious=True), *answered("/spring-guide", 9, status=404),
    ])  # fmt: skip
    links(lake, "acme", [
        {"short_code": "spring-guid", "target_url": TARGET}, {"short_code": "spring", "target_url": TARGET},
        {"short_code": "spring-guidi", "target_url": TARGET, "domain": "other.example"},
    ])  # fmt: skip
    job = jobs.job("acme", approve("/spring-guide"))
    with closing(Warehouse(lake)) as warehouse:
        found = redirect_guesses(warehouse, job, date(2026, 3, 15))
        manual = jobs.create(manual_job("acme", "Do it", "Now.", ANNA, NOW), ANNA, NOW)
        assert redirect_guesses(warehouse, jobs.job("acme", manual.id), date(2026, 3, 15)) == []
    assert [(one.path, one.redirect_to, one.visits) for one in found] == [
        ("/spring-guides", "https://go.example.com/spring-guides", 5),
        ("/springguide", "https://go.example.com/springguide", 4),
        ("/spring-guid", TARGET, 0),
    ]
    # Jaro's similarity of strings with 13 common letters, plus 0.4 of the rest to 1 for 4 equal first letters (Winkler)
    jaro = (1 + 13 / 14 + 1) / 3
    assert found[0].similarity == round(jaro + 0.4 * (1 - jaro), 3)


@pytest.mark.parametrize(
    ("before", "since", "covered", "is_shipped"),
    [(0, 3, 28, True), (0, 2, 28, False),  # once or twice may be chance
     (1, 3, 28, False), (0, 3, 13, False)],  # it worked already, or it is not known whether it did
)  # fmt: skip
def test_a_redirect_seen_in_the_log_is_marked_as_shipped(jobs, lake, approve, before, since, covered, is_shipped):
    job_id = approve("/gone")
    jobs.attach("acme", job_id, TO_TARGET, ANNA, NOW)

    def asked(days, status, path="/gone"):
        at = NOW.replace(tzinfo=None) + timedelta(days, hours=1)
        return visit(visited_at=at, domain="go.example.com", path=path, status=status)

    quiet = [asked(days, 404) for days in (-covered, -1, 0)]
    land(lake, "acme", [*quiet, *[asked(-5, 302)] * before, *[asked(1, 302)] * since, asked(2, 404)])
    with database_of(lake.manifest).transaction() as db:
        note_received(db, "acme", *((NOW + timedelta(days)).isoformat() for days in (-covered, 3)))
    with closing(Warehouse(lake)) as warehouse:
        Detection(warehouse, lake, jobs, "acme").mark_shipped(NOW + timedelta(3))
    record = jobs.record("acme", job_id)
    if is_shipped:
        assert record.implementation.shipped_at == NOW + timedelta(1, hours=1)
        assert (record.history[-1].actor, record.history[-1].note) == ("system", "implementation 1, by the log")
    else:
        assert record.implementation.status == "attached"
