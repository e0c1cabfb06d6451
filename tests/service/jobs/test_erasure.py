"""Erasures delete the evidence that counts the erased visits, along with every word that came from those visits."""

from datetime import date, timedelta

from data.tasks.erasure import Criteria
from data.tasks.retention import apply_retention
from service.core.encoding import encode
from service.jobs.erasure import ErasedEvidence, erase_evidence, expire_evidence
from service.jobs.implementations import Draft
from service.jobs.manual import manual_job
from service.jobs.subjects import read_shipped
from tests.service.jobs.findings import ANNA, NOW, ROW, broken, measured, ship
from tests.support.tables import examples

ALL = Criteria()
LATER = NOW + timedelta(days=1)


@examples("criteria", "erased")
def test_evidence_is_deleted_with_the_visits_it_may_count(lake, jobs, only, criteria, erased):
    jobs.upsert(broken(), NOW)
    days = {name: date.fromisoformat(text) for name, text in criteria.items() if name in ("since", "before")}
    visits = Criteria(**{**criteria, **days})
    before = only()
    assert erase_evidence(jobs.database, "acme", visits, LATER, dry_run=True).rows == erased
    assert erase_evidence(jobs.database, "other", visits, LATER).rows == 0
    assert only() == before
    assert erase_evidence(jobs.database, "acme", visits, LATER) == ErasedEvidence(erased, erased, 0)
    assert (only().evidence is None) == bool(erased)


def test_erasing_evidence_leaves_nothing_derived_from_visits(lake, jobs, only):
    jobs.upsert(broken("/some-secret-path"), NOW)
    job = only()
    url, note = "https://git.example/some-secret-path", "for /some-secret-path"
    draft = Draft("patch", "text/plain", "Disallow: /some-secret-path", url, note)
    ship(jobs, job.id, draft=draft)
    jobs.set_outcome("acme", job.id, measured("waiting"), NOW)

    def is_kept():
        return any(b"some-secret-path" in path.read_bytes() for path in lake.root.glob("control.sqlite*"))

    assert is_kept()
    assert erase_evidence(jobs.database, "acme", ALL, LATER) == ErasedEvidence(1, 1, 1)
    job = only()
    assert (job.status, job.domain, job.path, job.evidence_rows) == ("dismissed", None, None, 0)
    assert (job.history[-1].action, job.history[-1].actor_kind) == ("erase", "system")
    implementation = jobs.implementation("acme", job.id, 1)
    assert (implementation.content, implementation.note, implementation.url) == (None, None, None)
    assert (job.outcome.status, job.outcome.before) == ("none", None)
    assert read_shipped(jobs.database, "acme") == []
    assert b"some-secret-path" not in encode(job)
    assert not is_kept()
    assert jobs.upsert(broken("/some-secret-path"), LATER) == "created"  # found in other visits, it is another job
    assert sorted(row.status for row in jobs.of("acme")) == ["dismissed", "new"]


def test_erasing_evidence_leaves_other_rows_and_dismissals(jobs, only):
    jobs.upsert(broken(rows=[{**ROW, "path": "/gone", "short_code": code} for code in ("gone", "kept", "left")]), NOW)
    assert erase_evidence(jobs.database, "acme", Criteria(short_code="gone"), LATER) == ErasedEvidence(1, 1, 0)
    job = only()
    assert ([row["short_code"] for row in job.evidence.rows], job.evidence_rows) == (["kept", "left"], 2)
    assert (job.status, job.path, job.version) == ("new", "/gone", 2)
    jobs.act("acme", job.id, "dismiss", ANNA, NOW)
    assert erase_evidence(jobs.database, "acme", Criteria(short_code="left"), LATER).rows == 1
    assert jobs.upsert(broken(), LATER) == "ignored"


def test_erasing_evidence_dismisses_no_closed_or_manual_job(lake, jobs):
    jobs.upsert(broken(), NOW)
    (found,) = jobs.of("acme")
    jobs.act("acme", found.id, "approve_fix", ANNA, NOW)
    jobs.act("acme", found.id, "resolve", ANNA, NOW)
    by_hand = jobs.create(manual_job("acme", "Do it", "Now.", ANNA, NOW, domain="go.example.com"), ANNA, NOW)
    assert erase_evidence(jobs.database, "acme", ALL, LATER).jobs == 1
    assert jobs.record("acme", found.id).status == "resolved"
    assert jobs.record("acme", by_hand.id) == by_hand


def test_evidence_from_days_past_retention_is_deleted(lake, jobs):
    kept_from = apply_retention(lake, 1, NOW).before
    assert kept_from == date(2026, 3, 14)
    for organization in ("acme", "other"):
        jobs.upsert(broken(organization=organization), NOW)
    for before, expired in ((kept_from, 0), (kept_from + timedelta(days=1), 2)):
        assert expire_evidence(jobs.database, before, LATER, dry_run=True).jobs == expired
        assert expire_evidence(jobs.database, before, LATER, organization="acme").jobs == expired // 2
        assert expire_evidence(jobs.database, before, LATER).jobs == expired // 2
