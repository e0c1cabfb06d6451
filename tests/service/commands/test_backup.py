"""`traffic backup`: what it tells, how it ends, and that what it copied can be asked."""

import re
from datetime import UTC, datetime

from data.store import pending
from tests.support.visits import land, packed, visit


def wait(lake, number):
    table = packed([visit()] * number)
    pending.enqueue(lake.manifest, {"acme": table}, datetime.now(UTC))


def test_a_backup_tells_what_it_holds_and_can_be_verified_and_asked(lake, traffic, tmp_path):
    land(lake, "acme", [visit(visited_at=datetime(2026, 3, day)) for day in (1, 2)] * 600)
    copy = tmp_path / "copy"
    code, out, err = traffic("backup", copy, "--lake", lake.root)
    assert (code, out) == (0, "")
    assert re.fullmatch(rf"{copy}: 2 files with 1,200 visits \([\d.]+ kB\)\.\n", err)
    assert traffic("verify", "--lake", copy)[:2] == (0, "")
    question = ("query", "dashboard", "--org", "acme", "--start-date", "2026-03-01", "--end-date", "2026-03-31")
    told = [traffic(*question, "--format", "json", "--lake", root) for root in (lake.root, copy)]
    assert told[0] == told[1]
    assert '"total_visits":1200' in told[0][1]


def test_visits_that_wait_are_told_apart(lake, traffic, tmp_path):
    land(lake, "acme", [visit()])
    wait(lake, 3)
    err = traffic("backup", tmp_path / "copy", "--lake", lake.root)[2]
    assert ": 1 file with 1 visit and 3 not yet in a file (" in err


def test_a_folder_that_cannot_be_it_is_refused(lake, traffic, tmp_path):
    for folder in (tmp_path, lake.root / "backup", tmp_path / "absent" / "copy"):
        code, out, err = traffic("backup", folder, "--lake", lake.root)
        assert (code, out) == (2, "")
        assert re.fullmatch(r"traffic: [^\n]+\.\n", err)
    assert [path.name for path in tmp_path.iterdir()] == ["lake"]


def test_a_damaged_file_ends_with_1_and_is_named(lake, traffic, tmp_path):
    land(lake, "acme", [visit()])
    (file,) = lake.manifest.live_files("acme")
    (lake.root / file.path).write_bytes(b"")
    code, out, err = traffic("backup", tmp_path / "copy", "--lake", lake.root)
    assert (code, out) == (1, "")
    assert re.fullmatch(rf"traffic: [^\n]*{file.path}[^\n]*backup\.\n", err)
    assert not (tmp_path / "copy").exists()


def test_help_says_how_to_restore_and_what_erasing_does_not_reach(traffic):
    code, out, err = traffic("backup", "--help")
    told = " ".join(out.split())
    assert (code, err) == (0, "")
    assert "To restore a lake: stop the server" in told
    assert "`traffic erase` does not change backups" in told
