"""With a store that fails on purpose, erasures are either complete or reported as due."""

import json
from datetime import UTC, datetime, timedelta

import pytest

from data.buckets import target as targets
from data.buckets.object_errors import ObjectUnavailable, TargetUnavailable
from data.buckets.target import open_target
from data.errors import BadInput
from data.publish.delta import ForeignLog, LogOfAnotherLake
from data.publish.publisher import LakePublisher, follow_erasures
from data.publish.verification import verify_copies
from data.tasks.erasure import Criteria, Eraser
from tests.support.lakes import opened
from tests.support.published import at
from tests.support.visits import land

PLACE = "s3://bucket/lake"
LOG = "lake/acme/visits/_delta_log"
WORDS = {
    "403 AccessDenied": "lack the permission for this: grant it",
    "403 InvalidAccessKeyId": "check the keys in the AWS variables",
    "404 NoSuchBucket": "the bucket does not exist",
    "503 SlowDown": "503 Service Unavailable, SlowDown",
    "cut": "no response, or not an S3 response",
}


class Clock:
    def __init__(self):
        self.passed = timedelta(0)

    def __call__(self):
        return datetime.now(UTC) + self.passed


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def publish(lake, clock):
    """Publish acme; each call acts as a new program would."""
    return lambda **how: LakePublisher(lake, PLACE, clock).publish("acme", **how)


def reasons(lake):
    return [reason for _, reason in verify_copies(lake)]


def canary(lake, day=2):
    land(lake, "acme", [at(day, path="/canary", user_agent="canary", domain="gone.example"), at(day)])


def erase(lake, clock):
    """Erase the canary, in the copy as well; return the problem with the copy, or an empty string."""
    Eraser(lake).run("acme", Criteria(domain="gone.example"))
    return follow_erasures(lake, "acme", clock)[0].problem


# Versions


def test_a_versioned_bucket_stays_rejected(store, lake, publish):
    store.versioning = "Enabled"
    canary(lake)
    for _ in range(3):
        with pytest.raises(BadInput, match="keeps earlier versions of objects"):
            publish()
    assert not any(key.startswith("lake/acme") for key in store.objects())


@pytest.mark.parametrize("says", [True, False], ids=["asked", "seen in a put"])
def test_an_erasure_stays_due_once_a_bucket_keeps_versions(store, lake, publish, clock, says):
    canary(lake)
    publish()
    store.versioning = "Enabled"
    if not says:
        store.fail("GET /bucket/.versioning", "403 AccessDenied")
    assert "it keeps earlier versions of objects" in erase(lake, clock)
    (copy,) = lake.manifest.copies.find()
    assert copy.due_since
    assert "it keeps earlier versions of objects" in copy.problem


def test_publishing_reports_that_a_bucket_became_versioned(store, lake, publish, clock):
    canary(lake)
    publish()
    store.versioning = "Enabled"
    clock.passed = timedelta(minutes=3)
    with pytest.raises(BadInput, match="keeps earlier versions"):
        publish()
    assert "it keeps earlier versions of objects, which may hold erased visits" in reasons(lake)


def test_versions_from_before_a_suspension_leave_an_erasure_due(store, lake, publish, clock):
    canary(lake)
    publish()
    store.versioning = "Enabled"
    store.put("lake/acme/visits/old", b"1")
    store.put("lake/acme/visits/old", b"2")
    store.versioning = "Suspended"
    assert "it has earlier versions of objects, from before its versioning was suspended" in erase(lake, clock)


def test_suspended_versioning_without_old_versions_is_accepted(store, lake, publish, clock):
    store.versioning = "Suspended"
    canary(lake)
    publish()
    assert erase(lake, clock) == ""
    assert not any(b"canary" in body for body in store.bodies())


def test_objects_that_cannot_be_deleted_leave_an_erasure_due(store, lake, publish, clock):
    canary(lake)
    publish()
    store.remove = lambda *_: None
    assert "it keeps objects that were deleted" in erase(lake, clock)


# Uploads


def test_an_erasure_deletes_the_copys_unfinished_uploads(store, lake, publish, clock):
    canary(lake)
    publish()
    store.uploads |= {"1": ("lake/acme/visits/a", {1: b"canary"}), "2": ("other/lake", {1: b"theirs"})}
    assert "is an unfinished upload; `traffic publish --again` deletes its parts" in reasons(lake)
    assert erase(lake, clock) == ""
    assert [*store.uploads] == ["2"]
    assert reasons(lake) == []


def test_an_erasure_is_not_done_while_uploads_cannot_be_listed(store, lake, publish, clock):
    canary(lake)
    publish()
    store.fail("uploads=", "403 AccessDenied")
    assert "403 Forbidden, AccessDenied" in erase(lake, clock)


def test_an_erasure_completes_if_a_store_lacks_multipart_uploads(store, lake, publish, clock):
    canary(lake)
    publish()
    store.fail("uploads=", "501 NotImplemented")
    assert erase(lake, clock) == ""


@pytest.mark.parametrize(("size", "parts"), [(1_000, 1), (20_000_000, 1), (65_000_000, 2)])
def test_only_large_objects_are_uploaded_in_parts(store, size, parts, tmp_path):
    (tmp_path / "file").write_bytes(bytes(size))
    open_target(PLACE).put("a", tmp_path / "file")
    assert (sum(one.startswith("PUT ") for one in store.asked) > 1) == (parts > 1)
    assert len(store.objects()["lake/a"].body) == size


# The log and its objects


def gone(store):
    store.buckets["bucket"] = {"lake/traffic.json": store.buckets["bucket"]["lake/traffic.json"]}


def last_version_gone(store):
    del store.buckets["bucket"][max(key for key in store.objects() if key.startswith(LOG) and key.endswith("json"))]


def changed_object(store):
    key = next(key for key in store.objects() if key.endswith(".parquet") and LOG not in key)
    store.put(key, b"x" * len(store.objects()[key].body))


def missing_object(store):
    del store.buckets["bucket"][next(key for key in store.objects() if key.endswith(".parquet") and LOG not in key)]


def foreign_version(store):
    store.put(f"{LOG}/{9:020}.json", b'{"commitInfo": {"engineInfo": "delta-rs"}}\n')


def garbage_version(store):
    store.put(max(key for key in store.objects() if key.startswith(LOG) and key.endswith("json")), b"\xff\xfe")


def other_files(store):
    key = max(key for key in store.objects() if key.startswith(LOG) and key.endswith("json"))
    path = next(key for key in store.objects() if key.endswith(".parquet") and LOG not in key)
    removed = json.dumps({"remove": {"path": path.removeprefix("lake/acme/visits/")}}).encode()
    store.put(key, store.objects()[key].body + removed + b"\n")


DAMAGES = {
    gone: "_delta_log is gone: `traffic publish --again` repairs it.",
    last_version_gone: "_delta_log ends with version ",
    changed_object: "was changed (its SHA-256 differs)",
    missing_object: "is missing, or its size differs",
    foreign_version: "was not written by traffic publish",
    garbage_version: "was not written by traffic publish",
    other_files: "was changed; `traffic publish --again` repairs it",
}


@pytest.mark.parametrize(("damage", "reason"), DAMAGES.items(), ids=[one.__name__ for one in DAMAGES])
def test_a_damaged_copy_is_found_and_repaired(store, lake, publish, damage, reason):
    for day in (2, 3, 4):
        canary(lake, day)
        publish()
    assert reasons(lake) == []
    damage(store)
    found = reasons(lake)
    assert any(reason in one for one in found), found
    publish(again=True)
    assert reasons(lake) == []


def test_a_copy_without_traffic_json_is_found_and_repaired(store, lake, publish):
    canary(lake)
    publish()
    del store.buckets["bucket"]["lake/traffic.json"]
    assert f"{PLACE}/traffic.json is missing: `traffic publish --again` repairs it." in reasons(lake)
    with pytest.raises(BadInput, match=r"traffic\.json is missing"):
        publish()
    publish(again=True)
    assert reasons(lake) == []


def test_an_outdated_copy_is_reported(store, lake, publish, clock):
    clock.passed = timedelta(minutes=-11)
    canary(lake)
    publish()
    canary(lake, 3)
    assert reasons(lake) == [
        "is behind: visits or links have changed since the last publication; `traffic publish` copies them"
    ]


def test_a_publisher_stops_if_its_table_is_deleted(store, lake):
    publisher = LakePublisher(lake, PLACE)
    canary(lake)
    publisher.publish("acme")
    gone(store)
    canary(lake, 3)
    with pytest.raises(ForeignLog, match="_delta_log is gone"):
        publisher.publish("acme")


def test_two_lakes_at_one_target_reject_each_other(store, lake, publish, tmp_path):
    canary(lake)
    publish()
    with opened(tmp_path / "another", create=True) as another:
        land(another, "acme", [at(2)])
        with pytest.raises(BadInput, match="holds a copy of another lake"):
            LakePublisher(another, PLACE).publish("acme")
        del store.buckets["bucket"]["lake/traffic.json"]
        theirs = {key: body for key, body in store.buckets["bucket"].items() if "_delta_log" in key}
        store.buckets["bucket"].clear()
        LakePublisher(another, PLACE).publish("acme")
        gone(store)
        store.buckets["bucket"] |= theirs
        with pytest.raises(LogOfAnotherLake, match="another lake"):
            LakePublisher(another, PLACE).publish("acme", again=True)
    assert any("holds a copy of another lake" in reason for reason in reasons(lake))


# Late puts


def test_a_late_put_keeps_an_erasure_due_while_it_may_appear(store, lake, publish, clock):
    canary(lake)
    publish()
    canary(lake, 3)
    store.fail("PUT /bucket/lake/acme/visits/day", "late")
    with pytest.raises(TargetUnavailable):
        publish()
    store.mend()
    problem = erase(lake, clock)
    assert "an interrupted upload may still appear until" in problem
    assert any("may still appear until" in reason for reason in reasons(lake))
    assert lake.manifest.copies.find()[0].settles_at
    store.apply_late()
    assert any(b"canary" in body for body in store.bodies())
    clock.passed = timedelta(minutes=16)
    assert follow_erasures(lake, "acme", clock)[0].problem == ""
    assert not any(b"canary" in body for body in store.bodies())
    assert reasons(lake) == []
    assert lake.manifest.copies.find()[0].due_since is None


# Checkpoints

CHECKPOINT_DAMAGES = {
    "missing": lambda store, key: store.remove(key),
    "cut": lambda store, key: store.put(key, store.objects()[key].body[:200]),
    "garbage": lambda store, key: store.put(key, b"\xff\xfegarbage"),
}


@pytest.mark.parametrize("is_read_without", [True, False], ids=["all versions", "later versions only"])
@pytest.mark.parametrize("damage", CHECKPOINT_DAMAGES)
@pytest.mark.parametrize("name", ["_last_checkpoint", ".checkpoint.parquet"])
def test_a_damaged_checkpoint_does_not_prevent_an_erasure(store, lake, clock, caplog, name, damage, is_read_without):
    canary(lake)
    LakePublisher(lake, PLACE).publish("acme")
    versions = dict(store.buckets["bucket"])
    clock.passed = timedelta(days=1)
    for day in (3, 4):
        canary(lake, day)
        LakePublisher(lake, PLACE, clock).publish("acme")
        versions |= store.buckets["bucket"]
        clock.passed += timedelta(days=1)
    if is_read_without:
        kept = {key: body for key, body in versions.items() if LOG in key and key.endswith("json")}
        store.buckets["bucket"] = kept | store.buckets["bucket"]
        clock.passed -= timedelta(days=2)
    key = next(key for key in store.objects() if key.startswith(LOG) and key.endswith(name))
    CHECKPOINT_DAMAGES[damage](store, key)
    assert erase(lake, clock) == ""
    assert reasons(lake) == []
    assert not any(b"canary" in body for body in store.bodies())
    assert sum("will be written again" in record.message for record in caplog.records) <= 1


# Messages


@pytest.mark.parametrize(("how", "words"), WORDS.items())
def test_each_failure_is_reported_with_its_cause_or_remedy(store, lake, publish, how, words, monkeypatch):
    monkeypatch.setattr(targets, "_TIMEOUT", timedelta(seconds=2))
    store.fail("GET /bucket/lake/traffic.json", how)
    canary(lake)
    with pytest.raises(TargetUnavailable, match=words) as caught:
        publish()
    assert PLACE in str(caught.value)
    assert "secret-of-the-tests" not in str(caught.value)


@pytest.mark.parametrize("how", ["cut", "chunk", "noise", "garbage", "500 chunk"])
def test_a_listing_is_requested_again_after_a_broken_response(store, how):
    store.put("lake/a", b"1")
    store.fail("list-type=2", how, times=1)
    assert open_target(PLACE).list("") == {"a": 1}


@pytest.mark.parametrize("how", ["cut", "chunk", "noise", "garbage", "500 chunk"])
def test_a_listing_that_stays_broken_is_reported(store, how):
    store.fail("list-type=2", how)
    with pytest.raises(TargetUnavailable, match=PLACE):
        open_target(PLACE).list("")


def test_an_object_that_may_not_be_read_is_reported(store):
    store.put("lake/a", b"1")
    store.fail("GET /bucket/lake/a", "403 AccessDenied")
    with pytest.raises(ObjectUnavailable, match=f"{PLACE}/a cannot be used: 403 Forbidden, AccessDenied"):
        open_target(PLACE).get("a")


def test_an_object_with_an_invalid_key_is_skipped_and_reported(store, lake, publish, clock, caplog):
    canary(lake)
    publish()
    store.put("lake/acme/visits//odd", b"1")
    assert erase(lake, clock) == ""
    assert any("is skipped" in record.message for record in caplog.records)
    assert reasons(lake) == ["is in neither the log nor the manifest; delete it, since its key is not allowed"]
