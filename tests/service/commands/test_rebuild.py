"""`traffic rebuild`: a lost manifest is made again, what still does not count is deleted when somebody says so."""

import shutil
from datetime import datetime

from data.ingest.importer import Importer, Options
from tests.faults.lakes import log
from tests.support.lakes import kept_manifest, opened, put_back
from tests.support.visits import land, visit


def lose_manifest(lake):
    lake.manifest.close()
    for path in lake.root.glob("manifest.sqlite*"):
        path.unlink()


def test_a_lost_or_damaged_manifest_is_made_again_and_a_damaged_one_is_kept(lake, traffic):
    run = traffic("rebuild")
    assert (run.code, run.out) == (1, "")
    assert "another program uses the lake: stop the server" in run.err
    land(lake, "acme", [visit(), visit()])
    lose_manifest(lake)
    assert traffic("verify").code == 1
    code, out, err = traffic("rebuild")
    assert (code, out) == (0, "")
    assert err.splitlines() == [
        "The manifest now counts 2 visits in 1 file.",
        "Visits that were not yet in a file are lost with the manifest.",
        "Run `traffic verify`, then start the server.",
    ]
    assert traffic("verify").code == 0
    (lake.root / "manifest.sqlite").write_bytes(b"no database" * 99)
    assert "The old manifest is kept as" in traffic("rebuild").err
    (copy,) = lake.root.glob("manifest.sqlite.before-rebuild-*")
    assert copy.read_bytes() == b"no database" * 99


def test_an_open_question_needs_an_answer(lake, traffic):
    land(lake, "acme", [visit(visited_at=datetime(2026, 3, day)) for day in (1, 2)])
    last = max(lake.manifest.live_files("acme"), key=lambda file: file.day)
    (lake.root / last.path).unlink()
    lose_manifest(lake)
    run = traffic("rebuild")
    assert (run.code, run.out) == (2, "")
    assert "an import of acme with at least 1 visit was not finished" in run.err
    assert not (lake.root / "manifest.sqlite").exists()
    assert "counts 1 visit in 1 file." in traffic("rebuild", "--yes").err


def test_a_log_that_had_grown_counts_once_when_the_operator_says_so(lake, traffic, tmp_path):
    """The number of changes is missing, which would refuse the second import."""
    path = tmp_path / "access.log"
    lake.manifest.close()
    older = kept_manifest(lake.root)
    for visits in (10, 35):
        put_back(older, lake.root)
        (lake.root / "generation").unlink(missing_ok=True)
        path.write_text(log("a", visits))
        with opened(lake.root) as again:
            Importer(again).run(path, Options("acme"))
    run = traffic("rebuild")
    assert (run.code, run.out) == (2, "")
    assert run.err.startswith("10 visits of acme in 2 files that the manifest knows are also in 2 older files that ")
    assert traffic("rebuild", "--yes").err.splitlines()[1] == "The manifest now counts 35 visits in 4 files."
    assert "counts 35 visits in 4 files" in traffic("rebuild").err


def test_unknown_files_are_told_and_deleted_only_with_yes(lake, traffic):
    land(lake, "acme", [visit()])
    path = lake.root / lake.manifest.live_files("acme")[0].path
    unknown = path.with_name("unknown.parquet")
    shutil.copy(path, unknown)
    lake.manifest.close()
    run = traffic("rebuild", "--discard-unknown")
    assert (run.code, unknown.exists()) == (2, True)
    assert run.err.startswith(f"{unknown.relative_to(lake.root)}: 1 visit\n")
    run = traffic("rebuild", "--discard-unknown", "--yes")
    assert (run.code, unknown.exists(), path.exists()) == (0, False, True)
    assert run.err.endswith("1 visit file deleted.\n")
    assert "knows every visit file" in traffic("rebuild", "--discard-unknown").err
