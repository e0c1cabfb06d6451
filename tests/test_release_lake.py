"""Opens the lake of 1.0.0 with this program: the answers are the same, and the lake stays usable.

tests/fixtures has the lake, which is never recreated, and the answers of 1.0.0. test_newer_program.py also runs these
tests with a program that knows one more column.
"""

import json
import sqlite3
import tarfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import msgspec
import orjson
import pyarrow.parquet as pq
import pytest

from data import Lake
from data.disk.locks import shared
from data.errors import Conflict
from data.ingest.importer import Importer, Options
from data.links.links import LinkEdit, edit_links, links_of, new_link
from data.manifest import database
from data.recovery.verification import verify_lake
from data.store import pending
from data.tasks.compaction import Compactor
from data.tasks.erasure import Criteria, Eraser
from data.visits import COLUMNS
from queries import ENDPOINTS, ENTRIES, RollupBuilder, Scope
from service.access.api_keys import ApiKeys
from service.core import control_database
from service.core.control_database import CONTROL, ControlDatabase
from service.core.encoding import encode
from service.dashboard.shares import ShareStore
from service.exclusions.files import plan_files, switch_files
from service.hooks.registry import Hooks
from service.jobs.store import Jobs
from tests.recount import local_time, recount
from tests.support.lakes import links_path, opened, rebuilt
from tests.support.sql import answers as answers_of
from tests.support.user_agents import CHROME, GPTBOT

FIXTURES = Path(__file__).parent / "fixtures"
STORED = json.loads((FIXTURES / "lake-1.0.0.json").read_text())
NOW, LATER = datetime(2026, 3, 15, 12, tzinfo=UTC), datetime(2026, 3, 20, 12, tzinfo=UTC)
"""The time when the lake was made, and the time when it is used again."""
ORGANIZATIONS = "acme", "berlin"
CLIENTS = (
    (CHROME, "https://chatgpt.com/", "/launch?utm_source=chatgpt.com"),
    (CHROME, "-", "/sale?utm_source=news&utm_medium=email&utm_campaign=spring&utm_term=links&utm_content=top"),
    (GPTBOT, "-", "/launch"),
    ("Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)", "-", "/sale"),
    ("zgrab/0.x", "-", "/.env"),
)
PARTS = {entry.name for _, entry in ENTRIES["dashboard"].members}
NAMES = [name for name in ENDPOINTS if name not in PARTS]
"""The endpoints to compare: the dashboard stands for its reports."""
DAYS = date(2026, 3, 10), date(2026, 3, 15)


def answers(lake, organization):
    return answers_of(lake, Scope(organization, *DAYS), NAMES)


def told_by(root):
    """Return what a program knows about the lake: answers of each organization, and the content of control.sqlite."""
    with opened(root) as lake, closing(ControlDatabase(lake)) as control:
        jobs, hooks, keys = Jobs(control), Hooks(control), ApiKeys(control, lambda: NOW)
        shares = ShareStore(control, lambda: NOW)
        stores = {
            "jobs": [jobs.record("acme", job.id) for job in jobs.of("acme")],
            "hooks": hooks.of("acme"),
            "deliveries": [hooks.deliveries("acme", hook.id) for hook in hooks.of("acme")],
            "keys": keys.all_keys(),
            "shares": shares.shares_of("berlin"),
        }
        control_rows = msgspec.json.decode(msgspec.json.encode(stores))
        return {"answers": {name: answers(lake, name) for name in ORGANIZATIONS}, "control": control_rows}


def visits_of(lake, organization):
    """Return the visits of its live files in the form of tests/recount.py."""
    rows = [
        row
        for file in lake.manifest.files.live(organization)
        for row in pq.read_table(lake.root / file.path, partitioning=None).to_pylist()
    ]
    return [row | {"organization": organization, "day": local_time(row).date()} for row in rows]


def recounted(lake, organization, *, files_aside=False):
    rows = pq.read_table(links_path(lake, organization), partitioning=None).to_pylist()
    links = [row | {"organization": organization} for row in rows]
    visits, scope = visits_of(lake, organization), Scope(organization, *DAYS)
    countries, behaviour = {"DE": "Germany", "US": "United States"}, organization == "acme"
    return {
        name: orjson.loads(
            encode(recount(name, visits, scope, links, None, countries, behaviour, files_aside=files_aside))
        )
        for name in NAMES
    }


@pytest.fixture
def root(tmp_path):
    with tarfile.open(FIXTURES / "lake-1.0.0.tar.xz") as archive:
        archive.extractall(tmp_path, filter="data")
    yield tmp_path / "lake"
    with opened(tmp_path / "lake") as lake:
        assert verify_lake(lake).findings == []


@pytest.fixture
def lake(root):
    with opened(root) as lake:
        yield lake


def test_edits_are_applied_over_its_links(root):
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


def test_no_upgrade_while_another_program_has_the_lake_open(root, monkeypatch):
    monkeypatch.setattr("data.manifest.generation._MAX_UPGRADE_WAIT_SECONDS", 0.0)
    (root / ".staging").mkdir()
    with shared(root), pytest.raises(Conflict, match="cannot be upgraded while another program has the lake open"):
        Lake(root)
    assert version_of(root) == 1


def test_an_upgrade_waits_for_another_program_that_stops(root, monkeypatch):
    (root / ".staging").mkdir()
    with ExitStack() as other:
        other.enter_context(shared(root))
        monkeypatch.setattr("data.manifest.generation.time.sleep", lambda _: other.close())
        Lake(root).manifest.close()
    assert version_of(root) == len(database.MIGRATIONS)


def test_two_programs_can_upgrade_the_lake_at_once(root):
    with ThreadPoolExecutor() as threads:
        for lake in threads.map(Lake, [root] * 4):
            lake.manifest.close()
    assert version_of(root) == len(database.MIGRATIONS)


def test_every_column_of_1_0_0_has_values_in_the_lake(lake):
    rows = [row for organization in ORGANIZATIONS for row in visits_of(lake, organization)]
    assert [one.name for one in COLUMNS if one.since == 1 and all(row[one.name] is None for row in rows)] == []


@pytest.mark.parametrize(
    ("database", "migrations"), [("manifest.sqlite", database.MIGRATIONS), (CONTROL, control_database.MIGRATIONS)]
)
def test_tables_match_the_first_migration(root, database, migrations):
    with closing(sqlite3.connect(root / database)) as stored, closing(sqlite3.connect(":memory:")) as made:
        assert stored.execute("PRAGMA user_version").fetchone() == (1,)
        made.executescript(migrations[0])
        without_indents = "SELECT name, replace(sql, '  ', '') FROM sqlite_schema"
        schemas = [set(db.execute(without_indents)) for db in (stored, made)]
        names = [name for (name,) in stored.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
        assert len(names) > 10
        assert [name for name in names if not stored.execute(f"SELECT 1 FROM {name} LIMIT 1").fetchall()] == []
    assert schemas[0] == schemas[1]


def test_answers_and_secrets_of_1_0_0_stay_valid(root):
    """Endpoints that were added later are left to the recount."""
    told = told_by(root)
    for organization, stored in STORED["answers"].items():
        for name in stored.keys() & NAMES:
            assert told["answers"][organization][name] == stored[name], name
    for job in told["control"]["jobs"]:  # 1.0.0 had one subject, and showed it as domain and path only
        path = {"domain": job["domain"], "path": job["path"]}
        assert job.pop("subjects") == ([path] if job["path"] else [])
        assert job["implementation"] is None or job["implementation"].pop("subject") is None
    assert told["control"] == STORED["control"]
    with opened(root) as lake, closing(ControlDatabase(lake)) as control:
        assert ApiKeys(control, lambda: NOW).find(STORED["shown"]["key"]).organization == "acme"
        assert ShareStore(control, lambda: NOW).share(STORED["shown"]["share"]).organization == "berlin"


@pytest.mark.parametrize("organization", ORGANIZATIONS)
def test_the_lake_matches_the_recount_and_still_works(lake, organization, tmp_path):
    assert recounted(lake, organization) == answers(lake, organization)
    before, waiting = len(visits_of(lake, organization)), pending.flush_all(lake) // len(ORGANIZATIONS)
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


@pytest.mark.parametrize("organization", ORGANIZATIONS)
def test_files_can_be_set_aside_and_counted_again(lake, organization, tmp_path):
    pending.flush_all(lake)
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
    assert plan_files(lake, organization)[:2] == (counted, 3)
    totals = []
    for aside in (True, False):
        switch_files(lake, organization, aside=aside)
        assert recounted(lake, organization, files_aside=aside) == answers(lake, organization)
        totals.append(answers(lake, organization)["dashboard"]["overview"]["total_visits"])
    assert totals[1] - totals[0] == 3
