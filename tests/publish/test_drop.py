"""Logs as objects in a bucket: the same content counts once, and a failing store is retried."""

import gzip
import signal
from collections import Counter

import pytest

from data.buckets.target import open_target
from data.ingest import dropped
from tests.cluster.processes import wait_until
from tests.faults.lakes import log
from tests.faults.tracing import Program, why_not
from tests.faults.trials import Trial, some
from tests.faults.victims import INTO, Victim, by_log, nothing
from tests.publish.conftest import SECRET, put_as_is, traffic
from tests.publish.disturbing import disturbing
from tests.support.drops import Following
from tests.support.lakes import paths
from tests.support.log_lines import lines

KILLS = 8


def content(*paths):
    return lines(*paths).encode()


def test_bucket_objects_count_once_read_whole_or_in_pieces(lake, name, monkeypatch):
    store = open_target(name)
    many = [f"/many/{number}" for number in range(50_000)]
    store.put("b/1.log", content("/1"))
    store.put("b/2.log.gz", gzip.compress(content(*many)))
    store.put("copy", content("/1"))
    monkeypatch.setattr(dropped, "IN_MEMORY_BYTES", 1_000)
    monkeypatch.setattr(dropped, "_PIECE_BYTES", 50_000)
    following = Following(lake, name)
    assert following.tick().visits == 50_001
    store.put("a", content("/0"))
    store.put("b/1.log", content("/1", "/2"))
    assert following.tick().visits == 50_003
    store.put("b/2.log.gz", gzip.compress(content(*many, "/more")))
    assert following.tick().visits == 50_004
    assert paths(lake) == Counter(["/0", "/1", "/2", "/more", *many])
    assert Following(lake, name).tick().objects == 0
    assert Following(lake, f"{name}/b").tick().objects == 0
    assert set(store.list("")) == {"a", "b/1.log", "b/2.log.gz", "copy"}


def test_lines_of_a_truncated_object_are_not_counted_twice(lake, name):
    store, following = open_target(name), Following(lake, name)
    for length in (15, 5, 18):
        store.put("1", content(*(f"/{number}" for number in range(length))))
        following.tick()
    assert paths(lake) == Counter(f"/{number}" for number in range(18))


def test_a_key_with_a_newline_is_reported_and_skipped(lake, name):
    put_as_is(name, "line\nbreak.log", content("/odd"))
    open_target(name).put("1", content("/1"))
    following = Following(lake, name)
    following.tick()
    following.tick()
    assert paths(lake) == Counter(["/1"])
    (told,) = following.told
    assert "line\\nbreak.log' is skipped" in told
    assert following.follower.has_failed


def test_an_unreachable_bucket_is_retried(lake, bucket, name):
    open_target(name).put("1", content("/1"))
    following = Following(lake, name)
    bucket.stop()
    try:
        following.tick()
        following.tick()
    finally:
        bucket.start()
    wait_until(lambda: following.tick().visits == 1)
    assert len(following.told) >= 2
    assert following.told[0].startswith(f"{name} cannot be used: ")
    assert following.told[0].endswith(" Nothing is lost; retrying.")
    assert following.told[-1] == "objects can be read again."


@pytest.mark.parametrize("how", ["500", "cut", "slow"])
def test_an_unreliable_bucket_loses_or_repeats_no_visit(how, lake, bucket, name, monkeypatch):
    asked = [f"/{number}" for number in range(40)]
    open_target(name).put("1", content(*asked[:20]))
    open_target(name).put("2", content(*asked[20:]))
    with disturbing(bucket, how, monkeypatch) as server:
        following = Following(lake, name)
        following.tick()
        if how != "slow":
            assert paths(lake) == Counter()
            assert following.told[0].startswith(f"{name} cannot be used: ")
            server.how = ""
            following.tick()
            assert following.told[1:] == ["objects can be read again."]
    assert paths(lake) == Counter(asked)


def test_a_kill_while_following_a_bucket_loses_nothing(bucket, forks, tmp_path, tell):
    """The program is killed at system calls, as it is in tests/faults while it follows a folder."""
    if reason := why_not():
        pytest.skip(reason)
    place = f"s3://{bucket.new()}/logs"
    for key, letter in (("1.log", "a"), ("2.log", "b"), ("3.log", "a")):
        open_target(place).put(key, log(letter, 4).encode())
    words = ("follow", place, "--once", *INTO)
    victim = Victim("follow of a bucket", nothing, words, by_log, "3 objects read", has_threads=True)
    trial = Trial(victim, Program(tmp_path, forks), tmp_path)
    calls = some(trial.calls, KILLS, seed=place)
    codes = [trial.inject(f"{call.name}:signal=KILL:when={call.number}").code for call in calls]
    assert set(codes) <= {0, -signal.SIGKILL}
    tell(points=len(trial.calls), kills=codes.count(-signal.SIGKILL), lost=0, doubled=0)
    assert codes.count(-signal.SIGKILL) > KILLS // 2


def test_follow_once_reports_bucket_errors_without_secrets(lake, bucket, name, monkeypatch):
    open_target(name).put("1", content("/1"))

    def run(place):
        ended = traffic("follow", place, "--org", "acme", "--domain", "go.example", "--once", "--lake", lake.root)
        assert SECRET not in ended.stderr
        return ended.returncode, " ".join(ended.stderr.split())

    code, told = run(name)
    assert (code, "1 visit imported; 1 object read." in told) == (0, True), told
    missing = Following(lake, "s3://missing-bucket")
    missing.tick()
    assert missing.told[0].startswith("s3://missing-bucket cannot be used: ")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "another-secret")
    code, told = run(name)
    assert (code, "403 Forbidden, SignatureDoesNotMatch; check the keys in" in told) == (1, True), told
    assert "another-secret" not in told
