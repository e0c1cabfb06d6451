"""Visit files record in their footers what the manifest contains, so that it can be rebuilt if lost (P1, P6)."""

from datetime import UTC, datetime, timedelta

import pyarrow.parquet as pq
import pytest

from data.errors import LakeDamaged
from data.manifest.clock import format_time
from data.manifest.pending import SESSION_BITS
from data.store.footers import PendingRange, merged_ranges, read_visit_file
from data.store.pending import enqueue, flush_all
from data.tasks.compaction import Compactor
from data.tasks.erasure import Criteria, Eraser
from data.tasks.reclassification import Reclassifier
from data.tasks.retention import apply_retention
from data.visits import VISITS
from tests.faults.lakes import line
from tests.support.lakes import kill_at_commit
from tests.support.manifests import database_of
from tests.support.visits import land, packed, visit

NOW = datetime(2026, 3, 6, 12, tzinfo=UTC)


def footers(lake, organization="acme"):
    return [read_visit_file(lake.root / file.path).footer for file in lake.manifest.files.live(organization)]


def names(files):
    return tuple(sorted(file.path.rpartition("/")[2] for file in files))


def test_imported_files_record_their_day_and_batch(lake, load):
    load(line("/a", 1) + line("/b", 2))
    (batch,) = lake.manifest.logs.batches("acme", "")
    first, last = sorted(footers(lake), key=lambda footer: footer.day)
    assert [(footer.organization, footer.day.day) for footer in (first, last)] == [("acme", 1), ("acme", 2)]
    assert [(record.id, record.imported_at) for record in first.batches] == [(batch.id, "")]
    assert last.batches == (batch,)
    assert batch.visits == 2


def test_files_from_a_killed_import_are_overwritten_by_the_next(lake, load):
    kill_at_commit(lambda: load(line("/a", 1) + line("/b", 2)), "data.store.landing", "data.manifest.manifest")
    left = {path.name for path in lake.root.glob("visits/organization=acme/*/*")}
    assert len(left) == 2
    load(line("/a", 1) + line("/b", 2))
    assert {path.name for path in lake.root.glob("visits/organization=acme/*/*")} == left
    assert set(names(lake.manifest.files.live("acme"))) == left


def test_a_file_of_live_visits_records_their_pending_rows(lake):
    enqueue(lake.manifest, [("acme", packed([visit()]))], NOW)
    kill_at_commit(lambda: flush_all(lake), "data.store.landing", "data.manifest.pending")
    enqueue(lake.manifest, [("acme", packed([visit(path="/more")]))], NOW + timedelta(seconds=1))
    ((first, last),) = database_of(lake.manifest).rows("SELECT min(id), max(id) FROM pending")
    assert flush_all(lake) == 2
    (path,) = lake.root.glob("visits/organization=acme/*/*")
    ((part,),) = [footer.pending for footer in footers(lake)]
    assert (part.first, part.last, last) == (first, last, first + 1)
    assert part.times == (format_time(NOW), format_time(NOW + timedelta(seconds=1)))
    assert (lake.manifest.files.live("acme")[0].path, read_visit_file(path).visits) == (
        path.relative_to(lake.root).as_posix(), 2,
    )  # fmt: skip


def test_a_replacement_names_the_files_it_replaces(lake):
    for path in ("/a", "/b"):
        land(lake, "acme", [visit(path=path, user_agent="GPTBot/1.2", short_code=path[1:])])
    batches = {record.id for footer in footers(lake) for record in footer.batches}
    assert len(batches) == 2
    for replace in (
        lambda: Compactor(lake).run(),
        lambda: Reclassifier(lake).run(["acme"]),
        lambda: Eraser(lake).run("acme", Criteria(short_code="a")),
    ):
        before = names(lake.manifest.files.live("acme"))
        replace()
        (footer,) = footers(lake)
        assert set(before) <= set(footer.replaces)
        assert {record.id for record in footer.batches} == batches
        assert all(record.imported_at for record in footer.batches)


@pytest.mark.parametrize("way", ["erased", "expired"])
def test_one_removal_record_lists_all_removed_files(lake, way):
    removed, batches = set(), set()
    for day in (1, 2, 3):
        land(lake, "acme", [visit(visited_at=datetime(2026, 3, day))])
        removed |= set(names(lake.manifest.files.live("acme")))
        batches |= {record.id for footer in footers(lake) for record in footer.batches}
        if way == "erased":
            Eraser(lake).run("acme", Criteria())
        else:
            apply_retention(lake, 1, NOW)
    assert lake.manifest.files.live("acme") == []
    (record,) = lake.manifest.files.removal_records("acme")
    footer = read_visit_file(lake.root / record.path).footer
    assert record.visits == 0
    assert removed <= set(footer.replaces)
    assert {batch.id for batch in footer.batches} == batches


def test_a_footer_names_the_unfinished_file_that_was_replaced(lake, load):
    begun = line("/a") + line("/cut")[:-2]
    load(begun)
    (unfinished,) = [file for file in lake.manifest.files.live("acme") if file.unfinished_of]
    load(f"{begun} is not a line of a log\n")
    records = [read_visit_file(lake.root / file.path).footer for file in lake.manifest.files.removal_records("acme")]
    assert [footer.replaces for footer in [*footers(lake), *records] if footer.replaces] == [names([unfinished])]


def test_ranges_are_joined_except_across_a_pause_or_session():
    one, two = 7 << SESSION_BITS, 9 << SESSION_BITS
    first = PendingRange(one, one + 5, "2026-03-01T00:00:00Z", "2026-03-01T01:00:00Z")
    next_ = PendingRange(one + 8, one + 9, "2026-03-01T13:00:00Z", "2026-03-01T14:00:00Z")
    after_pause = PendingRange(one + 10, one + 11, "2026-03-02T02:00:01Z", "2026-03-02T03:00:00Z")
    later = PendingRange(two, two + 3, "2026-03-02T03:00:00Z", "2026-03-02T03:00:00Z")
    joined = PendingRange(one, one + 9, "2026-03-01T00:00:00Z", "2026-03-01T14:00:00Z")
    assert merged_ranges([later, after_pause, next_, first, first]) == (joined, after_pause, later)


def test_a_damaged_footer_is_reported(lake, tmp_path):
    (tmp_path / "a.parquet").write_bytes(b"PAR1")
    with pytest.raises(LakeDamaged, match=r"a\.parquet cannot be read"):
        read_visit_file(tmp_path / "a.parquet")
    pq.write_table(VISITS.empty_table(), tmp_path / "b.parquet")
    with pytest.raises(
        LakeDamaged, match=r"b\.parquet cannot be read: its footer has no record, so this program did not write it"
    ):
        read_visit_file(tmp_path / "b.parquet")
