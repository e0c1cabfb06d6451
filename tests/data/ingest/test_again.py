"""A log imported again after its visits were erased lands once, and only if none of its visits are left."""

from collections import Counter
from datetime import date

import pytest

from data.errors import BadInput
from data.ingest.importer import Importer, Options
from tests.support.lakes import failing_at, rebuilt, rows_of
from tests.support.manifests import database_of
from tests.support.published import erase

ACME = Options("acme", "a.example", "combined")


def line(path, day=4, host=""):
    return f'{host}203.0.113.7 - - [{day:02}/Mar/2026:10:05:03 +0000] "GET {path} HTTP/1.1" 200 5 "-" "curl/8.5"\n'


LOG = line("/a", 4) + line("/b", 5)


@pytest.fixture
def load(lake, load):
    """Import a string as a file, as a new run of the program would."""
    return lambda text, options=ACME, name="access.log", **how: load(text, options, name, Importer(lake), **how)


def domains(lake):
    return Counter((row["path"], row["domain"]) for row in rows_of(lake))


WHOLE = Counter({("/a", "a.example"): 1, ("/b", "a.example"): 1})


@pytest.mark.parametrize("first", ["", "b.example", "a.example"])
def test_an_erased_log_lands_again_with_the_right_domain(lake, load, first):
    load(line("/a", 4) if not first else LOG, Options("acme", first, "combined"))  # one log has grown since
    erase(lake, domain=first or None, no_domain=None if first else True)
    summary = load(LOG, again=True)
    assert (summary.visits, summary.already_imported, summary.continued) == (2, False, False)
    assert domains(lake) == WHOLE
    assert load(LOG).already_imported
    assert load(LOG + line("/c")).visits == 1
    assert {batch.domain for batch in lake.manifest.logs.batches("acme")} == {"a.example"}


@pytest.mark.parametrize(("first", "dry_run"), [("", False), ("b.example", True), ("a.example", False)])
def test_importing_again_is_rejected_until_visits_are_erased(lake, load, first, dry_run):
    load(LOG, Options("acme", first, "combined"))
    load(line("/other", 9), name="other.log")
    flag = f"--domain {first}" if first else "--no-domain"
    wanted = rf"`traffic erase --org acme {flag} --since 2026-03-04 --before 2026-03-06`"
    with pytest.raises(BadInput, match=wanted):
        load(LOG, again=True, dry_run=dry_run)
    assert len(rows_of(lake)) == 3
    days = {"since": date(2026, 3, 4), "before": date(2026, 3, 6)}
    erase(lake, domain=first or None, no_domain=None if first else True, **days)
    assert load(LOG, again=True, dry_run=dry_run).visits == 2
    assert len(rows_of(lake)) == (1 if dry_run else 3)


def test_visits_on_other_days_and_domains_do_not_block_an_import(lake, load):
    load(line("/day", 6), name="day.log")
    load(line("/domain", 4), Options("acme", "b.example", "combined"), name="domain.log")
    load(line("/organization", 4), Options("other", "a.example", "combined"), name="organization.log")
    assert load(LOG, again=True).visits == 2
    assert load(LOG).already_imported


def test_logs_that_share_a_day_can_be_imported_again_in_one_run(lake, load, tmp_path):
    load(line("/old", 3) + line("/shared", 4), name="access.log.1")
    load(LOG)
    erase(lake, domain="a.example")
    (tmp_path / "copy.log").write_text(LOG + line("/c", 6))
    importer = Importer(lake)
    names = ("access.log.1", "access.log", "access.log", "copy.log")
    told = [importer.run(tmp_path / name, ACME, again=True) for name in names]
    assert [one.already_imported for one in told] == [False, False, True, False]
    assert told[-1].visits == 1
    assert len(rows_of(lake)) == 5
    with pytest.raises(BadInput, match="erase"):
        load(LOG, again=True)


def test_a_log_with_hosts_is_checked_for_its_own_domains(lake, load):
    text, options = line("/a", host="go.example "), Options("acme", "a.example")
    load(text, Options("acme"))
    with pytest.raises(BadInput, match=r"--domain go\.example --since 2026-03-04"):
        load(text, options, again=True)
    erase(lake, domain="go.example")
    load(text, options, again=True)
    assert domains(lake) == {("/a", "go.example"): 1}


def test_reported_erasures_do_not_name_the_visitor(today, lake, load):
    load(LOG)
    for criteria in (
        {"short_code": "a"},
        {"visitor": 0x123456789ABCDEF0, "before": date(2026, 3, 5)},
        {"short_code": "early", "before": date(2026, 3, 4)},
        {"short_code": "late", "since": date(2026, 3, 6)},
        {"domain": "a.example"},
    ):
        erase(lake, **criteria)
    assert str(0x123456789ABCDEF0) not in str(database_of(lake.manifest).rows("SELECT * FROM erasures"))
    told = list(map(str, load(LOG, again=True, dry_run=True).erasures))
    assert told == [f"visits to the link a were erased on {today}", f"visits by a visitor were erased on {today}"]
    assert load(LOG, Options("other", log_format="combined"), dry_run=True).erasures == []


def test_importing_again_survives_a_crash_and_a_rebuild(lake, load, tmp_path):
    load(LOG)
    erase(lake, domain="a.example")
    with failing_at("data.store.landing", "move_durably", 2):
        load(LOG, again=True)
    assert rows_of(lake) == []
    load(LOG, again=True)
    assert domains(lake) == WHOLE
    with rebuilt(lake) as again:
        assert domains(again) == WHOLE
        assert Importer(again).run(tmp_path / "access.log", ACME).already_imported
