"""Log objects in a bucket with injected failures: identical content counts once, and no object blocks the others."""

import threading
from collections import Counter

import pytest

from data.ingest import dropped
from data.tasks.erasure import Criteria, Eraser
from tests.support.drops import Following
from tests.support.lakes import opened, paths
from tests.support.log_lines import lines

PLACE = "s3://bucket/logs"
ODD_KEYS = (
    "logs/a//b.log",
    "logs/../up.log",
    "logs/./here.log",
    "logs/line\nbreak.log",
    "logs/bell\x07.log",
    "logs/d/",
)


def put(store, *names):
    for name in names:
        store.put(f"logs/{name}", lines(f"/{name}").encode())


@pytest.fixture
def following(lake):
    return Following(lake, PLACE)


def end_waits(follower):
    """End all waits, as if their time had passed."""
    for wait in follower._waiting.values():
        wait.ends_at = 1.0


@pytest.mark.parametrize("key", ODD_KEYS)
def test_an_invalid_key_is_reported_and_skipped(store, following, lake, key):
    store.put(key, lines("/odd").encode())
    put(store, "1", "2")
    following.tick()
    following.tick()
    assert paths(lake) == Counter({"/1": 1, "/2": 1})
    assert [repr(key) in told and "is skipped" in told for told in following.told] == [True]
    assert following.follower.has_failed


def test_many_invalid_keys_are_summarized(store, following):
    for number in range(2_000):
        store.put(f"logs//{number}", b"x")
    following.tick()
    assert len(following.told) == 4
    assert following.told[-1] == "1,997 more objects could not be read."


@pytest.mark.parametrize("how", ["403 InvalidObjectState", "403 AccessDenied"])
def test_unreadable_objects_do_not_delay_others(store, following, lake, how):
    put(store, "1", "2", "3", "4", "5")
    store.fail("GET /bucket/logs/[1-4]", how)
    following.tick()
    assert paths(lake) == Counter({"/5": 1})
    assert [told.partition(" cannot be used: ")[0] for told in following.told[:-1]] == [f"{PLACE}/{n}" for n in "123"]
    assert following.told[-1] == "1 more object could not be read."
    asked = len(store.asked)
    following.tick()
    assert len(store.asked) == asked + 1  # only the listing, since each object waits for its retry
    assert following.follower.has_failed
    store.mend()
    end_waits(following.follower)
    following.tick()
    assert paths(lake) == Counter({f"/{number}": 1 for number in "12345"})
    assert not following.follower.has_failed


def test_an_archived_object_is_reported_with_a_remedy(store, following):
    put(store, "1")
    store.fail("GET /bucket/logs/1", "403 InvalidObjectState")
    following.tick()
    (told,) = following.told
    assert told == (
        f"{PLACE}/1 cannot be used: 403 Forbidden, InvalidObjectState; it is archived: restore it "
        "first. It will be retried."
    )


def test_objects_that_failed_are_read_last_next_time(store, following, lake):
    put(store, "1", "2", "3", "4", "5")
    store.fail("GET /bucket/logs/[1-3]", "cut")
    following.tick()
    assert paths(lake) == Counter()
    following.tick()
    assert paths(lake) == Counter({"/4": 1, "/5": 1})
    store.mend()
    following.tick()
    assert sum(paths(lake).values()) == 5
    assert following.told[-1] == "objects can be read again."


@pytest.mark.parametrize("count", [1, 5, 14])
def test_lines_of_a_truncated_object_are_not_counted_twice(store, following, lake, count):
    names = [f"/{number}" for number in range(18)]
    for length in (15, count, count, 18):
        store.put("logs/1", lines(*names[:length]).encode())
        following.tick()
    assert paths(lake) == Counter(dict.fromkeys(names, 1))


def test_a_key_with_new_shorter_content_is_imported_again(store, following, lake):
    for names in (("/1", "/2", "/3"), ("/1", "/9")):
        store.put("logs/1", lines(*names).encode())
        following.tick()
    assert paths(lake) == Counter({"/1": 2, "/2": 1, "/3": 1, "/9": 1})


def test_a_slow_object_does_not_block_other_writers(store, following, lake, monkeypatch):
    monkeypatch.setattr(dropped, "IN_MEMORY_BYTES", 10)
    put(store, "1")
    store.fail("GET /bucket/logs/1", "drip")
    ticking = threading.Thread(target=following.tick)
    ticking.start()
    try:
        assert store.dripping.wait(60)
        with opened(lake.root) as other:
            Eraser(other).run("acme", Criteria(domain="go.example"))
        assert ticking.is_alive()
    finally:
        store.released.set()
        ticking.join()
    assert paths(lake) == Counter({"/1": 1})


def test_two_followers_land_a_slow_object_once(store, following, lake, monkeypatch):
    monkeypatch.setattr(dropped, "IN_MEMORY_BYTES", 10)
    put(store, "1")
    store.fail("GET /bucket/logs/1", "drip", times=1)
    ticking = threading.Thread(target=following.tick)
    ticking.start()
    assert store.dripping.wait(60)
    with opened(lake.root) as other:
        Following(other, PLACE).tick()
    store.released.set()
    ticking.join()
    assert paths(lake) == Counter({"/1": 1})
    assert following.follower.totals.repeated == 1
