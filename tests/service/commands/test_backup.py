"""`traffic backup` of visits that wait for their file, and its help; the rest is in transcripts/lake.txt."""

from datetime import UTC, datetime

from data.store import pending
from tests.support.visits import land, packed, visit


def test_a_backup_counts_pending_visits(lake, traffic, tmp_path):
    land(lake, "acme", [visit()])
    pending.enqueue(lake.manifest, {"acme": packed([visit()] * 3)}, datetime.now(UTC))
    err = traffic("backup", tmp_path / "copy").err
    assert ": 1 file with 1 visit and 3 not yet in a file (" in err


def test_help_says_how_to_restore_and_what_erasing_does_not_reach(traffic):
    told = " ".join(traffic("backup", "--help").out.split())
    assert "To restore a lake: stop the server" in told
    assert "`traffic erase` does not change backups" in told
