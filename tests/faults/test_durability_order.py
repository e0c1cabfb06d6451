"""Everything is synced before it is acknowledged: the file, then its name, then the manifest, then the response."""

import re
from pathlib import Path

import pytest

from tests.faults.lakes import log
from tests.faults.servers import serving
from tests.faults.tracing import CALLS, calls_of, traced
from tests.faults.trials import scaled
from tests.faults.victims import INTO, VICTIMS, nothing

WAL = "manifest.sqlite-wal"
SYNCS, WRITES = ("fsync", "fdatasync"), ("write", "pwrite64")


def succeeded(calls):
    return [call for call in calls if call.text.endswith("= 0") or call.name in (*WRITES, "openat")]


def syncs(calls, path):
    """Return the positions of the calls that synced a file or folder."""
    return [place for place, call in enumerate(calls) if call.name in SYNCS and call.paths[:1] == [str(path)]]


def parts(calls, *told):
    """For each text, yield the calls made since the previous text was written and before this one is."""
    begun = 0
    for text in told:
        (end,) = [place for place, call in enumerate(calls) if call.name == "write" and f'"{text}' in call.text]
        yield calls[begun:end]
        begun = end


def assert_synced(calls, path):
    """Check that the last of these calls that writes to a file is followed by a sync of that file."""
    written = [place for place, call in enumerate(calls) if call.name in WRITES and call.paths[:1] == [str(path)]]
    assert written
    assert any(written[-1] < sync for sync in syncs(calls, path)), path


def assert_in_order(calls, folder):
    """Check that these calls sync every file that they place, then its name, and then the manifest.

    A file must be removed from the manifest on disk before it is deleted. Returns the number of placed files.
    """
    lake, placed = folder / "lake", 0
    for place, call in enumerate(calls):
        if call.name == "rename" and "day=2026" in call.text:
            staged, target = call.paths
            assert_synced(calls[:place], staged)
            named = next(sync for sync in syncs(calls, Path(target).parent) if sync > place)
            assert_synced(calls[named:], lake / WAL)
            placed += 1
        elif call.name == "mkdir" and str(lake / "visits") in call.text:
            assert any(place < sync for sync in syncs(calls, Path(call.paths[0]).parent)), call
        elif call.name == "unlink" and "day=2026" in call.text:
            assert_synced(calls[:place], lake / WAL)
    assert_synced(calls, lake / WAL)
    return placed


def test_an_import_reports_only_synced_visits(program, traceable, tell, tmp_path):
    nothing(tmp_path)
    names = [f"log{number}.log" for number in range(scaled(5, 100))]
    for name in names:
        (tmp_path / name).write_text(log(name.removesuffix(".log"), 4))
    run = program.trace(tmp_path, "in_order", "traffic", "import", *names, *INTO)
    told = [*(f"{name}: 4 visits imported" for name in names), "Judged 2 past days"]
    placed = [assert_in_order(part, tmp_path) for part in parts(succeeded(run.calls), *told)]
    assert placed == [2] * len(told)
    written = [call.paths[0] for call in run.calls if call.name == "write" and ".parquet>" in call.text]
    assert len(written) == len(set(written)) == sum(placed)  # small files are written in one piece
    tell(batches=len(names), files=sum(placed), out_of_order=0)


def test_live_ingest_acknowledges_only_synced_visits(program, traceable, tell, tmp_path):
    nothing(tmp_path)
    names = [f"batch{number}" for number in range(scaled(20, 1000))]
    calls = succeeded(program.trace(tmp_path, "in_order", "keep", "lake", *names).calls)
    *kept, flushed = parts(calls, *(f"kept {name}\\n" for name in names), "flushed")
    for part in kept:
        assert_synced(part, tmp_path / "lake" / WAL)
    placed = assert_in_order(flushed, tmp_path)
    assert placed == 2
    tell(batches=len(names), files=placed, out_of_order=0)


@pytest.mark.parametrize("name", ["follow", "compact", "reclassify", "erase", "retain"])
def test_replacements_are_synced_before_old_visits_are_deleted(name, program, traceable, tell, tmp_path):
    (victim,) = [victim for victim in VICTIMS if victim.name == name]
    victim.prepare(tmp_path)
    run = program.trace(tmp_path, "in_order", victim.function, *victim.words, options=("-y", "-s", "1000"))
    calls = succeeded(run.calls)
    told = [place for place, call in enumerate(calls) if call.name == "write" and re.search(victim.told, call.text)]
    placed = assert_in_order(calls[: told[0]], tmp_path)
    assert placed
    tell(files=placed, out_of_order=0)


def test_a_backup_is_synced_before_it_gets_its_name(program, traceable, tell, tmp_path):
    (victim,) = [victim for victim in VICTIMS if victim.name == "backup"]
    victim.prepare(tmp_path)
    calls = succeeded(program.trace(tmp_path, "in_order", victim.function, *victim.words).calls)
    ((named, call),) = [(place, call) for place, call in enumerate(calls) if str(tmp_path / "copy") == call.paths[-1]]
    partial = call.paths[0]
    files = [path for path in (tmp_path / "copy").rglob("*") if not path.name.endswith(("-wal", "-shm"))]
    for path in files:
        assert syncs(calls[:named], partial / path.relative_to(tmp_path / "copy")), path
    assert syncs(calls[named:], tmp_path)
    tell(files=len(files), out_of_order=0)


def test_the_server_responds_after_syncing_received_data(program, traceable, tell, tmp_path):
    nothing(tmp_path)
    names = [f"batch{number}" for number in range(scaled(10, 300))]
    with serving(program, tmp_path) as server:
        assert server.report("first").status == 202  # its rules are loaded by then
        with traced(server, tmp_path / "trace", "-y", "-e", f"trace={','.join(CALLS)}"):
            assert {server.report(name).status for name in names} == {202}
    calls = succeeded(calls_of((tmp_path / "trace").read_text(errors="replace")))
    answers = [place for place, call in enumerate(calls) if call.name == "write" and '"HTTP/1.1 202' in call.text]
    assert len(answers) == len(names)
    for before, answer in zip([0, *answers], answers, strict=False):
        assert_synced(calls[before:answer], tmp_path / "lake" / WAL)
    tell(answers=len(answers), out_of_order=0)


@pytest.mark.parametrize(
    "words",
    [("import", "a.log", "--domain", "go.example"), ("keys", "create", "--name", "test")],
    ids=lambda words: words[0],
)
def test_a_new_lake_is_synced_before_visits_are_acknowledged(words, program, traceable, tmp_path):
    (tmp_path / "a.log").write_text(log("a", 4))
    run = program.trace(tmp_path, "in_order", "traffic", *words, "--org", "acme", "--lake", "new/lake")
    assert run.code == 0
    (done,) = parts(succeeded(run.calls), {"import": "a.log: 4 visits", "keys": "tak_"}[words[0]])
    for folder in (tmp_path / "new", tmp_path / "new" / "lake"):
        (made,) = [place for place, call in enumerate(done) if call.name == "mkdir" and call.paths == [str(folder)]]
        assert any(sync > made for sync in syncs(done, folder.parent)), folder


def test_a_new_database_is_synced_once_when_complete(program, traceable, tmp_path):
    nothing(tmp_path)
    words = ("traffic", "keys", "create", "--name", "test", "--org", "acme", "--lake", "lake")
    calls = succeeded(program.trace(tmp_path, "in_order", *words).calls)
    made = [call.name for call in calls if "/.staging/control-" in call.text and call.name in (*SYNCS, *WRITES)]
    assert [name in SYNCS for name in made].index(True) == len(made) - 1 > 0
