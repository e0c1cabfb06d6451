"""A read-only lake, such as a mounted snapshot: commands that read change no byte; others explain why they fail."""

import hashlib
import json
import shutil
from contextlib import closing
from datetime import UTC, date, datetime
from pathlib import Path
from typing import NamedTuple

import duckdb
import pytest

from data.ingest.importer import Importer, Options
from data.manifest import manifest
from data.recovery.backup import back_up
from data.recovery.verification import verify_lake
from data.store import pending
from queries import ENTRIES, RollupBuilder, Scope, Warehouse, template
from service.access.api_keys import ApiKeys
from service.core.encoding import encode
from tests.faults.lakes import log
from tests.service.ops.every_command import REFUSED, TRIED, places, words
from tests.service.outgoing.mail_servers import Mailbox, smtp_server
from tests.support.control import open_store
from tests.support.lakes import opened, remove_manifest
from tests.support.read_only import run_read_only
from tests.support.runs import Run
from tests.support.visits import land, links, packed, visit

SCOPE = Scope("acme", date(2025, 12, 1), date(2026, 6, 1))
DAYS = f"--org acme --start-date {SCOPE.start_date} --end-date {SCOPE.end_date}"
ASKED = ("top-links", "traffic-overview")


@pytest.fixture(scope="module")
def copied_midway(tmp_path_factory, new_lake):
    """A copy of a lake, made after an import had moved its files into place and before it committed them."""
    folder = tmp_path_factory.mktemp("midway")
    lake = new_lake(folder / "lake")
    with open_store(ApiKeys, lake) as keys, closing(lake.manifest), pytest.MonkeyPatch.context() as patch:
        keys.create_key("acme", "test")
        importer = Importer(lake)
        for name in ("a", "b"):
            (folder / f"{name}.log").write_text(log(name, 30, days=3))
        importer.run(folder / "a.log", Options("acme"))
        links(lake, "acme", [{"short_code": "sale", "target_url": "https://shop.example"}])
        RollupBuilder(lake).run()
        pending.enqueue(lake.manifest, [("acme", packed([visit()]))], datetime.now(UTC))
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


def bytes_in(folder):
    return {path: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.rglob("*") if path.is_file()}


def sending(port):
    """Return the settings that send mail through a server on this machine."""
    return {"TRAFFIC_SMTP": f"smtp://127.0.0.1:{port}", "TRAFFIC_MAIL_FROM": "traffic@acme.example"}


def answers(folder):
    """Return the answers from a writable lake."""
    with opened(folder) as lake, closing(Warehouse(lake)) as warehouse:
        return [json.loads(encode(warehouse.answer(ENTRIES[name], warehouse.snapshot(SCOPE)))) for name in ASKED]


MADE = [shutil.copytree, without_shared_memory, closed, backup]
ASKED_OF_EACH = [
    f"query top-links {DAYS} --format json",
    f"query traffic-overview {DAYS} --format json",
    f"views {DAYS}",
    "verify",
    "status --format json",
    "backup {folder}/backup-of-{made}",
]
"""The commands that are tried on every lake in MADE."""
OWN_SQL = f"query {{folder}}/own.sql {DAYS} --format json"
"""The query that runs in a separate process; it is tried only on a backup, which lacks even the seed files."""


READING = [name for name, row in TRIED.items() if row.read_only == 0 and name not in {"verify", "backup"}]
"""The commands that only read, except two that record their work in the manifest."""
ALL = "every_command"
"""The lake on which every command is tried."""


class ReadOnly(NamedTuple):
    """A lake after commands have run on it without write permission, its earlier state, and their results."""

    lake: Path
    before: dict[Path, str]
    runs: list[Run]
    asked: list[list[str]]


@pytest.fixture(scope="module")
def expected(copied_midway, tmp_path_factory):
    """The answers expected from every lake in MADE."""
    shutil.copytree(copied_midway, folder := tmp_path_factory.mktemp("writable") / "lake")
    return answers(folder)


@pytest.fixture(scope="module")
def read_only(copied_midway, tmp_path_factory):
    """The lakes by their origin, and one for all commands, after commands have run there without write permission."""
    folder = tmp_path_factory.mktemp("read_only")
    (folder / "own.sql").write_text("SELECT count(*) AS visits FROM visits_in_scope")
    lakes = {made.__name__: folder / "lakes" / made.__name__ / "lake" for made in MADE}
    for made, lake in zip(MADE, lakes.values(), strict=True):
        lake.parent.mkdir(parents=True)
        made(copied_midway, lake)
    lakes[ALL] = folder / "lakes" / ALL
    shutil.copytree(copied_midway, lakes[ALL])
    with opened(lakes[ALL]) as lake:
        at = places(lake, folder)
        assert verify_lake(lake).findings == []  # so that the manifest knows the inodes of the copy
    commands = {
        made.__name__: [
            command.format(folder=folder, made=made.__name__).split()
            for command in (*ASKED_OF_EACH, *[OWN_SQL] * (made == backup))
        ]
        for made in MADE
    } | {ALL: [words(name, at) for name in TRIED]}
    before = {name: bytes_in(lake) for name, lake in lakes.items()}
    with_lake = [[*one, "--lake", str(lakes[name])] for name, some in commands.items() for one in some]
    with smtp_server(Mailbox()) as port, pytest.MonkeyPatch.context() as patch:
        for name, value in sending(port).items():
            patch.setenv(name, value)
        runs = iter(run_read_only(folder / "lakes", *with_lake))
    return {
        name: ReadOnly(lakes[name], before[name], [next(runs) for _ in asked], asked)
        for name, asked in commands.items()
    }


@pytest.mark.parametrize("made", MADE)
def test_a_read_only_lake_is_read_and_left_unchanged(read_only, expected, made):
    lake, before, (top_links, overview, views, verify, status, copy, *own), _ = read_only[made.__name__]
    assert bytes_in(lake) == before
    assert [top_links.json, overview.json] == expected
    assert [run.json for run in own] == [[{"visits": expected[1]["total_visits"]}]] * (made == backup)
    assert (verify.code, verify.out) == (0, ""), verify
    assert {row["organization"] for row in status.json["organizations"]} >= {"acme"}
    assert copy.code == 0, copy.err
    assert answers(lake.parents[2] / f"backup-of-{made.__name__}") == expected
    with closing(duckdb.connect()) as shell:
        shell.execute(views.out)
        assert len(shell.execute(template("top-links")).fetchall()) == len(expected[0])


@pytest.mark.parametrize("command", TRIED)
def test_a_command_works_or_reports_that_the_lake_is_read_only(read_only, command):
    lake, _, runs, _ = read_only[ALL]
    run = dict(zip(TRIED, runs, strict=True))[command]
    if TRIED[command].read_only != REFUSED:
        assert run.code == TRIED[command].read_only, run.err
        assert "is read-only, and" not in run.err
    else:
        assert (run.code, run.out) == (2, ""), run.err
        assert run.err == (
            f"traffic: the lake at {lake} is read-only, and this command must write to it; "
            "use a copy made by traffic backup.\n"
        )


@pytest.fixture(scope="module")
def writable(read_only, forks, tmp_path_factory):
    """The output of each reading command on the same lake when it is writable, and the files that it changes there."""
    lake, folder, done = read_only[ALL].lake, tmp_path_factory.mktemp("printed"), {}
    with smtp_server(Mailbox()) as port:
        for name, asked in zip(TRIED, read_only[ALL].asked, strict=True):
            if name not in READING:
                continue
            before = bytes_in(lake)
            with (folder / "out").open("wb") as out, (folder / "err").open("wb") as err:
                where = ["--lake", str(lake)]
                forks.start(*asked, *where, settings=sending(port), out=out.fileno(), err=err.fileno()).wait()
            after = bytes_in(lake)
            changed = [path for path in before | after if before.get(path) != after.get(path)]
            done[name] = (folder / "out").read_bytes().decode(), changed
    return done


@pytest.mark.parametrize("command", READING)
def test_a_command_that_only_reads_changes_no_writable_lake(read_only, writable, command):
    run = dict(zip(TRIED, read_only[ALL].runs, strict=True))[command]
    assert writable[command] == (run.out, [])


def test_no_command_changes_a_read_only_lake(read_only):
    lake, before, *_ = read_only[ALL]
    assert bytes_in(lake) == before


@pytest.mark.parametrize("is_lost", [False, True], ids=["a manifest", "no manifest"])
def test_a_rebuild_reports_that_the_lake_is_read_only(lake, is_lost):
    land(lake, "acme", [visit()])
    lake.manifest.close()
    if is_lost:
        remove_manifest(lake.root)
    (run,) = run_read_only(lake.root, ["rebuild", "--yes", "--lake", str(lake.root)])
    told = f"traffic: {lake.root} cannot be written, and a rebuild replaces the manifest; run it as the owner of the "
    assert run == (2, "", f"{told}lake, or on a copy of {lake.root}.\n")


WITHOUT_KEYS = {
    "keys list": 0,
    "hooks list --org acme": 0,
    "jobs list --org acme": 0,
    "query top-links --org unknown": 2,
    "mcp --org acme": 0,
    "doctor": 0,
}
"""How commands end on a lake without keys, jobs or hooks."""


@pytest.mark.parametrize("command", WITHOUT_KEYS)
def test_a_command_that_only_reads_creates_no_database(lake, traffic, command):
    land(lake, "acme", [visit()])
    lake.manifest.close()
    run = traffic(*command.split())
    assert run.code == WITHOUT_KEYS[command], run
    assert list(lake.root.glob("control*")) == []
