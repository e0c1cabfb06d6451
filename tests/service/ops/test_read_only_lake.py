"""A lake that cannot be written, such as a mounted snapshot: what reads it changes no byte, the rest says why not."""

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
from data.store.lake import Lake
from queries import ENTRIES, RollupBuilder, Scope, Warehouse, template
from service.access.api_keys import ApiKeys
from service.core.encoding import encode
from tests.faults.lakes import log
from tests.service.ops.every_command import EVERY, REFUSED, places, words
from tests.service.outgoing.mail_servers import Mailbox, smtp_server
from tests.support.control import open_store
from tests.support.lakes import opened
from tests.support.read_only import run_read_only
from tests.support.runs import Run
from tests.support.visits import links, packed, visit

SCOPE = Scope("acme", date(2025, 12, 1), date(2026, 6, 1))
DAYS = f"--org acme --start-date {SCOPE.start_date} --end-date {SCOPE.end_date}"
ASKED = ("top-links", "traffic-overview")


@pytest.fixture(scope="module")
def copied_midway(tmp_path_factory):
    """A copy of a lake, taken after an import has moved its files, and before it has committed."""
    folder = tmp_path_factory.mktemp("midway")
    lake = Lake(folder / "lake", create=True)
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


def answers(folder):
    """What a lake answers where it can be written."""
    with opened(folder) as lake, closing(Warehouse(lake)) as warehouse:
        return [json.loads(encode(warehouse.answer(ENTRIES[name], warehouse.snapshot(SCOPE)))) for name in ASKED]


MADE = [shutil.copytree, without_shared_memory, closed, backup]
READING = [
    f"query top-links {DAYS} --format json",
    f"query traffic-overview {DAYS} --format json",
    f"views {DAYS}",
    "verify",
    "status --format json",
    "backup {folder}/backup-of-{made}",
]
"""What each of these lakes is asked."""
OWN_SQL = f"query {{folder}}/own.sql {DAYS} --format json"
"""Asked in a process, so only where even empty files are missing: of a backup."""


ALL = "every_command"
"""The lake that every command is tried with."""


class ReadOnly(NamedTuple):
    """What became of a lake while nobody could write into it."""

    lake: Path
    before: dict[Path, str]
    runs: list[Run]


@pytest.fixture(scope="module")
def expected(copied_midway, tmp_path_factory):
    """What each of these lakes answers."""
    shutil.copytree(copied_midway, folder := tmp_path_factory.mktemp("writable") / "lake")
    return answers(folder)


@pytest.fixture(scope="module")
def read_only(copied_midway, tmp_path_factory, relations):
    """Every lake by what made it, and one for all commands, once they have run while nobody could write into any."""
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
    commands = {
        made.__name__: [
            command.format(folder=folder, made=made.__name__).split()
            for command in (*READING, *[OWN_SQL] * (made == backup))
        ]
        for made in MADE
    } | {ALL: [words(name, at) for name in EVERY]}
    before = {name: bytes_in(lake) for name, lake in lakes.items()}
    with_lake = [[*one, "--lake", str(lakes[name])] for name, some in commands.items() for one in some]
    with smtp_server(Mailbox()) as port, pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRAFFIC_SMTP", f"smtp://127.0.0.1:{port}")
        patch.setenv("TRAFFIC_MAIL_FROM", "traffic@acme.example")
        runs = iter(run_read_only(folder / "lakes", relations, *with_lake))
    return {name: ReadOnly(lakes[name], before[name], [next(runs) for _ in some]) for name, some in commands.items()}


@pytest.mark.parametrize("made", MADE)
def test_a_read_only_lake_is_read_and_left_unchanged(read_only, expected, made):
    lake, before, (top_links, overview, views, verify, status, copy, *own) = read_only[made.__name__]
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


@pytest.mark.parametrize("command", EVERY)
def test_a_command_works_or_says_that_the_lake_is_read_only(read_only, command):
    lake, _, runs = read_only[ALL]
    run = dict(zip(EVERY, runs, strict=True))[command]
    if EVERY[command].read_only != REFUSED:
        assert run.code == EVERY[command].read_only, run.err
        assert "is read-only here" not in run.err
    else:
        assert (run.code, run.out) == (2, ""), run.err
        assert run.err == (
            f"traffic: the lake at {lake} is read-only here, and this command opens it for writing; "
            "use a copy of it, which `traffic backup` makes.\n"
        )


def test_no_command_changes_a_read_only_lake(read_only):
    lake, before, _ = read_only[ALL]
    assert bytes_in(lake) == before
