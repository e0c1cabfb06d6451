"""Visits published in a bucket: engines by other makers get the same counts as the lake and read no erased visit."""

import json
import os
import subprocess
import time
from contextlib import closing
from datetime import UTC, date, datetime, timedelta

import pytest

from data import Lake
from data.buckets import target as store
from data.buckets.target import TargetUnavailable, open_target
from data.errors import BadInput
from data.publish.publisher import LakePublisher, follow_erasures
from data.publish.verification import verify_copies
from data.store.pending import enqueue, flush_all
from data.tasks.erasure import Criteria, Eraser
from data.tasks.reclassification import Reclassifier
from data.tasks.retention import apply_retention
from queries import OwnSql, Scope
from tests.cluster.processes import wait_until
from tests.publish import readers
from tests.publish.conftest import KEY, PROGRAMS, SECRET, put_as_is, traffic, variables
from tests.publish.disturbing import disturbing
from tests.support.lakes import opened
from tests.support.published import NOW, at, merge
from tests.support.visits import land, links, packed

COUNTED = (
    "SELECT CAST(day AS VARCHAR), hour_of(visited_at, utc_offset), bot_category, count(*), count(DISTINCT visitor), "
    "coalesce(sum(visitor), 0) FROM visits_in_scope GROUP BY ALL ORDER BY ALL"
)
"""The query with which the program counts what the readers count."""


def test_three_engines_agree_with_the_lake_after_every_change(lake, bucket, name, spark_session):
    publisher, table = LakePublisher(lake, name), f"{name}/acme/visits"
    for number in range(3):
        land(lake, "acme", [
            at(2, 22, path=f"/{number}", visitor=-number - 2**60, utc_offset=330, user_agent="GPTBot/1.2"),
            at(3, 23, path="/b", visitor=7, utc_offset=-60, bot_category="ai_assistant"),
            at(4, visitor=None, domain="gone.example"),
            *(at(6, minute=minute, path=f"/{minute}", status=404, visitor=5) for minute in range(9)),  # disguised bots
        ])  # fmt: skip
    links(lake, "acme", [{"short_code": "a", "target_url": "https://x.example/"}])

    def live():
        enqueue(lake.manifest, [("acme", packed([at(5, path="/live")]))], datetime.now(UTC))
        flush_all(lake)

    steps = (
        lambda: None,
        live,
        lambda: merge(lake),
        lambda: Reclassifier(lake).run(["acme"]),
        lambda: Eraser(lake).run("acme", Criteria(domain="gone.example")),
        lambda: apply_retention(lake, 7, NOW),
    )
    for step in steps:
        step()
        publisher.publish("acme")
        with closing(OwnSql(lake, "acme")) as own_sql:
            found = own_sql.sql(COUNTED, Scope("acme", date(2026, 1, 1), date(2026, 12, 31))).rows
        expected = [(*row[:5], int(row[5])) for row in found]
        assert readers.by_delta_rs(table) == expected
        assert readers.by_clickhouse(table, bucket, KEY, SECRET) == expected
        assert readers.by_sail(table, spark_session) == expected
        assert [*verify_copies(lake)] == []


def test_an_erasure_stays_due_while_the_bucket_is_down(lake, bucket, name):
    land(lake, "acme", [at(2, visitor=42), at(2, visitor=43)])
    LakePublisher(lake, name).publish("acme")
    bucket.stop()
    try:
        run = traffic("erase", "--org", "acme", "--visitor", "42", "--yes", "--lake", lake.root)
        assert run.returncode == 1
        receipt = json.loads(run.stdout)
        (copy,) = receipt["copies"]
        assert (receipt["visits"], copy["done"]) == (1, False)
        assert f"Visits not yet erased at {name} for acme: {name} cannot be used: no response" in run.stderr
        assert KEY not in run.stdout + run.stderr
        assert SECRET not in run.stdout + run.stderr
        status = traffic("status", "--lake", lake.root)
        assert "may hold visits erased" in status.stdout
    finally:
        bucket.start()
    wait_until(
        lambda: traffic("publish", name, "--lake", lake.root).returncode == 0
    )  # the bucket needs a while to recover
    assert [copy.due_since for copy in lake.manifest.copies.find()] == [None]
    assert [*verify_copies(lake)] == []


def test_a_bucket_that_keeps_versions_is_rejected(lake, bucket):
    name = bucket.new()
    bucket.shell(f"s3.bucket.versioning -name {name} -enable")
    land(lake, "acme", [at(2)])
    run = traffic("publish", f"s3://{name}/lake", "--lake", lake.root)
    assert run.returncode == 2
    assert "turn off the bucket's versioning" in run.stderr


def test_an_erasure_stays_due_once_a_bucket_keeps_versions(lake, bucket, tmp_path):
    name = bucket.new()
    land(lake, "acme", [at(2, domain="gone.example"), at(2)])
    LakePublisher(lake, f"s3://{name}/lake").publish("acme")
    bucket.shell(f"s3.bucket.versioning -name {name} -enable")
    run = traffic("erase", "--org", "acme", "--domain", "gone.example", "--yes", "--lake", lake.root)
    assert (run.returncode, json.loads(run.stdout)["copies"][0]["done"]) == (1, False)
    for run in (traffic("status", "--lake", lake.root), traffic("publish", f"s3://{name}/lake", "--lake", lake.root)):
        assert "it keeps earlier versions of objects" in " ".join((run.stdout + run.stderr).split())


def test_an_erasure_removes_the_parts_of_unfinished_uploads(lake, bucket, name):
    import obstore  # noqa: PLC0415

    land(lake, "acme", [at(2, domain="gone.example"), at(2)])
    LakePublisher(lake, name).publish("acme")
    target = open_target(name)
    writer = obstore.open_writer(target._store, "acme/visits/cut", buffer_size=5 << 20)
    writer.write(bytes(11 << 20))
    wait_until(target.unfinished_uploads)
    assert [place for place, _ in verify_copies(lake)] == [f"{name}/acme/visits/cut"]
    Eraser(lake).run("acme", Criteria(domain="gone.example"))
    assert follow_erasures(lake, "acme")[0].problem == ""
    assert target.unfinished_uploads() == ()
    assert [*verify_copies(lake)] == []


@pytest.mark.parametrize("what", ["", "acme/visits/_delta_log/", "acme/visits/day="])
def test_missing_objects_are_found_and_uploaded_again(lake, bucket, name, what):
    land(lake, "acme", [at(2), at(3)])
    LakePublisher(lake, name).publish("acme")
    target = open_target(name)
    target.delete(key for key in target.list("") if key.startswith(what))
    run = traffic("verify", "--published", "--lake", lake.root)
    assert (run.returncode, "traffic publish --again" in run.stdout) == (1, True)
    assert traffic("publish", name, "--again", "--lake", lake.root).returncode == 0
    assert [*verify_copies(lake)] == []
    assert len(readers.by_delta_rs(f"{name}/acme/visits")) == 2


def test_a_damaged_checkpoint_is_skipped(lake, bucket, name):
    land(lake, "acme", [at(2)])
    for day in (3, 4):
        LakePublisher(lake, name).publish("acme")
        land(lake, "acme", [at(day)])
    LakePublisher(lake, name).publish("acme")
    target = open_target(name)
    (key,) = (key for key in target.list("acme/visits/") if key.endswith("checkpoint.parquet"))
    target.put(key, b"garbage")
    LakePublisher(lake, name).publish("acme")
    assert [*verify_copies(lake)] == []
    assert len(readers.by_delta_rs(f"{name}/acme/visits")) == 3


def test_a_key_with_a_newline_is_reported_and_skipped(lake, bucket, name, caplog):
    land(lake, "acme", [at(2, domain="gone.example"), at(3)])
    LakePublisher(lake, name).publish("acme")
    put_as_is(name, "acme/visits/line\nbreak", b"1")
    Eraser(lake).run("acme", Criteria(domain="gone.example"))
    assert follow_erasures(lake, "acme")[0].problem == ""
    (told,) = {record.message for record in caplog.records if "is skipped" in record.message}
    assert "line\\nbreak' at" in told
    (found,) = verify_copies(lake)
    assert found.reason == "is in neither the log nor the manifest; delete it, since its key is not allowed"


def test_two_lakes_at_one_target_reject_each_other(lake, bucket, name, tmp_path):
    land(lake, "acme", [at(2)])
    LakePublisher(lake, name).publish("acme")
    with opened(tmp_path / "another", create=True) as another:
        land(another, "acme", [at(2)])
        with pytest.raises(BadInput, match="holds a copy of another lake"):
            LakePublisher(another, name).publish("acme")
        target = open_target(name)
        target.delete(target.list(""))
        LakePublisher(another, name).publish("acme")
    land(lake, "acme", [at(3)])
    with pytest.raises(BadInput, match="another lake"):
        LakePublisher(lake, name).publish("acme")
    assert any("holds a copy of another lake" in found.reason for found in verify_copies(lake))


def test_errors_do_not_contain_wrong_credentials(lake, bucket):
    land(lake, "acme", [at(2)])
    run = traffic("publish", "s3://bucket-x/lake", "--lake", lake.root, AWS_SECRET_ACCESS_KEY="another-secret")
    assert run.returncode == 1
    assert run.stderr == (
        "traffic: s3://bucket-x/lake cannot be used: 403 Forbidden, SignatureDoesNotMatch; "
        "check the keys in the AWS variables, and their permissions.\n"
    )


@pytest.mark.parametrize("how", ["500", "cut"])
def test_a_failing_store_counts_as_unreachable(lake, bucket, name, monkeypatch, how):
    land(lake, "acme", [at(2)])
    LakePublisher(lake, name).publish("acme")
    land(lake, "acme", [at(3)])
    with disturbing(bucket, how, monkeypatch), pytest.raises(TargetUnavailable, match=f"{name} cannot be used: "):
        LakePublisher(lake, name).publish("acme")


def test_every_object_is_uploaded_to_a_slow_store(lake, bucket, name, monkeypatch):
    for day in range(1, 6):
        land(lake, "acme", [at(day)])
    with disturbing(bucket, 0.3, monkeypatch):
        LakePublisher(lake, name).publish("acme")
    assert [*verify_copies(lake)] == []


def test_a_slow_store_times_out_and_keeps_uploaded_objects(lake, bucket, name, monkeypatch, tell):
    land(lake, "acme", [at(2)])
    LakePublisher(lake, name).publish("acme")
    for number in range(40):
        land(lake, "acme", [at(3, path=f"/{number}")])
    monkeypatch.setattr(store, "_TIMEOUT", timedelta(seconds=3))
    with disturbing(bucket, 10.0, monkeypatch) as server:
        began = time.monotonic()
        with pytest.raises(TargetUnavailable, match="no response within 3 seconds"):
            LakePublisher(lake, name).publish("acme")
        tell(seconds_until_given_up=round(time.monotonic() - began, 2))
        assert time.monotonic() - began < 40
        assert len(open_target(name).list("acme/visits/day=2026-03-03/")) < 40
        server.how = ""
        LakePublisher(lake, name).publish("acme")
    (found,) = verify_copies(lake)
    assert "an interrupted upload may still appear until" in found.reason


def test_the_demo_publishes_readable_rows(bucket, spark_session, tmp_path):
    name = f"s3://{bucket.new()}/demo"
    environ = {**os.environ, **variables(bucket), "TRAFFIC_PUBLISH": name, "TMPDIR": str(tmp_path)}
    with subprocess.Popen(
        [PROGRAMS / "traffic", "demo", "--port", "0", "--visits", "3000"],
        env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        try:
            assert process.stdout.readline().startswith("curl ")
            (folder,) = tmp_path.glob("traffic-demo-*")
            lake = Lake(folder / "lake")
            wait_until(lambda: any(copy.version >= 0 for copy in lake.manifest.copies.find()), 90)
            expected = sum(n for *_, n, _, _ in readers.by_sail(f"{name}/demo/visits", spark_session))
            assert expected == sum(file.visits for file in lake.manifest.files.live("demo"))
            lake.manifest.close()
        finally:
            process.terminate()
