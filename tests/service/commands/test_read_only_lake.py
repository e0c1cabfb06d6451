"""A lake that cannot be written, such as a mounted snapshot: what reads it changes no byte, the rest says why not."""

import hashlib
import json
import shutil
from contextlib import closing
from datetime import UTC, date, datetime
from pathlib import Path

import duckdb
import pytest

from data.ingest.importer import Importer, Options
from data.maintenance.backup import back_up
from data.maintenance.verification import verify_lake
from data.store import manifest, pending
from data.store.lake import Lake
from queries import ENTRIES, RollupBuilder, Scope, Warehouse, template
from service.api_keys import ApiKeys
from service.encoding import encode
from tests.faults.lakes import log
from tests.lakes import opened
from tests.read_only import run_read_only
from tests.visits import links, packed, visit

SCOPE = Scope("acme", date(2025, 12, 1), date(2026, 6, 1))
DAYS = ("--org", "acme", "--start-date", str(SCOPE.start_date), "--end-date", str(SCOPE.end_date))
OLD = Path(__file__).parent.parent.parent / "fixtures" / "lake-76fa19b"
ASKED = ("top-links", "traffic-overview")


@pytest.fixture(scope="module")
def copied_midway(tmp_path_factory):
    """A copy of a lake, taken after an import has moved its files, and before it has committed."""
    folder = tmp_path_factory.mktemp("midway")
    lake = Lake(folder / "lake", create=True)
    with closing(ApiKeys(lake)) as keys, closing(lake.manifest), pytest.MonkeyPatch.context() as patch:
        keys.create_key("acme", "test")
        importer = Importer(lake)
        for name in ("a", "b"):
            (folder / f"{name}.log").write_text(log(name, 30, days=3))
        importer.run(folder / "a.log", Options("acme"))
        links(lake, "acme", [{"short_code": "sale", "target_url": "https://shop.example"}])
        RollupBuilder(lake).run()
        pending.enqueue(lake.manifest, {"acme": packed([visit()])}, datetime.now(UTC))
        insert = manifest.insert_files

        def copy_and_insert(db, files):
            shutil.copytree(lake.root, folder / "copy")
            insert(db, files)

        patch.setattr(manifest, "insert_files", copy_and_insert)
        importer.run(folder / "b.log", Options("acme"))
    return folder / "copy"


def without_shared_memory(midway, target):
    shutil.copytree(midway, target, ignore=shutil.ignore_patterns("*-shm"))
    assert (target / "manifest.sqlite-wal").stat().st_size


def closed(midway, target):
    shutil.copytree(midway, target)
    with opened(target) as lake:
        assert verify_lake(lake).findings == []
    assert not (target / "manifest.sqlite-wal").exists()


def backup(midway, target):
    shutil.copytree(midway, target.with_name("source"))
    with opened(target.with_name("source")) as lake:
        back_up(lake, target)
    assert not list(target.glob("*/organization=_seed"))


def old_version(_, target):
    shutil.copytree(OLD, target)


def bytes_in(folder):
    return {path: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.rglob("*") if path.is_file()}


def answers(folder):
    """What a lake answers where it can be written."""
    with opened(folder) as lake, closing(Warehouse(lake)) as warehouse:
        return [json.loads(encode(warehouse.answer(ENTRIES[name], warehouse.variables(SCOPE)))) for name in ASKED]


@pytest.mark.parametrize("made", [shutil.copytree, without_shared_memory, closed, backup, old_version])
def test_a_lake_that_cannot_be_written_is_read_and_stays_as_it_is(copied_midway, tmp_path, made):
    lake, at = tmp_path / "lake", ("--lake", str(tmp_path / "lake"))
    made(copied_midway, lake)
    shutil.copytree(lake, tmp_path / "writable")
    (tmp_path / "own.sql").write_text("SELECT count(*) AS visits FROM visits_in_scope")
    before = bytes_in(lake)
    *asked, own, views, verify, status, copy = run_read_only(
        lake,
        *(("query", name, *DAYS, "--format", "json", *at) for name in ASKED),
        ("query", str(tmp_path / "own.sql"), *DAYS, "--format", "json", *at),
        ("views", *DAYS, *at),
        ("verify", *at),
        ("status", "--format", "json", *at),
        ("backup", str(tmp_path / "copy"), *at),
    )
    assert bytes_in(lake) == before
    expected = answers(tmp_path / "writable")
    assert [run.json for run in asked] == expected
    assert own.json == [{"visits": expected[1]["total_visits"]}]
    assert (verify.code, verify.out) == (0, ""), verify
    assert {row["organization"] for row in status.json["organizations"]} >= {"acme"}
    assert copy.code == 0, copy.err
    assert answers(tmp_path / "copy") == expected
    with closing(duckdb.connect()) as shell:
        shell.execute(views.out)
        assert len(shell.execute(template("top-links")).fetchall()) == len(expected[0])


def test_what_must_write_says_that_the_lake_is_read_only(copied_midway, tmp_path):
    lake, at = tmp_path / "lake", ("--lake", str(tmp_path / "lake"))
    shutil.copytree(copied_midway, lake)
    (tmp_path / "a.log").write_text(log("c", 3))
    (tmp_path / "links.csv").write_text("short_code,target_url\na,https://shop.example\n")
    (tmp_path / "openai-gptbot.json").write_text("{}")
    before = bytes_in(lake)
    runs = run_read_only(
        lake,
        ("import", str(tmp_path / "a.log"), "--org", "acme", *at),
        ("follow", str(tmp_path / "a.log"), "--org", "acme", *at),
        ("serve", "--port", "0", *at),
        ("compact", *at),
        ("reclassify", *at),
        ("retain", "--days", "9", "--yes", *at),
        ("erase", "--org", "acme", "--all", "--yes", *at),
        ("keys", "list", *at),
        ("links", "import", str(tmp_path / "links.csv"), "--org", "acme", *at),
        ("agents", "refresh", "--from", str(tmp_path), *at),
    )
    for code, out, err in runs:
        assert (code, out) == (2, ""), err
        assert err.splitlines() == [
            f"traffic: the lake at {lake} is read-only here; only query, views, verify, status and backup work on it."
        ]
    assert bytes_in(lake) == before
