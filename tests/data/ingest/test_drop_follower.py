"""Objects in a drop folder land once per content, despite concurrent readers, kills and rebuilds."""

import errno
import gzip
import itertools
import os
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from data.buckets.target import TargetUnavailable
from data.errors import BadInput
from data.ingest.drop_follower import DropFollower
from data.ingest.dropped import open_drop
from data.ingest.follower import Follower
from data.ingest.importer import Importer, Options
from data.recovery.backup import back_up
from data.tasks.erasure import Criteria, Eraser
from tests.support.lakes import opened, paths, rebuilt
from tests.support.log_lines import lines
from tests.support.manifests import database_of


class Place:
    """A drop folder and its follower."""

    def __init__(self, folder, lake):
        self.folder, self.lake = folder, lake
        folder.mkdir()
        self.told = []
        self.ages = itertools.count(1_000)

    def drop(self, name, body, rests=True):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(body.encode() if isinstance(body, str) else body)
        if rests:
            os.utime(path, (at := next(self.ages), at))

    def follower(self, lake=None):
        lake, options = lake or self.lake, Options("acme", "go.example")
        return DropFollower(lake, Importer(lake), open_drop(str(self.folder)), options, notify=self.told.append)

    def follow(self, lake=None):
        follower = self.follower(lake)
        follower.tick()
        return follower.totals

    def objects(self):
        return database_of(self.lake.manifest).rows("SELECT count(*) FROM objects")[0][0]


@pytest.fixture
def place(tmp_path, lake):
    return Place(tmp_path / "drop", lake)


def test_equal_contents_count_once_in_any_file_or_compression(place):
    place.drop("b.log", lines("/1", "/2"))
    place.drop("b-again.log.gz", gzip.compress(lines("/1", "/2").encode()))
    place.drop("deep/b.log.zst", pa.compress(lines("/1", "/2").encode(), "zstd", asbytes=True))
    place.drop("begins-alike.log", lines("/1", "/2", "/3"))  # another object, with other requests
    place.drop(".hidden", lines("/hidden"))
    place.drop("empty", b"")
    totals = place.follow()
    assert paths(place.lake) == Counter({"/1": 2, "/2": 2, "/3": 1})
    assert (totals.objects, totals.repeated, totals.visits, place.objects()) == (4, 2, 5, 4)
    place.drop("a-sorts-first.log", lines("/4"))
    totals = place.follow()
    assert (totals.objects, totals.visits) == (1, 1)
    assert place.follow().objects == 0


def test_objects_imported_before_count_once(place, load):
    options = Options("acme", "go.example")
    load(lines("/1"), options)
    place.drop("1", lines("/1"))
    assert place.follow().repeated == 1
    assert paths(place.lake) == Counter({"/1": 1})
    place.drop("2", lines("/2"))
    place.follow()
    assert load(lines("/2"), options).already_imported


def test_grown_objects_are_continued_but_rewritten_ones_are_new(place):
    for body in (lines("/1") + lines("/2")[:-1], lines("/1", "/2", "/3")):
        place.drop("1", body)
        place.follow()
    assert paths(place.lake) == Counter(("/1", "/2", "/3"))
    place.drop("copy", lines("/1", "/2", "/3"))
    place.follow()
    place.drop("copy", lines("/1", "/2", "/3", "/4"))
    place.drop("1", lines("/5"))
    place.follow()
    assert paths(place.lake) == Counter(("/1", "/2", "/3", "/4", "/5"))


def test_an_object_stays_known_after_a_log_has_continued_it(place, tmp_path):
    place.drop("1", lines("/1"))
    place.follow()
    log = tmp_path / "access.log"
    log.write_text(lines("/1", "/2"))
    follower = Follower(place.lake, Importer(place.lake), log, Options("acme", "go.example"), notify=place.told.append)
    follower.tick()
    follower.close()
    place.drop("again", lines("/1"))
    place.follow()
    assert paths(place.lake) == Counter({"/1": 1, "/2": 1})


def test_two_followers_at_once_land_each_content_once(place):
    for number in range(15):
        place.drop(str(number), lines(f"/{number % 10}", f"/second/{number % 10}"))
    with opened(place.lake.root) as other, ThreadPoolExecutor(2) as pool:
        both = list(pool.map(place.follow, [place.lake, other]))
    assert set(paths(place.lake).values()) == {1}
    assert len(paths(place.lake)) == sum(totals.visits for totals in both) == 20
    assert place.objects() == 15


def test_objects_are_known_and_can_grow_after_a_rebuild(place):
    place.drop("1", lines("/1"))
    place.follow()
    place.drop("1", lines("/1", "/2"))
    place.drop("2", lines("/9"))
    place.follow()
    with rebuilt(place.lake) as lake:
        assert place.follow(lake).objects == 0
        place.drop("1", lines("/1", "/2", "/3"))
        assert place.follow(lake).visits == 1
        assert paths(lake) == Counter({"/1": 1, "/2": 1, "/3": 1, "/9": 1})
        with rebuilt(lake, is_lost=False) as again:
            assert place.follow(again).objects == 0


def test_erased_objects_do_not_return_even_from_a_backup(place, tmp_path):
    place.drop("1", lines("/1"))
    place.follow()
    Eraser(place.lake).run("acme", Criteria(domain="go.example"))
    assert place.follow().objects == 0
    place.drop("copy", lines("/1"))
    place.follow()
    assert paths(place.lake) == Counter()
    back_up(place.lake, tmp_path / "backup")
    with opened(tmp_path / "backup") as restored:
        assert place.follow(restored).objects == 0


def test_an_object_that_is_not_a_log_is_rejected_once(place):
    place.drop("0", b"ALB: this file was written to test what may be written.\n")
    place.drop("1", lines("/1"))
    place.drop("2.gz", gzip.compress(lines("/2").encode())[:-9])
    follower = place.follower()
    follower.tick()
    follower.tick()
    assert (follower.totals.refused, follower.totals.visits) == (1, 2)
    refused, cut, *old = [text for text in sorted(place.told) if "more than 48 hours ago" not in text]
    assert refused.endswith("This object is ignored until it changes.")
    assert "2.gz is truncated" in cut
    assert not old
    assert sum("more than 48 hours ago" in text for text in place.told) == 1
    place.drop("0", lines("/0"))
    follower.tick()
    assert follower.totals.visits == 3


def test_an_unreadable_object_does_not_delay_the_others(place):
    for number in range(5):
        place.drop(str(number), lines(f"/{number}"))
    follower = place.follower()
    read, failing, asked = follower._drop.source, {"1", "3"}, []

    def source(dropped):
        asked.append(dropped.version.key.rpartition("/")[2])
        if asked[-1] in failing:
            raise TargetUnavailable("the bucket cannot be used: 500.")
        return read(dropped)

    follower._drop.source = source
    follower.tick()
    follower.tick()
    assert (follower.totals.visits, follower.has_failed) == (3, True)
    failing.clear()
    follower.tick()
    assert (follower.totals.visits, follower.has_failed) == (5, False)
    assert [text for text in place.told if "more than 48 hours ago" not in text] == [
        "the bucket cannot be used: 500. Nothing is lost; retrying.", "objects can be read again.",
    ]  # fmt: skip
    failing.update("56789")
    asked.clear()
    for number in failing:
        place.drop(number, lines(f"/{number}"))
    follower.tick()
    assert len(asked) == 3  # the number of consecutive failures after which a pass ends
    place.folder.rename(place.folder.with_name("gone"))
    follower.tick()
    assert "is no longer a folder" in place.told[-1]


def test_a_file_just_written_is_left_until_it_is_old_enough(place):
    place.drop("1", lines("/1"), rests=False)
    assert place.follow().objects == 0
    os.utime(place.folder / "1", (1, 1))
    assert place.follow().visits == 1


def test_a_drop_that_is_not_a_folder_is_rejected(tmp_path):
    with pytest.raises(BadInput, match="is not a folder"):
        open_drop(str(tmp_path / "missing"))


@pytest.mark.parametrize("name", [".rsync-partial/1", "deep/.partial/1", ".hidden"])
def test_hidden_files_are_not_read(place, name):
    place.drop(name, lines("/hidden"))
    place.drop("1", lines("/1"))
    place.follow()
    assert paths(place.lake) == Counter({"/1": 1})


@pytest.mark.parametrize("is_folder", [False, True], ids=["file", "folder"])
def test_symbolic_links_are_not_followed(place, tmp_path, is_folder):
    (tmp_path / "theirs").mkdir()
    log = tmp_path / "theirs/access.log"
    log.write_text(lines("/theirs"))
    os.utime(log, (1_000, 1_000))
    (place.folder / "link").symlink_to(log.parent if is_folder else log)
    assert place.follow().objects == 0


def test_a_name_with_a_line_break_is_reported_and_skipped(place):
    place.drop("1\n2.log", lines("/odd"))
    place.drop("3.log", lines("/3"))
    follower = place.follower()
    follower.tick()
    follower.tick()
    assert paths(place.lake) == Counter({"/3": 1})
    (told,) = [text for text in place.told if "more than 48 hours ago" not in text]
    assert "1\\n2.log' is skipped" in told
    assert follower.has_failed


class FailingDisk:
    """A source on a failing disk."""

    def open(self, mode):
        raise OSError(errno.EIO, "Input/output error")

    def __str__(self):
        return "1.log"


def test_an_object_is_retried_after_a_disk_error(place):
    place.drop("1.log", lines("/1"))
    place.drop("2.log", lines("/2"))
    follower = place.follower()
    read = follower._drop.source
    follower._drop.source = lambda one: FailingDisk() if one.version.key.endswith("1.log") else read(one)
    follower.tick()
    assert (follower.totals.visits, follower.totals.refused, follower.has_failed) == (1, 0, True)
    assert "1.log cannot be read: Input/output error. It will be retried." in place.told
    follower._drop.source = read
    for wait in follower._waiting.values():
        wait.ends_at = 1.0  # as if that time had passed
    follower.tick()
    assert (follower.totals.visits, follower.has_failed) == (2, False)


def test_a_damaged_parquet_file_is_rejected(place):
    table = pa.table({"a": pa.array(range(1_000))})
    pq.write_table(table, place.folder / "1.parquet", compression="none", use_dictionary=False)
    body = bytearray((place.folder / "1.parquet").read_bytes())
    body[4:40] = b"\xff" * 36
    place.drop("1.parquet", bytes(body))
    assert place.follow().refused == 1
