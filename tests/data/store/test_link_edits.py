"""Edits to links write a small file of changes, until the changes are folded into the base file."""

import random
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, date, datetime, timedelta

import duckdb
import pyarrow.parquet as pq
import pytest

from data import LakeDamaged
from data.errors import Conflict
from data.links.index import LinkIndex
from data.links.links import LinkEdit, change_links, edit_links, first_links, link_of, links_of, new_link
from data.manifest.links import LiveLinks
from data.publish.publisher import LakePublisher
from data.publish.verification import verify_copies
from data.recovery.backup import back_up
from data.recovery.verification import verify_lake
from data.store import link_files
from data.store.layout import LINK_CHANGES
from data.store.link_files import FOLDED_AFTER, fold_due, fold_links, lay_over, replace_links
from data.tasks.compaction import Compactor
from queries import Warehouse
from queries.scope import Scope
from queries.shell import script
from queries.snapshot import take_snapshot
from tests.support.lakes import failing_at, flip, kept_manifest, links_path, opened, put_back, rebuilt
from tests.support.visits import links

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
SOME = [{"short_code": code, "target_url": f"https://shop.example/{code}"} for code in "abc"]


@pytest.fixture
def edited(lake):
    """A lake with three links in its base file; one has since been changed, one removed, and another added."""
    links(lake, "acme", SOME)
    put(lake, "a", "https://shop.example/new")
    remove(lake, "b")
    put(lake, "d", "https://shop.example/d", "go.example")
    return lake


AFTERWARDS = {
    ("a", ""): "https://shop.example/new",
    ("c", ""): "https://shop.example/c",
    ("d", "go.example"): "https://shop.example/d",
}


def put(lake, code, target, domain=""):
    ((before, _),) = edit_links(lake, "acme", [LinkEdit(code, domain, new_link(code, domain, target, NOW))])
    return before


def remove(lake, code, domain=""):
    edit_links(lake, "acme", [LinkEdit(code, domain, None)])


def targets(lake):
    return {(link.short_code, link.domain): link.target_url for link in links_of(lake, "acme")}


def changes_path(lake):
    return lake.root / lake.manifest.links.live("acme").changes.path


def files_of_links(lake):
    return {path.name for path in lake.links_folder("acme").iterdir()}


def test_an_edit_leaves_the_base_file_unchanged(lake):
    links(lake, "acme", SOME)
    whole = links_path(lake)
    put(lake, "a", "https://shop.example/new")
    assert links_path(lake) == whole
    assert pq.read_metadata(changes_path(lake)).num_rows == 1


def test_an_edit_among_many_links_writes_a_few_kilobytes(lake):
    links(lake, "acme", [{"short_code": f"c{number}", "target_url": "https://x.example"} for number in range(50_000)])
    put(lake, "c7", "https://shop.example/new")
    assert changes_path(lake).stat().st_size < 5_000


def test_edits_override_the_stored_links(edited):
    assert targets(edited) == AFTERWARDS


def test_links_stay_sorted_after_edits(edited):
    assert [link.short_code for link in links_of(edited, "acme")] == ["a", "c", "d"]


def test_single_links_can_be_looked_up_after_edits(edited):
    found = {key: link_of(edited, "acme", *key) for key in [*AFTERWARDS, ("b", ""), ("d", "")]}
    assert {key: link.target_url for key, link in found.items() if link} == AFTERWARDS


def test_a_search_finds_edited_links_in_order(edited):
    found, has_more = first_links(edited, "acme", "SHOP", 2)
    assert ([link.short_code for link in found], has_more) == (["a", "c"], True)
    found, has_more = first_links(edited, "acme", "/new", 2)
    assert ([link.short_code for link in found], has_more) == (["a"], False)


def test_a_target_is_resolved_with_edited_links(edited):
    index = LinkIndex(edited).links("acme")
    found = {code: index.short_code_of(f"https://shop.example/{code}") for code in ("a", "b", "c", "d", "new")}
    assert found == {"a": None, "b": None, "c": "c", "d": "d", "new": "a"}


def test_an_index_notices_an_edit(edited):
    index = LinkIndex(edited)
    assert not index.links("acme").has_short_code("e")
    put(edited, "e", "https://shop.example/e")
    assert index.links("acme").has_short_code("e")


def test_the_sql_views_contain_edited_links(edited):
    Warehouse(edited)  # which writes the seeds
    with duckdb.connect() as shell:  # like the text of `traffic views`, which is plain SQL over files
        shell.execute(script(take_snapshot(edited, Scope("acme", date(2026, 3, 1), date(2026, 3, 2)))))
        rows = shell.execute("SELECT short_code, domain, target_url FROM links_in_scope").fetchall()
    assert {(code, domain): target for code, domain, target in rows} == AFTERWARDS


def test_repeating_an_edit_writes_nothing(edited):
    before = files_of_links(edited)
    assert put(edited, "a", "https://shop.example/new").target_url == "https://shop.example/new"
    assert files_of_links(edited) == before


def test_an_edit_for_another_version_does_not_stop_other_edits(lake):
    first, second = new_link("a", "", "https://shop.example/1", NOW), new_link("b", "", "https://shop.example/2", NOW)
    edit_links(lake, "acme", [LinkEdit("a", "", first)])
    edits = [LinkEdit("a", "", None, version="0" * 32), LinkEdit("b", "", second), LinkEdit("c", "", None, version="*")]
    done = edit_links(lake, "acme", edits)
    assert [edit.fits(before) for edit, (before, _) in zip(edits, done, strict=True)] == [False, True, False]
    assert [link.short_code for link in links_of(lake, "acme")] == ["a", "b"]


def test_the_last_of_several_edits_to_a_link_counts(lake):
    links(lake, "acme", SOME)
    ways = [new_link("a", "", f"https://shop.example/{number}", NOW) for number in range(3)]
    edit_links(lake, "acme", [LinkEdit("a", "", link) for link in ways])
    assert targets(lake)["a", ""] == "https://shop.example/2"


def test_an_import_overrides_edited_links(edited):
    changes = change_links(edited, "acme", [new_link("b", "", "https://shop.example/back", NOW)], NOW)
    assert [len(part) for part in changes] == [1, 0, 3, 0]
    assert targets(edited) == AFTERWARDS | {("b", ""): "https://shop.example/back"}
    assert edited.manifest.links.live("acme").changes


def test_a_replacing_import_leaves_no_changes(edited):
    change_links(edited, "acme", [new_link("z", "", "https://shop.example/z", NOW)], NOW, replace=True)
    assert targets(edited) == {("z", ""): "https://shop.example/z"}
    assert edited.manifest.links.live("acme").changes is None


def test_folding_keeps_the_links(edited):
    fold_links(edited, "acme")
    assert edited.manifest.links.live("acme").changes is None
    assert targets(edited) == AFTERWARDS


def test_links_without_changes_are_not_folded(lake):
    links(lake, "acme", SOME)
    whole = links_path(lake)
    fold_links(lake, "acme")
    assert links_path(lake) == whole


def test_too_many_changes_are_folded_by_an_edit(edited, monkeypatch):
    monkeypatch.setattr(link_files, "MAX_CHANGES", 3)
    put(edited, "e", "https://shop.example/e")
    assert edited.manifest.links.live("acme").changes is None
    assert targets(edited) == AFTERWARDS | {("e", ""): "https://shop.example/e"}


@pytest.mark.parametrize(("most", "age", "is_folded"), [
    (2, timedelta(0), True), (3, timedelta(0), False), (3, FOLDED_AFTER + timedelta(hours=1), True),
])  # fmt: skip
def test_changes_are_folded_if_too_many_or_too_old(edited, most, age, is_folded):
    fold_due(edited, datetime.now(UTC) + age, most)
    assert (edited.manifest.links.live("acme").changes is None) == is_folded


@pytest.mark.parametrize(("count", "is_folded"), [(200, False), (201, True)])
def test_more_than_200_changes_are_folded(lake, count, is_folded):
    links(lake, "acme", SOME)
    added = [new_link(f"z{number}", "", "https://shop.example/z", NOW) for number in range(count)]
    edit_links(lake, "acme", [LinkEdit(link.short_code, "", link) for link in added])
    fold_due(lake, datetime.now(UTC))
    assert (lake.manifest.links.live("acme").changes is None) == is_folded


def test_later_edits_keep_the_age_of_changes(edited):
    before_the_edit = datetime.now(UTC)
    put(edited, "f", "https://shop.example/f")
    assert edited.manifest.links.to_fold(9, before_the_edit) == ["acme"]


def test_damaged_changes_do_not_prevent_folding_others(edited):
    links(edited, "other", SOME)
    edit_links(edited, "other", [LinkEdit("a", "", None)])
    flip(changes_path(edited))
    with pytest.raises(LakeDamaged, match="import all links with --replace"):
        fold_due(edited, datetime.now(UTC), 0)
    assert edited.manifest.links.live("other").changes is None


def test_replaced_changes_are_swept_a_day_later(edited):
    fold_links(edited, "acme")
    Compactor(edited, lambda: datetime.now(UTC) + timedelta(hours=25)).sweep()
    assert files_of_links(edited) == {links_path(edited).name}


@pytest.mark.parametrize("module", ["data.store.link_files", "data.manifest.links"])
@pytest.mark.parametrize("is_done", [False, True])
@pytest.mark.parametrize("work", ["edit", "fold"])
def test_a_failed_edit_keeps_the_earlier_links(edited, module, is_done, work):
    step = "move_into_lake" if module == "data.store.link_files" else "insert"
    before = edited.manifest.links.live("acme"), files_of_links(edited)
    with failing_at(module, step, is_done=is_done):
        put(edited, "e", "https://shop.example/e") if work == "edit" else fold_links(edited, "acme")
    assert (edited.manifest.links.live("acme"), files_of_links(edited)) == before
    assert targets(edited) == AFTERWARDS
    assert list(edited.staging.iterdir()) == []


def test_an_edit_to_links_that_have_since_changed_is_rejected(edited):
    read = edited.manifest.links.live("acme")
    put(edited, "e", "https://shop.example/e")
    for write in (lay_over, replace_links):
        with pytest.raises(Conflict, match="the links of acme have since been changed by another process"):
            write(edited, "acme", read, LINK_CHANGES.empty_table())
    assert ("e", "") in targets(edited)


def test_older_unknown_files_are_deleted_by_an_edit(edited):
    left = changes_path(edited).with_name(f"{'0' * 64}-00000000.changes.parquet")
    left.write_bytes(changes_path(edited).read_bytes())
    remove(edited, "a")
    assert not left.exists()
    assert targets(edited) == {key: target for key, target in AFTERWARDS.items() if key != ("a", "")}


@contextmanager
def older(lake, kept):
    """Restore an older manifest into the lake, without the number that shows its age; open the lake."""
    lake.manifest.close()
    put_back(kept, lake.root)
    (lake.root / "generation").unlink()
    with opened(lake.root) as again:
        yield again


@pytest.mark.parametrize("is_folded_before", [False, True])
@pytest.mark.parametrize("is_folded_after", [False, True])
def test_an_edit_with_an_older_manifest_keeps_newer_edits(edited, is_folded_before, is_folded_after):
    if is_folded_before:
        fold_links(edited, "acme")
    kept = kept_manifest(edited.root)
    put(edited, "e", "https://shop.example/e")
    remove(edited, "c")
    if is_folded_after:
        fold_links(edited, "acme")
        put(edited, "a", "https://shop.example/newest")
    expected = targets(edited) | {("f", ""): "https://shop.example/f"}
    with older(edited, kept) as lake:
        put(lake, "f", "https://shop.example/f")
        assert targets(lake) == expected
        assert verify_lake(lake).findings == []


def test_a_first_edit_keeps_links_that_the_manifest_lacks(lake):
    kept = kept_manifest(lake.root)
    links(lake, "acme", SOME)
    put(lake, "a", "https://shop.example/new")
    expected = targets(lake) | {("d", ""): "https://shop.example/d"}
    with older(lake, kept) as again:
        put(again, "d", "https://shop.example/d")
        assert targets(again) == expected


def test_folding_with_an_older_manifest_keeps_newer_edits(edited, caplog):
    kept = kept_manifest(edited.root)
    put(edited, "e", "https://shop.example/e")
    expected = targets(edited)
    with older(edited, kept) as lake:
        fold_links(lake, "acme")
        assert targets(lake) == expected
    assert "acme: links newer than the manifest are in use again: links/organization=acme/" in caplog.text


def test_edits_work_if_an_older_manifest_lists_a_swept_file(edited):
    kept = kept_manifest(edited.root)
    fold_links(edited, "acme")
    expected = targets(edited) | {("e", ""): "https://shop.example/e"}
    Compactor(edited, lambda: datetime.now(UTC) + 2 * FOLDED_AFTER).sweep()
    with older(edited, kept) as lake:
        put(lake, "e", "https://shop.example/e")
        assert targets(lake) == expected


def test_a_damaged_live_file_is_not_skipped(edited):
    kept = kept_manifest(edited.root)
    put(edited, "e", "https://shop.example/e")
    newer = changes_path(edited)
    with older(edited, kept) as lake:
        flip(links_path(lake))
        with pytest.raises(LakeDamaged, match=links_path(lake).name):
            put(lake, "f", "https://shop.example/f")
    assert newer.exists()


def test_an_edit_reports_damage_to_newer_links(edited):
    kept = kept_manifest(edited.root)
    put(edited, "e", "https://shop.example/e")
    flip(changes_path(edited))
    name = changes_path(edited).name
    with older(edited, kept) as lake, pytest.raises(LakeDamaged, match=name):
        remove(lake, "a")


def test_a_rebuild_restores_edited_links_from_files_alone(edited):
    with rebuilt(edited) as again:
        assert targets(again) == AFTERWARDS
        assert again.manifest.links.to_fold(9, datetime.now(UTC) - FOLDED_AFTER) == ["acme"]


def test_a_rebuild_restores_folded_links_from_files_alone(edited):
    fold_links(edited, "acme")
    with rebuilt(edited) as again:
        assert again.manifest.links.live("acme").changes is None
        assert targets(again) == AFTERWARDS


def test_an_older_manifest_does_not_restore_older_links(edited):
    kept = kept_manifest(edited.root)
    put(edited, "e", "https://shop.example/e")
    edited.manifest.close()
    put_back(kept, edited.root)
    with opened(edited.root) as lake, rebuilt(lake, is_lost=False) as again:
        assert targets(again) == AFTERWARDS | {("e", ""): "https://shop.example/e"}


def test_a_clock_set_back_does_not_restore_older_links(edited, monkeypatch):
    class Past(datetime):
        @classmethod
        def now(cls, tz=None):
            return datetime.now(tz) - timedelta(days=9)

    monkeypatch.setattr(link_files, "datetime", Past)
    put(edited, "a", "https://shop.example/last")
    monkeypatch.undo()
    with rebuilt(edited) as again:
        assert targets(again)["a", ""] == "https://shop.example/last"


def test_a_rebuild_reports_changes_without_their_base_file(edited):
    name = links_path(edited).name
    links_path(edited).unlink()
    with rebuilt(edited) as again:
        with pytest.raises(LakeDamaged, match=name):
            links_of(again, "acme")
        assert [finding.path.rpartition("/")[2] for finding in verify_lake(again).findings] == [name]


def test_damaged_changes_are_reported(edited):
    flip(changes_path(edited))
    with pytest.raises(LakeDamaged, match=changes_path(edited).name):
        links_of(edited, "acme")
    assert [edited.root / finding.path for finding in verify_lake(edited).findings] == [changes_path(edited)]


def test_a_backup_contains_edited_links(edited, tmp_path):
    back_up(edited, tmp_path / "copy")
    with opened(tmp_path / "copy") as copy:
        assert targets(copy) == AFTERWARDS


def test_a_published_copy_contains_edited_links(edited, tmp_path):
    LakePublisher(edited, str(tmp_path / "target")).publish("acme")
    (published,) = (tmp_path / "target" / "acme" / "links").glob("*.parquet")
    rows = pq.read_table(published, partitioning=None).to_pylist()
    assert {(row["short_code"], row["domain"]): row["target_url"] for row in rows} == AFTERWARDS


@pytest.mark.parametrize("row_group", [1, 2, 10_000])
def test_random_edits_and_folds_give_the_expected_links(lake, monkeypatch, row_group):
    monkeypatch.setattr(link_files, "_ROW_GROUP", row_group)
    choice, expected, live = random.Random(row_group), {}, LiveLinks()
    for number in range(150):
        key = choice.choice("abcdeÄß"), choice.choice(["", "go.example", "x.example"])
        target = f"https://shop.example/{number}"
        before = expected.get(key)
        link = new_link(*key, target, NOW) if choice.random() < 0.7 else None
        ((was, _),) = edit_links(lake, "acme", [LinkEdit(*key, link)])
        assert (was and was.target_url) == before
        expected.pop(key, None)
        expected |= {key: target} if link else {}
        if choice.random() < 0.1:
            fold_links(lake, "acme")
        assert targets(lake) == expected
        live = lake.manifest.links.live("acme")
    assert live.changes


def test_a_copy_without_the_latest_edits_is_behind(lake, tmp_path):
    links(lake, "acme", SOME)
    LakePublisher(lake, str(tmp_path / "target"), lambda: datetime.now(UTC) - timedelta(minutes=11)).publish("acme")
    assert list(verify_copies(lake)) == []
    remove(lake, "a")
    (finding,) = verify_copies(lake)
    assert (
        finding.reason
        == "is behind: visits or links have changed since the last publication; `traffic publish` copies them"
    )


def test_concurrent_edits_by_several_programs_are_all_applied(lake):
    links(lake, "acme", SOME)
    codes = [f"n{number}" for number in range(40)]

    def add(mine):
        with opened(lake.root) as own:
            for code in mine:
                put(own, code, f"https://shop.example/{code}")
                fold_links(own, "acme")

    with ThreadPoolExecutor(2) as threads:
        list(threads.map(add, (codes[::2], codes[1::2])))
    assert [link.short_code for link in links_of(lake, "acme")] == sorted(["a", "b", "c", *codes])
