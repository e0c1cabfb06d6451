"""A published copy matches the manifest, regardless of what happens to the lake, the target and the publisher."""

import json
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest

from data.buckets.target import Folder, TargetUnavailable, open_target, parse_target
from data.errors import BadInput, LakeDamaged
from data.manifest.files import READERS_GRACE
from data.publish import publisher as publishing
from data.publish.delta import ForeignLog
from data.publish.publisher import LakePublisher, PublishInterrupted, follow_erasures
from data.publish.verification import verify_copies
from data.tasks.compaction import Compactor
from data.tasks.erasure import Criteria, Eraser
from data.tasks.reclassification import Reclassifier
from data.tasks.retention import apply_retention
from tests.support import published
from tests.support.lakes import flipped, opened, rows_of
from tests.support.published import NOW, at, erase, merge, out_of_reach
from tests.support.tables import examples_at_once
from tests.support.visits import land, links


def assert_whole(lake, there, organization="acme"):
    """Check that the copy has the lake's visits, each in its day's partition."""
    table = there / organization / "visits"
    assert sorted(map(str, published.rows_of(table))) == sorted(map(str, rows_of(lake, organization)))
    assert all(path.startswith(f"day={day}/") for path, day in published.files_of(table).items())
    assert [*verify_copies(lake)] == []


STEPS = {
    "landed": lambda lake: land(lake, "acme", [at(3, path="/late"), at(4, path="/later")]),
    "merged": merge,
    "linked": lambda lake: links(lake, "acme", [{"short_code": "b", "target_url": "https://x.example/"}]),
    "reclassified": lambda lake: Reclassifier(lake).run(["acme"]),
    "erased": lambda lake: erase(lake, domain="gone.example"),
    "retained": lambda lake: apply_retention(lake, 7, NOW),
    "emptied": erase,
}


def test_a_copy_matches_the_manifest_after_every_change(lake, there, publish):
    for number in range(3):
        gone = at(2, path=f"/secret-{number}", domain="gone.example", user_agent="GPTBot/1.2")
        land(lake, "acme", [gone, at(2, path=f"/a{number}"), at(5, path=f"/b{number}")])
        land(lake, "other", [at(1, path="/theirs")])
    links(lake, "acme", [{"short_code": "a", "target_url": "https://x.example/"}])
    publish()
    assert_whole(lake, there)
    assert [row["short_code"] for row in published.rows_of(there / "acme/links")] == ["a"]
    assert not (there / "other").exists()
    for name, step in STEPS.items():
        step(lake)
        publish()
        assert_whole(lake, there)
        before = published.objects_in(there)
        assert publish()[1:4] == (0, 0, 0), name
        assert published.objects_in(there) == before, name


@pytest.mark.parametrize("is_new", [False, True], ids=["the same object", "another one"])
def test_the_log_marks_only_pure_merges_as_changing_no_values(lake, there, publish, is_new):
    def changed():
        (LakePublisher(lake, str(there)).publish if is_new else publish)("acme")
        newest = max((there / "acme/visits/_delta_log").glob("*.json")).read_text().splitlines()
        actions = [action for action in map(json.loads, newest) if "add" in action or "remove" in action]
        return [(kind, one["dataChange"]) for action in actions for kind, one in action.items()]

    today = NOW.day
    for number in range(13):  # on an open day, so that they are merged but not judged
        land(lake, "acme", [at(today, path=f"/{number}", user_agent="GPTBot/1.2")])
    assert changed() == [("add", True)] * 13
    merge(lake)
    assert {*changed()} == {("remove", False), ("add", False)}
    for number in range(13):
        land(lake, "acme", [at(today, path=f"/later-{number}", user_agent="GPTBot/1.2")])
    merge(lake)  # published and unpublished files
    assert ("add", True) in changed()
    Reclassifier(lake).run(["acme"])
    assert {*changed()} == {("remove", True), ("add", True)}
    land(lake, "acme", [at(2, path="/a"), at(2, path="/b")])
    changed()
    merge(lake)  # judges the day, too
    assert changed() == [("remove", True), ("add", True)]


def test_the_number_of_visits_is_the_only_statistic_in_the_log(lake, there, publish):
    land(lake, "acme", [at(2, path="/secret", short_code="secret"), at(2)])
    publish()
    (add,) = [action["add"] for action in published.versions_of(there / "acme/visits")[0] if "add" in action]
    assert json.loads(add["stats"]) == {"numRecords": 2}
    log = (there / "acme/visits/_delta_log/00000000000000000000.json").read_text()
    assert "secret" not in log
    assert "timestamp_ntz" in log


def test_erased_visits_disappear_from_every_object_of_the_copy(lake, there, publish):
    land(lake, "acme", [at(2, path="/canary", user_agent="canary", domain="gone.example"), at(2)])
    links(lake, "acme", [{"short_code": "a", "target_url": "https://x.example/"}])
    publish()
    (there / "acme/visits/day=2026-03-02/orphan.parquet").write_bytes(b"canary")  # as left by a killed program
    before = set(published.objects_in(there))
    Eraser(lake).run("acme", Criteria(domain="gone.example"))  # its files are still on this disk
    assert [copy.due_since is not None for copy in lake.manifest.copies.find()] == [True]
    (followed,) = follow_erasures(lake, "acme")
    assert followed == (str(there), "acme", "")
    assert_whole(lake, there)
    after = published.objects_in(there)
    assert all(path not in after for path in before if path.startswith("acme/visits/") and "json" not in path)
    assert set(published.versions_of(there / "acme/visits")) == {1}
    assert [copy.due_since for copy in lake.manifest.copies.find()] == [None]


def test_files_deleted_in_the_lake_leave_the_copy_the_next_day(lake, there, publish):
    for path in ("/a", "/b"):
        land(lake, "acme", [at(2, path=path)])
    publish()
    merge(lake)
    moments = [NOW]
    later = LakePublisher(lake, str(there), lambda: moments[-1])

    def parquet_files():
        return len([path for path in published.objects_in(there / "acme/visits") if "/day=" in f"/{path}"])

    later.publish("acme")
    assert parquet_files() == 3
    Compactor(lake, lambda: datetime.now(UTC) + READERS_GRACE).sweep()
    later.publish("acme")
    assert parquet_files() == 3
    moments.append(NOW + timedelta(days=1))
    later.publish("acme")
    assert parquet_files() == 1
    assert_whole(lake, there)


def test_an_erasure_stays_due_until_its_target_is_reached(lake, there, publish, monkeypatch):
    land(lake, "acme", [at(2, path="/canary", domain="gone.example"), at(2)])
    publish()
    with monkeypatch.context() as patch:
        patch.setattr(Folder, "put", out_of_reach)
        erase(lake, domain="gone.example")
        (followed,) = follow_erasures(lake)
        assert followed.problem == f"{there} cannot be used: it does not answer."
        (copy,) = lake.manifest.copies.find()
        assert copy.due_since is not None
        (finding,) = verify_copies(lake)
        assert finding.place == str(there)
        assert "may hold visits of acme that were erased since" in finding.reason
    assert follow_erasures(lake) == [(str(there), "acme", "")]
    assert_whole(lake, there)


def test_an_erasure_during_a_publication_is_applied_afterwards(lake, there, publish, monkeypatch):
    land(lake, "acme", [at(2, path="/canary", domain="gone.example"), at(2)])
    put = Folder.put

    def erase_meanwhile(target, key, body):
        monkeypatch.setattr(Folder, "put", put)
        Eraser(lake).run("acme", Criteria(domain="gone.example"))
        return put(target, key, body)

    publish()
    land(lake, "acme", [at(3)])
    monkeypatch.setattr(Folder, "put", erase_meanwhile)
    publish()
    assert [copy.due_since is not None for copy in lake.manifest.copies.find()] == [True]
    follow_erasures(lake)
    assert_whole(lake, there)
    assert [copy.due_since for copy in lake.manifest.copies.find()] == [None]


def test_publishing_uses_the_file_that_replaced_another(lake, there, publish, monkeypatch):
    for path in ("/a", "/b"):
        land(lake, "acme", [at(2, path=path)])
    intact_path = type(lake).intact_path

    def merged_meanwhile(this, file):
        monkeypatch.setattr(type(lake), "intact_path", intact_path)
        merge(lake)
        Compactor(lake, lambda: datetime.now(UTC) + READERS_GRACE).sweep()
        return intact_path(this, file)

    monkeypatch.setattr(type(lake), "intact_path", merged_meanwhile)
    publish()
    assert_whole(lake, there)


def test_a_damaged_file_is_not_published(lake, there, publish):
    land(lake, "acme", [at(2)])
    (file,) = lake.manifest.files.live("acme")
    with flipped(lake.root / file.path), pytest.raises(LakeDamaged, match="SHA-256 differs"):
        publish()


def test_concurrent_publishers_write_one_log(lake, there):
    def work(name):
        publisher = LakePublisher(lake, str(there))
        for number in range(3):
            land(lake, "acme", [at(2 + number % 2, path=f"/{name}/{number}")])
            publisher.publish("acme")

    with ThreadPoolExecutor(3) as pool:
        list(pool.map(work, "abc"))
    LakePublisher(lake, str(there)).publish("acme")
    assert_whole(lake, there)


def test_after_many_versions_readers_start_at_a_checkpoint(lake, there, publish, monkeypatch):
    monkeypatch.setattr(publishing, "MAX_VERSIONS", 3)
    for number in range(8):
        land(lake, "acme", [at(2, path=f"/{number}")])
        publish()
        assert_whole(lake, there)
        assert len(published.versions_of(there / "acme/visits")) <= 3
    LakePublisher(lake, str(there)).publish("acme")
    assert_whole(lake, there)


@pytest.mark.parametrize("named", [None, 0], ids=["none", "an earlier one"])
def test_a_missing_or_old_checkpoint_reference_is_rewritten(lake, there, publish, monkeypatch, named):
    """A program may be killed between writing a checkpoint and naming it; readers use the named checkpoint."""
    monkeypatch.setattr(publishing, "MAX_VERSIONS", 1)
    for day in (2, 3):
        land(lake, "acme", [at(day, path="/a")])
        publish()
    name = there / "acme/visits/_delta_log/_last_checkpoint"
    written = name.read_bytes()
    name.unlink()
    if named is not None:
        name.write_text(json.dumps(json.loads(written) | {"version": named}))
        (newest,) = name.parent.glob("*.checkpoint.parquet")
        (name.parent / f"{named:020}.checkpoint.parquet").write_bytes(newest.read_bytes())
    LakePublisher(lake, str(there)).publish("acme")
    assert name.read_bytes() == written
    assert_whole(lake, there)


def test_a_current_copy_is_recorded_at_most_every_two_minutes(lake, there):
    land(lake, "acme", [at(2)])
    recorded = []
    for minutes in (0, 1, 3):
        LakePublisher(lake, str(there), lambda: NOW + timedelta(minutes=minutes)).publish("acme")  # noqa: B023
        recorded.append(lake.manifest.copies.find()[0].published_at)
    assert recorded == [NOW, NOW, NOW + timedelta(minutes=3)]


def test_an_interrupted_publication_is_completed_by_the_next(lake, there):
    land(lake, "acme", [at(2), at(3)])
    publisher = LakePublisher(lake, str(there))
    publisher.interrupt()
    with pytest.raises(PublishInterrupted):
        publisher.publish("acme")
    assert not (there / "acme").exists()
    LakePublisher(lake, str(there)).publish("acme")
    assert_whole(lake, there)


def test_a_log_version_from_another_program_is_rejected(lake, there, publish):
    land(lake, "acme", [at(2)])
    publish()
    log = there / "acme/visits/_delta_log"
    (log / f"{1:020}.json").write_text('{"commitInfo": {"engineInfo": "delta-rs"}}\n')
    land(lake, "acme", [at(3)])
    with pytest.raises(ForeignLog, match=r"00001\.json was not written by traffic publish.*--again"):
        publish()
    (log / f"{0:020}.json").unlink()
    with pytest.raises(ForeignLog, match="versions before it are missing"):
        LakePublisher(lake, str(there)).publish("acme")


@pytest.mark.parametrize("body", [b"\xff\xfegarbage", b"[]", b'{"commitInfo": 1}', b'"text"', b'{"add": {}}', b""])
def test_a_garbage_log_version_leaves_an_erasure_due(lake, there, publish, body):
    land(lake, "acme", [at(2, domain="gone.example"), at(3)])
    publish()
    (there / f"acme/visits/_delta_log/{1:020}.json").write_bytes(body or b"\n")
    erase(lake, domain="gone.example")
    (followed,) = follow_erasures(lake, "acme")
    assert "00001.json was not written by traffic publish" in followed.problem
    assert [copy.due_since is not None for copy in lake.manifest.copies.find()] == [True]
    assert "00001.json was not written by" in [*verify_copies(lake)][-1].reason


def test_a_target_with_other_content_is_rejected(lake, there, publish, tmp_path):
    land(lake, "acme", [at(2)])
    publish()
    with opened(tmp_path / "another", create=True) as another:
        land(another, "acme", [at(2)])
        with pytest.raises(BadInput, match="holds a copy of another lake"):
            LakePublisher(another, str(there)).publish("acme")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "diary.txt").touch()
    with pytest.raises(BadInput, match="is not empty, and no lake is published there"):
        LakePublisher(lake, str(tmp_path / "mine")).publish("acme")


def test_a_target_that_cannot_erase_is_rejected(lake, there, publish, monkeypatch):
    land(lake, "acme", [at(2)])
    monkeypatch.setattr(Folder, "put", lambda *_: "a-version")
    with pytest.raises(BadInput, match="turn off the bucket's versioning"):
        publish()


def test_changed_missing_and_unknown_published_files_are_found(lake, there, publish):
    land(lake, "acme", [at(2), at(3), at(4)])
    publish()
    first, second, _ = sorted((there / "acme/visits").glob("day=*/*.parquet"))
    second.unlink()
    (there / "acme/visits/left.parquet").touch()
    with flipped(first):
        found = {(path.rpartition("/")[2], reason) for path, reason in verify_copies(lake)}
    assert found == {
        (first.name, "was changed (its SHA-256 differs); `traffic publish --again` uploads it again"),
        (
            second.name,
            "is missing, or its size differs from the log; `traffic publish --again` uploads it again",
        ),
        ("left.parquet", "is in neither the log nor the manifest; `traffic publish` deletes it"),
    }


def test_a_forgotten_target_is_not_updated(lake, there, publish):
    land(lake, "acme", [at(2, domain="gone.example"), at(2)])
    publish()
    assert lake.manifest.copies.forget(str(there)) == 1
    erase(lake, domain="gone.example")
    assert follow_erasures(lake) == []


@examples_at_once("text", "name")
def test_a_target_has_one_normalized_form(text, name, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    assert parse_target(text) == name.replace("TMP", str(tmp_path))


@examples_at_once("text")
def test_invalid_targets_are_rejected(text):
    with pytest.raises(BadInput, match="write a folder or a bucket like s3://bucket/prefix"):
        parse_target(text)


def test_an_unwritable_folder_counts_as_unreachable(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(TargetUnavailable, match=f"{tmp_path}/file/copy cannot be used"):
        open_target(str(tmp_path / "file" / "copy")).put("a", b"")
