"""Lakes that earlier releases have written: with this program, their answers are the same, and they stay usable.

tests/fixtures contains each lake, which is never recreated, and the answers that its release gave.
test_newer_program.py also runs these tests with a program that has one more column.
"""

import json
import sqlite3
import tarfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from data import Lake
from data.disk.locks import shared
from data.errors import Conflict
from data.ingest.importer import Importer, Options
from data.links.links import LinkEdit, edit_links, links_of, new_link
from data.manifest import database
from data.recovery.verification import verify_lake
from data.signals import BITS
from data.store import pending
from data.tasks.compaction import Compactor
from data.tasks.erasure import Criteria, Eraser
from data.visits import COLUMNS
from queries import RollupBuilder
from service.access.api_keys import ApiKeys
from service.core import control_database
from service.core.control_database import CONTROL, ControlDatabase
from service.dashboard.shares import ShareStore
from service.exclusions.files import plan_files, switch_files
from tests.support.lakes import opened, rebuilt
from tests.support.release_lakes import (
    NAMES,
    NOW,
    ORGANIZATIONS,
    answers,
    answers_of,
    control_of,
    recounted,
    visits_of,
)
from tests.support.user_agents import CHROME, GPTBOT

FIXTURES = Path(__file__).parent / "fixtures"
LATER = datetime(2026, 3, 20, 12, tzinfo=UTC)
"""The time at which the lakes are used again."""
MIGRATIONS = {"manifest.sqlite": database.MIGRATIONS, CONTROL: control_database.MIGRATIONS}
VERSIONS = {"1.0.0": {"manifest.sqlite": 1, CONTROL: 1}, "1.1.0": {"manifest.sqlite": 7, CONTROL: 4}}
CLIENTS = (
    (CHROME, "https://chatgpt.com/", "/launch?utm_source=chatgpt.com"),
    (CHROME, "-", "/sale?utm_source=news&utm_medium=email&utm_campaign=spring&utm_term=links&utm_content=top"),
    (GPTBOT, "-", "/launch"),
    ("Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)", "-", "/sale"),
    ("zgrab/0.x", "-", "/.env"),
)
of_1_0_0 = pytest.mark.parametrize("release", ["1.0.0"], indirect=True)
of_1_1_0 = pytest.mark.parametrize("release", ["1.1.0"], indirect=True)
for_each_organization = pytest.mark.parametrize(
    ("release", "organization"),
    [(release, name) for release, names in ORGANIZATIONS.items() for name in names],
    indirect=["release"],
)


@pytest.fixture(params=ORGANIZATIONS)
def release(request):
    return request.param


@pytest.fixture
def stored(release):
    """The answers that the release gave, and what its databases contained."""
    return json.loads((FIXTURES / f"lake-{release}.json").read_text())


@pytest.fixture
def root(release, tmp_path):
    with tarfile.open(FIXTURES / f"lake-{release}.tar.xz") as archive:
        archive.extractall(tmp_path, filter="data")
    yield tmp_path / "lake"
    with opened(tmp_path / "lake") as lake:
        assert verify_lake(lake).findings == []


@pytest.fixture
def lake(root):
    with opened(root) as lake:
        yield lake


def test_links_of_the_release_can_be_edited(root):
    with opened(root) as lake:
        first, *others = links_of(lake, "acme")
        edits = [
            LinkEdit(first.short_code, first.domain, None),
            LinkEdit("new", "", new_link("new", "", first.target_url, LATER)),
        ]
        ((before, _), _) = edit_links(lake, "acme", edits)
        assert before == first
        assert lake.manifest.links.live("acme").changes
        with rebuilt(lake, is_lost=False) as again:
            codes = [link.short_code for link in links_of(again, "acme")]
        assert codes == sorted(["new", *(link.short_code for link in others)])


def version_of(root):
    with closing(sqlite3.connect(root / "manifest.sqlite")) as db:
        return db.execute("PRAGMA user_version").fetchone()[0]


@of_1_0_0
def test_a_lake_in_use_by_another_program_is_not_upgraded(root, monkeypatch):
    monkeypatch.setattr("data.manifest.generation._MAX_UPGRADE_WAIT_SECONDS", 0.0)
    (root / ".staging").mkdir()
    with shared(root), pytest.raises(Conflict, match="cannot be upgraded while another program has the lake open"):
        Lake(root)
    assert version_of(root) == 1


@of_1_0_0
def test_an_upgrade_waits_for_another_program_that_stops(root, monkeypatch):
    (root / ".staging").mkdir()
    with ExitStack() as other:
        other.enter_context(shared(root))
        monkeypatch.setattr("data.manifest.generation.time.sleep", lambda _: other.close())
        Lake(root).manifest.close()
    assert version_of(root) == len(database.MIGRATIONS)


@of_1_0_0
def test_several_programs_can_upgrade_the_lake_simultaneously(root):
    with ThreadPoolExecutor() as threads:
        for lake in threads.map(Lake, [root] * 4):
            lake.manifest.close()
    assert version_of(root) == len(database.MIGRATIONS)


def test_an_upgrade_keeps_a_copy_of_each_older_database(root, release):
    with opened(root) as lake:
        ControlDatabase(lake).close()
    older = {f"{name}.before-{one}" for name, one in VERSIONS[release].items() if one < len(MIGRATIONS[name])}
    assert {path.name for path in root.glob("*.before-*")} == older


def test_every_column_of_the_release_has_values(lake, release):
    rows = [row for organization in ORGANIZATIONS[release] for row in visits_of(lake, organization)]
    assert [one.name for one in COLUMNS if one.since == 1 and all(row[one.name] is None for row in rows)] == []


@of_1_1_0
def test_every_signal_of_the_release_is_in_the_lake(lake, release, stored):
    rows = [row for organization in ORGANIZATIONS[release] for row in visits_of(lake, organization)]
    assert [name for name, bit in stored["bits"].items() if not any(row["signals"] & bit for row in rows)] == []


@of_1_1_0
def test_signals_keep_the_bits_of_the_release(stored):
    assert stored["bits"].items() <= BITS.items()


@pytest.mark.parametrize("name", MIGRATIONS)
def test_tables_match_the_migrations_of_the_release(root, release, name):
    version = VERSIONS[release][name]
    with closing(sqlite3.connect(root / name)) as stored, closing(sqlite3.connect(":memory:")) as made:
        assert stored.execute("PRAGMA user_version").fetchone() == (version,)
        for migration in MIGRATIONS[name][:version]:
            made.executescript(migration)
        without_indents = "SELECT name, replace(sql, '  ', '') FROM sqlite_schema"
        schemas = [set(db.execute(without_indents)) for db in (stored, made)]
    assert schemas[0] == schemas[1]


@pytest.mark.parametrize("name", MIGRATIONS)
def test_every_table_of_the_release_has_rows(root, name):
    with closing(sqlite3.connect(root / name)) as stored:
        names = [table for (table,) in stored.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
        assert len(names) > 10
        assert [table for table in names if not stored.execute(f"SELECT 1 FROM {table} LIMIT 1").fetchall()] == []


def test_answers_are_the_same_as_in_the_release(root, stored):
    """Endpoints that were added later are tested only by the recount."""
    told = answers_of(root)
    assert {
        (organization, name)
        for organization, answered in stored["answers"].items()
        for name in answered.keys() & NAMES
        if told[organization][name] != answered[name]
    } == set()


def test_the_control_database_keeps_the_content_of_the_release(root, release, stored):
    told = control_of(root)
    for job in told["jobs"] if release == "1.0.0" else ():  # with one subject, shown as domain and path
        path = {"domain": job["domain"], "path": job["path"]}
        assert job.pop("subjects") == ([path] if job["path"] else [])
        assert job["implementation"] is None or job["implementation"].pop("subject") is None
    assert told == stored["control"]


def test_secrets_of_the_release_stay_valid(lake, stored):
    with closing(ControlDatabase(lake)) as control:
        assert ApiKeys(control, lambda: NOW).find(stored["shown"]["key"]).organization == "acme"
        assert ShareStore(control, lambda: NOW).share(stored["shown"]["share"]).organization == "berlin"


@for_each_organization
def test_the_lake_matches_the_recount_and_still_works(lake, organization, tmp_path):
    assert recounted(lake, organization) == answers(lake, organization)
    before, waiting = len(visits_of(lake, organization)), 6
    pending.flush_all(lake)
    log = tmp_path / "more.log"
    log.write_text(
        "".join(
            f"203.0.113.{number} - - [{NOW - timedelta(days=1, hours=number):%d/%b/%Y:%H:%M:%S} +0000] "
            f'"GET {path} HTTP/1.1" 302 500 "{referrer}" "{agent}"\n'
            for number, (agent, referrer, path) in enumerate(CLIENTS * 2)
        )
    )
    importer = Importer(lake, lambda: LATER)
    added = importer.run(log, Options(organization, "www.example")).visits
    importer.readers.close()
    Compactor(lake, lambda: LATER).run()
    assert {row["signals"] is None for row in visits_of(lake, organization)} == {False}
    RollupBuilder(lake, lambda: LATER).run()
    assert len(visits_of(lake, organization)) == before + waiting + added
    assert recounted(lake, organization) == answers(lake, organization)
    erased = Eraser(lake, lambda: LATER).run(organization, Criteria(domain="www.example")).visits
    assert erased == added
    assert recounted(lake, organization) == answers(lake, organization)


@for_each_organization
def test_files_can_be_set_aside_and_counted_again(lake, organization, tmp_path):
    pending.flush_all(lake)
    files = plan_files(lake, organization).files
    log = tmp_path / "files.log"
    log.write_text(
        "".join(
            f"203.0.113.{number} - - [{NOW - timedelta(days=1, hours=number):%d/%b/%Y:%H:%M:%S} +0000] "
            f'"GET {path} HTTP/1.1" 200 500 "-" "{CHROME}"\n'
            for number, path in enumerate(("/a.css", "/b.png", "/sale", "/c.js?v=1"))
        )
    )
    importer = Importer(lake, lambda: LATER)
    importer.run(log, Options(organization, "www.example"))
    importer.readers.close()
    counted = len(visits_of(lake, organization))
    files += 3
    assert plan_files(lake, organization)[:2] == (counted, files)
    totals = []
    for aside in (True, False):
        switch_files(lake, organization, aside=aside)
        assert recounted(lake, organization, files_aside=aside) == answers(lake, organization)
        totals.append(answers(lake, organization)["dashboard"]["overview"]["total_visits"])
    assert totals[1] - totals[0] == files
