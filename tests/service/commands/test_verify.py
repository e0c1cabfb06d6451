"""`traffic verify`: every culprit a line on stdout, one sentence for people, and the exit code."""

import re
import shutil
from datetime import UTC, datetime

import pytest

from service.doctor import examine
from tests.support.lakes import flipped
from tests.support.visits import land, links, visit


@pytest.fixture
def files(lake):
    """The three live files of acme, by day."""
    land(lake, "acme", [visit(visited_at=datetime(2026, 3, day)) for day in (1, 2, 2, 3)])
    return [lake.root / file.path for file in sorted(lake.manifest.live_files("acme"), key=lambda file: file.day)]


def test_every_damaged_file_is_a_line_and_what_is_restored_or_of_others_is_sound(lake, files, traffic):
    code, out, err = traffic("verify")
    assert (code, out) == (0, "")
    assert re.fullmatch(
        r"3 files with 4 visits \([\d.]+ kB\) were checked: no damage found; links, and the databases that are there, "
        r"are sound\.\n"
        r"control\.sqlite is missing: if the lake had API keys, jobs or hooks, copy it from a backup\.\n"
        r"salts\.sqlite is missing: visitors of the last 48 hours count anew, as after restoring a backup\.\n",
        err,
    )
    land(lake, "other", [visit()])
    links(lake, "new", [{"short_code": "sale", "target_url": "https://new.example"}])
    with flipped(files[0]):
        missing = files[2].rename(lake.root.parent / "missing")
        code, out, err = traffic("verify", "--org", "acme")
        first, last = (path.relative_to(lake.root) for path in (files[0], files[2]))
        assert sorted(out.splitlines()) == sorted([f"{first}: is damaged: its SHA-256 differs", f"{last}: is missing"])
        assert code == 1
        assert re.fullmatch(
            r"3 files with 4 visits .* 2 are damaged: restore .* from a backup, each .* same path\.\n", err
        )
        assert [traffic("verify", *flags).code for flags in (("--org", "other"), ("--org", "new"), ())] == [0, 0, 1]
    missing.rename(files[2])
    assert traffic("verify")[:2] == (0, "")


def test_a_symbolic_link_in_the_lake_is_told_in_one_sentence(lake, files, traffic, tmp_path):
    folder = files[0].parent.parent
    folder.rename(tmp_path / "elsewhere")
    folder.symlink_to(tmp_path / "elsewhere")
    told = f"{folder} is a symbolic link, and a lake is one folder: put what it leads to in its place"
    code, out, _ = traffic("verify")
    assert (code, len(out.splitlines())) == (1, 3)
    assert all(line.endswith(f": cannot be read: {told}") for line in out.splitlines())
    dates = ("--start-date", "2026-03-01", "--end-date", "2026-03-09")
    query = traffic("query", "traffic-overview", "--org", "acme", *dates)
    assert (query.code, query.err) == (1, f"traffic: {told}.\n")
    checks = {check.subject: check for check in examine({"TRAFFIC_LAKE": str(lake.root)}, datetime.now(UTC))}
    assert checks["files"] == ("broken", "files", f"{told}.")


def test_orphans_are_told_and_no_damage(lake, files, traffic):
    shutil.copy(files[0], files[0].with_name("orphan.parquet"))
    code, out, err = traffic("verify")
    assert (code, out) == (0, "")
    assert err.splitlines()[-1] == (
        "1 visit file not in the manifest, in visits/ or unknown/: no query reads them. `traffic rebuild` makes a "
        "manifest that counts them, `traffic rebuild --discard-unknown` says what they are and deletes them."
    )


def test_a_damaged_manifest_asks_for_the_whole_lake_and_a_name_cannot_steer_the_terminal(lake, files, traffic):
    with lake.manifest.transaction() as db:
        db.execute(
            "UPDATE files SET path = ? WHERE path = ?", ["visits/\x1b]0;x", str(files[0].relative_to(lake.root))]
        )
    assert traffic("verify")[:2] == (1, "visits/\ufffd]0;x: is missing\n")
    with lake.manifest.transaction() as db:
        db.execute("DROP TABLE files")
    code, out, err = traffic("verify")
    assert (code, out) == (1, "manifest.sqlite: cannot be used: no such table: files\n")
    assert err.endswith("restore all of it from a backup.\n")
    lake.manifest.close()
    (lake.root / "manifest.sqlite").write_bytes(b"no database" * 99)
    code, out, err = traffic("verify")
    assert code == 1
    assert out.startswith(f"{lake.root}/manifest.sqlite cannot be used (file is not a database), but the lake ")
    assert err == (
        "traffic: without its manifest nothing can be checked: run `traffic rebuild`, or restore the lake from a "
        "backup.\n"
    )
