"""A lake as the program of commit 76fa19b wrote it, opened by today's, and by one whose visits have one more column.

A run of all tests asks about each place once, of the lake as it is or with its days counted ahead; the program with
one more column runs a sample. With `TRAFFIC_FAULTS=all` both do everything.
"""

import json
import os
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from datetime import UTC, date, datetime
from hashlib import sha256
from pathlib import Path

import orjson
import pyarrow.parquet as pq
import pytest

from data import Lake
from data.errors import NewerVersion
from data.ingest.live import LiveIngest
from data.logs.reported import Submission
from data.maintenance.backup import back_up
from data.maintenance.compaction import Compactor
from data.maintenance.erasure import Criteria, Eraser, delete_files
from data.maintenance.rebuild import Rebuild, locked_for_rebuild
from data.maintenance.reclassification import Reclassifier
from data.maintenance.status import status_of
from data.maintenance.verification import verify_lake
from data.store import pending
from data.store.files import version_of
from data.visits import COLUMNS, SCHEMA_VERSION, VISITS
from queries import ENDPOINTS, ENTRIES, RollupBuilder, Scope, Warehouse
from service.api_keys import ApiKeys
from service.control_database import MIGRATIONS
from service.encoding import encode
from service.jobs.records import COMMAND_LINE
from service.jobs.store import Jobs
from service.pages.sessions import SessionStore
from tests.faults.trials import IS_LONG
from tests.lakes import opened
from tests.sql import rows
from tests.visits import land, packed, visit

ROOT = Path(__file__).parent.parent
FIXTURE = ROOT / "tests/fixtures/lake-76fa19b"
RECORDED = json.loads(FIXTURE.with_name("lake-76fa19b-answers.json").read_bytes())
AFTERWARDS = RECORDED["afterwards"]
NOW = datetime(2026, 5, 31, 9, tzinfo=UTC)
WHOLE = (date(2026, 3, 1), date(2026, 5, 31))
DAYS = {"april": (date(2026, 4, 1), date(2026, 4, 30))}
FILTERS = {
    "domain": {"domain": "link.example.org"}, "short_code": {"short_code": "launch"}, "ai": {"traffic_type": "ai"},
}  # fmt: skip
MADE_UP = [column.name for column in COLUMNS if column.name == "made_up"]
"""The column that tests.newer_schema adds, where it does."""
PLACES = [*RECORDED["answers"]]
AS_IT_IS, AHEAD = (PLACES, PLACES) if IS_LONG else (PLACES[::2], PLACES[1::2])
"""Where is asked of the lake as it is, and with its days counted ahead."""


def copied(folder):
    """A copy of the old lake; git keeps no modes."""
    shutil.copytree(FIXTURE, folder)
    for name in ("control.sqlite", "salts.sqlite"):
        (folder / name).chmod(0o600)
    return folder


@pytest.fixture
def lake(tmp_path):
    lake = Lake(copied(tmp_path / "lake"))
    yield lake
    lake.manifest.close()


def scope_of(place):
    organization, name = place.split()
    return Scope(organization, *DAYS.get(name, WHOLE), **FILTERS.get(name, {}))


@pytest.fixture(scope="module")
def untouched(tmp_path_factory):
    """A warehouse of the lake as it is, for tests that only ask."""
    lake = Lake(copied(tmp_path_factory.mktemp("untouched") / "lake"))
    with closing(lake.manifest), closing(Warehouse(lake)) as warehouse:
        yield warehouse


@pytest.fixture(scope="module")
def counted(tmp_path_factory):
    """A warehouse of the lake whose days are counted ahead by today's relations."""
    lake = Lake(copied(tmp_path_factory.mktemp("counted") / "lake"))
    assert RollupBuilder(lake, lambda: NOW).run(limit=1 if MADE_UP and not IS_LONG else None) > 0
    with closing(lake.manifest), closing(Warehouse(lake)) as warehouse:
        yield warehouse


def answers(lake, organization, names):
    """Answers over the whole range."""
    with closing(Warehouse(lake)) as warehouse:
        return asked(warehouse, Scope(organization, *WHOLE), names)


def asked(warehouse, scope, names):
    variables = warehouse.variables(scope)
    return {name: without_source(orjson.loads(encode(warehouse.answer(ENTRIES[name], variables)))) for name in names}


def without_source(answer):
    """An answer without the source of referrers, which came after these answers were recorded."""
    if isinstance(answer, list):
        return [without_source(part) for part in answer]
    if isinstance(answer, dict):
        return {
            name: without_source(part)
            for name, part in answer.items()
            if (name, "referrer" in answer) != ("source", True)
        }
    return answer


def versions(lake, organization="acme"):
    """How many live files of each schema version there are, by what the manifest says; the footers say the same."""
    files = lake.manifest.live_files(organization)
    assert [version_of(pq.read_metadata(lake.root / file.path)) for file in files] == [
        file.schema_version for file in files
    ]
    found = [file.schema_version for file in files]
    return {version: found.count(version) for version in found}


def total(lake, *organizations):
    """How many visits some organizations have, or acme, by what they are answered."""
    with closing(Warehouse(lake)) as warehouse:
        return sum(counted_by(warehouse, name) for name in organizations or ["acme"])


def counted_by(warehouse, organization="acme"):
    return asked(warehouse, Scope(organization, *WHOLE), ["traffic-overview"])["traffic-overview"]["total_visits"]


def assert_sound(lake):
    assert verify_lake(lake).findings == []


def with_everything_landed(lake):
    assert pending.flush_all(lake) == AFTERWARDS["flushed"]


@pytest.mark.parametrize("place", AS_IT_IS)
def test_every_answer_is_what_it_was(untouched, place):
    recorded = RECORDED["answers"][place]
    assert asked(untouched, scope_of(place), recorded) == recorded


@pytest.mark.parametrize("organization", ["acme", "other"] if IS_LONG else ["acme"])
def test_the_dashboard_is_what_it_was(untouched, organization):
    recorded = RECORDED["answers"][f"{organization} whole"]
    assert asked(untouched, Scope(organization, *WHOLE), ["dashboard"])["dashboard"] == {
        member: recorded[name] for member, name in RECORDED["dashboard"].items()
    }


def test_the_recorded_answers_are_all_there_are():
    assert {*RECORDED["answers"]["acme whole"], "dashboard"} == set(ENDPOINTS)


@pytest.mark.parametrize("place", AHEAD)
def test_every_answer_is_what_it_was_once_its_days_are_counted_ahead(counted, place):
    recorded = RECORDED["answers"][place]
    assert asked(counted, scope_of(place), recorded) == recorded


def test_it_is_sound(lake):
    found = verify_lake(lake)
    assert (found.files, found.visits, found.size) == tuple(
        RECORDED["verify"][key] for key in ("files", "visits", "bytes")
    )
    assert (found.findings, found.unknown) == ([], 0)


def test_what_its_manifest_was_lies_beside_it(lake):
    assert sorted(path.name for path in lake.root.glob("*.before-*")) == ["manifest.sqlite.before-4"]
    assert versions(lake).keys() == {1}


def control_of_version_3(root):
    """Migrate its control.sqlite to version 3, which has sessions, as the program of then did, and use it.

    A browser is signed in, and another program has written a job. Returns the rows of keys, sessions and jobs.
    """
    secret, day = sha256(b"cookie").hexdigest(), "2026-11-22T05:03:06+00:00"
    session = ("session", secret, "acme", "editor", "key", "tak_0W2Fd7NY", day, day, "9999", None)
    with closing(sqlite3.connect(root / "control.sqlite")) as control, control:
        assert control.execute("PRAGMA user_version").fetchone() == (2,)
        control.executescript(MIGRATIONS[2] + "PRAGMA user_version = 3")
        control.execute("INSERT INTO sessions VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", session)
        job = ("job-new", "acme", "patch", "new", "A new job of acme", "2026-05-03T10:00:00", "2026-05-03T10:00:00")
        control.execute("INSERT INTO jobs VALUES (?, ?, ?, ?, ?, ?, ?)", job)
        tables = {"keys": 3, "sessions": 1, "jobs": 3}
        found = {name: control.execute(f"SELECT * FROM {name} ORDER BY id").fetchall() for name in tables}
        assert {name: len(there) for name, there in found.items()} == tables
        return found


def test_its_keys_sessions_and_jobs_are_migrated_whole(lake):
    """Every column of then is what it was; a key and a session open what they opened, and a job is approved."""
    expected = control_of_version_3(lake.root)
    with closing(ApiKeys(lake)) as keys, closing(sqlite3.connect(lake.root / "control.sqlite")) as control:
        assert control.execute("PRAGMA user_version").fetchone() == (len(MIGRATIONS),)
        for name, before in expected.items():
            columns = [column for _, column, *_ in control.execute(f"PRAGMA table_info({name})")][: len(before[0])]
            after = control.execute(f"SELECT {', '.join(columns)} FROM {name} ORDER BY id").fetchall()
            assert after == before, name
        assert [key.name for key in keys.keys_of("acme")] == ["dashboard", "lost"]
    with closing(SessionStore(lake, lambda: NOW)) as sessions:
        session = sessions.session("cookie")
        assert (session.organization, session.role, session.subject) == ("acme", "editor", None)
    with closing(Jobs(lake)) as jobs:
        assert [row["id"] for row in jobs.of("acme")] == ["job-new", "job-acme"]
        assert [row["status"] for row in jobs.of("other")] == ["open"]
        record = jobs.act("acme", "job-new", "approve_fix", COMMAND_LINE, NOW)
        assert (record["status"], record["version"], len(record["history"])) == ("approved", 2, 1)
    assert (lake.root / "control.sqlite.before-3").exists()


def test_its_seeds_are_those_of_today(lake):
    assert pq.read_schema(lake.seed_visits).equals(VISITS)
    assert version_of(pq.read_metadata(lake.seed_visits)) == SCHEMA_VERSION


def test_its_status_is_told(lake):
    status = status_of(lake, NOW)
    assert (status.total.visits, status.total.pending_visits) == (RECORDED["verify"]["visits"], AFTERWARDS["flushed"])
    assert status.organizations["acme"].first_visit_at is not None


def test_what_waits_lands_beside_it(lake):
    assert pending.backlog(lake.manifest) == (RECORDED["waiting"]["visits"], NOW)
    with_everything_landed(lake)
    assert total(lake) == AFTERWARDS["acme"]["traffic-overview"]["total_visits"]
    assert versions(lake)[SCHEMA_VERSION] >= 2
    assert_sound(lake)


@pytest.fixture
def recorded_rules(monkeypatch, classifier):
    """Visits of the recorded rules count as classified by today's, so that only those of earlier rules are due."""
    monkeypatch.setattr(classifier, "rules_version", RECORDED["rules_version"])


def test_all_of_it_is_due_under_todays_rules(lake):
    assert status_of(lake, NOW).reclassify_due
    changes = Reclassifier(lake, lambda: NOW).run(["acme", "other"])
    assert changes.rewritten == changes.visits == total(lake, "acme", "other")
    assert not status_of(lake, NOW).reclassify_due
    assert_sound(lake)


def test_it_is_classified_anew_and_compacted(lake, recorded_rules):
    with_everything_landed(lake)
    changes = Reclassifier(lake, lambda: NOW).run(["acme"])
    assert (changes.visits, changes.rewritten, changes.partitions, changes.changed) == tuple(
        AFTERWARDS["reclassified"][name] for name in ("visits", "rewritten", "partitions", "changed")
    )
    Compactor(lake, lambda: NOW).run()
    RollupBuilder(lake, lambda: NOW).run(limit=None if IS_LONG else 1)
    for organization in ("acme", "other"):
        assert answers(lake, organization, AFTERWARDS[organization]) == AFTERWARDS[organization]
    assert verify_lake(lake).visits == AFTERWARDS["verify"]["visits"]
    assert_sound(lake)


def test_days_of_old_and_new_files_become_one_file_of_today(lake):
    land(lake, "acme", [visit(visited_at=datetime(2026, 5, 29, 12)), visit(visited_at=datetime(2026, 5, 30, 12))])
    with closing(Warehouse(lake)) as warehouse:
        before = counted_by(warehouse)
        Compactor(lake, lambda: NOW).run()
        assert counted_by(warehouse) == before
    for day in (date(2026, 5, 29), date(2026, 5, 30)):
        files = lake.manifest.live_files("acme", day, day)
        assert [file.schema_version for file in files if file.unfinished_of is None] == [SCHEMA_VERSION]
    assert_sound(lake)


def with_times(root):
    """Let its files be as old as the manifest says; git keeps no times."""
    with closing(sqlite3.connect(root / "manifest.sqlite")) as db:
        for number, path in db.execute("SELECT id, path FROM files").fetchall():
            os.utime(root / path, (number, number))


def everything_in_scope(lake):
    """Every visit of each organization, which all answers are made of, and one of these answers."""
    with closing(Warehouse(lake)) as warehouse:
        scopes = [warehouse.variables(Scope(organization, *WHOLE)) for organization in ("acme", "other")]
        return [
            (
                rows(warehouse, "SELECT * FROM visits_in_scope ORDER BY ALL", scope),
                warehouse.answer(ENTRIES["top-links"], scope),
            )
            for scope in scopes
        ]


@pytest.mark.parametrize("history", ["untouched", "reclassified", "erased"])
def test_its_manifest_is_rebuilt_from_files_whose_footers_record_nothing(lake, tmp_path, history):
    """P1, P6: what was reclassified and not yet deleted counts once; only what waited in a lost manifest is gone."""
    with_everything_landed(lake)  # with a footer
    if history == "reclassified":
        Reclassifier(lake, lambda: NOW).run(["acme"])
        Compactor(lake, lambda: NOW).run()
    elif history == "erased":
        done = Eraser(lake, lambda: NOW).run("acme", Criteria(short_code="launch"))
        delete_files(lake, done.dead, done.ended_at)
    lake.manifest.close()
    with_times(lake.root)
    with opened(lake.root) as before:
        expected = everything_in_scope(before)
    assert [visits != [] for visits, _ in expected] == [True, True]
    for kept in (True, False):
        root = shutil.copytree(lake.root, tmp_path / f"kept-{kept}")
        for path in () if kept else root.glob("manifest.sqlite*"):
            path.unlink()
        with locked_for_rebuild(root):
            rebuild = Rebuild(root)
            assert rebuild.plan.questions == []
            rebuild.run()
        with opened(root) as after:
            assert everything_in_scope(after) == expected, kept
            assert_sound(after)


def test_visits_are_erased_from_it(lake):
    erased = Eraser(lake, lambda: NOW).run("acme", Criteria(short_code="launch"))
    assert erased.visits > 0
    assert erased.after
    with closing(Warehouse(lake)) as warehouse:
        assert counted_by(warehouse) == AFTERWARDS["acme"]["traffic-overview"]["total_visits"] - erased.visits
        variables = warehouse.variables(Scope("acme", *WHOLE, short_code="launch"))
        assert rows(warehouse, "SELECT count(*) FROM visits_in_scope", variables) == [(0,)]
    assert_sound(lake)


def test_a_backup_of_it_is_the_same_lake(lake, tmp_path):
    copied = back_up(lake, tmp_path / "backup")
    assert (copied.visits, copied.pending) == (RECORDED["verify"]["visits"], AFTERWARDS["flushed"])
    assert not list((tmp_path / "backup").glob("*.before-*"))
    restored = Lake(tmp_path / "backup")
    with closing(restored.manifest):
        recorded = RECORDED["answers"]["acme whole"]
        assert answers(restored, "acme", recorded) == recorded
        with_everything_landed(restored)
        assert_sound(restored)


def test_visits_that_are_reported_land_beside_it(lake):
    row = json.dumps({"time": "2026-05-30T10:00:00Z", "path": "/launch", "user_agent": "curl/8"}).encode()
    (landed,) = LiveIngest(lake, now=lambda: NOW).land([Submission("acme", [row])])
    assert (landed.accepted, landed.refused) == (1, [])
    assert pending.flush_all(lake) == AFTERWARDS["flushed"] + 1
    assert total(lake) == AFTERWARDS["acme"]["traffic-overview"]["total_visits"] + 1
    assert_sound(lake)


@pytest.mark.skipif(not MADE_UP, reason="only the newer program has the column")
def test_a_new_column_is_asked_of_old_and_new_visits_alike(lake, recorded_rules):
    """Landed from a file and from what waits; merged, classified anew and in part erased, it stays."""

    def counts():
        sql = "SELECT made_up, count(*) FROM visits_in_scope GROUP BY made_up ORDER BY made_up NULLS FIRST"
        return dict(rows(warehouse, sql, warehouse.variables(Scope("acme", *WHOLE))))

    warehouse = Warehouse(lake)
    (old,) = counts().values()
    moment = datetime(2026, 5, 29, 12)
    land(lake, "acme", [visit(visited_at=moment, made_up=word, path="/new") for word in ("a", "a", "b")])
    pending.enqueue(
        lake.manifest, {"acme": packed([visit(visited_at=moment, made_up="c", domain="gone.example")])}, NOW
    )
    waited = pending.flush_all(lake) - 1 - 7  # 7 are other's
    assert counts() == {None: old + waited, "a": 2, "b": 1, "c": 1}
    Compactor(lake, lambda: NOW).run()
    Reclassifier(lake, lambda: NOW).run(["acme"])
    assert counts() == {None: old + waited, "a": 2, "b": 1, "c": 1}
    Eraser(lake, lambda: NOW).run("acme", Criteria(domain="gone.example"))
    assert counts() == {None: old + waited, "a": 2, "b": 1}
    warehouse.close()
    assert versions(lake).keys() == {1, SCHEMA_VERSION}
    assert_sound(lake)


# The newer program


SAMPLE = "not every_answer and not rebuilt and not dashboard or whole or rebuilt and reclassified"
"""What the newer program runs unless TRAFFIC_FAULTS is "all": one of those tests that differ in a parameter only, and
no dashboard, whose parts are among the answers."""


def by_a_newer_program(*arguments):
    command = [sys.executable, "-m", "pytest", "-q", "-p", "tests.newer_schema", "-p", "no:cacheprovider", *arguments]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.skipif(bool(MADE_UP), reason="this is the newer program")
def test_a_program_whose_visits_have_one_more_column_does_all_of_this_too():
    sample = [] if IS_LONG else ["-k", SAMPLE]
    done = by_a_newer_program("tests/test_old_lake.py", "-n0", *sample)
    assert done.returncode == 0, done.stdout


WRITER = """
import sys
import tests.newer_schema
from datetime import UTC, datetime
from pathlib import Path
from data import Lake
from data.store import pending
from tests.visits import land, packed, visit
lake = Lake(Path(sys.argv[1]))
moment = datetime(2026, 5, 20, 12)
land(lake, "acme", [visit(visited_at=moment, made_up="newer")])
pending.enqueue(lake.manifest, {"acme": packed([visit(visited_at=moment, made_up="newer")])}, datetime.now(UTC))
lake.manifest.close()
"""


@pytest.mark.skipif(bool(MADE_UP), reason="this is the newer program")
def test_what_the_newer_program_wrote_is_refused_in_one_sentence_and_nothing_of_it_is_lost(tmp_path):
    subprocess.run([sys.executable, "-c", WRITER, copied(tmp_path / "lake")], cwd=ROOT, check=True)
    lake = Lake(tmp_path / "lake")
    refusal = (
        f"was written by a newer version of this program (visit schema {SCHEMA_VERSION + 1}, this one knows "
        f"{SCHEMA_VERSION}); upgrade"
    )
    newer = next(file for file in lake.manifest.live_files("acme") if file.schema_version > SCHEMA_VERSION)
    with pytest.raises(NewerVersion) as refused:
        total(lake)
    assert str(refused.value) == f"{lake.root / newer.path} {refusal}."
    with closing(Warehouse(lake)) as warehouse:
        recorded = RECORDED["answers"]["acme april"]
        assert asked(warehouse, scope_of("acme april"), recorded) == recorded
    waiting = f"a batch of visits that wait for their file {refusal}."
    assert verify_lake(lake).findings == [(newer.path, refusal), ("manifest.sqlite", waiting)]
    with pytest.raises(NewerVersion) as refused:
        pending.flush_all(lake)
    assert str(refused.value) == waiting
    assert pending.backlog(lake.manifest).visits == 1
    lake.manifest.close()
