"""Each line of a growing log lands once, despite rotation, restarts, failures and concurrent imports."""

import csv
import errno
import gzip
import itertools
import os
import re
import sqlite3
import sys
import time
from collections import Counter
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from data.errors import BadInput
from data.ingest.follower import Follower
from data.ingest.importer import Importer, Options
from data.ingest.tail import Tail
from tests.faults.trials import tried
from tests.support.lakes import everything_in, fail_at, paths, rows_of
from tests.support.log_lines import line, lines
from tests.support.manifests import database_of
from tests.support.tables import examples
from tests.support.user_agents import CHROME


@pytest.fixture(scope="module")
def shared(shared_lake):
    """A lake that many organizations share, and its importer."""
    return shared_lake, Importer(shared_lake)


names = map("org-{}".format, itertools.count())


class Site:
    """A server that writes a log, the log's rotation, and a follower of the log. Time is simulated."""

    def __init__(self, shared, folder):
        self.lake, self.importer = shared
        self.folder = folder
        self.log = folder / "access.log"
        self.options = Options(next(names), log_format="combined")
        self.told = []
        self.read = []  # the rotated files that were examined
        self.now = 0.0
        self.follower = None
        self.disk = pytest.MonkeyPatch()  # disk errors

    def write(self, text, name="access.log"):
        with (self.folder / name).open("ab") as file:
            file.write(text.encode() if isinstance(text, str) else text)

    def grow(self, *paths):
        """Have the server write lines, and run the next tick."""
        self.write(lines(*paths))
        self.tick()

    def begin(self, path, end):
        """Have the server write the beginning of a line."""
        self.write(line(path)[: int(end)])
        self.rest = line(path)[int(end) :]

    def end(self, end=""):
        """Have the server write the rest of the line that it began, or more of that line."""
        self.write(self.rest[: int(end) if end else None])
        self.rest = self.rest[int(end) :] if end else ""

    def rename(self, *, create=True):
        """Rotate as logrotate does by default."""
        numbered = [path for path in self.folder.iterdir() if path.name != "access.log" and path.suffix != ".bak"]
        for path in sorted(numbered, key=lambda path: -int(path.name.split(".")[2])):
            _, _, number, *packed = path.name.split(".")
            path.rename(self.folder / ".".join(["access.log", str(int(number) + 1), *packed]))
        self.log.rename(self.folder / "access.log.1")
        if create:
            self.log.touch()

    def copy(self):
        """Copy the log, which is the first step of copytruncate."""
        content = self.log.read_bytes()
        self.rename()
        (self.folder / "access.log.1").rename(self.log)  # the log stays the same file
        (self.folder / "access.log.1").write_bytes(content)

    def truncate(self):
        os.truncate(self.log, 0)

    def pack(self, name="access.log.1"):
        """Compress a rotated file as gzip does, keeping its modification time."""
        path = self.folder / name
        packed, times = self.folder / f"{name}.gz", path.stat()
        packed.write_bytes(gzip.compress(path.read_bytes()))
        os.utime(packed, ns=(times.st_atime_ns, times.st_mtime_ns))
        path.unlink()

    def age(self, name, seconds):
        path = self.folder / name
        os.utime(path, (time.time() - seconds,) * 2)

    def tick(self, seconds=0.0):
        self.now += seconds
        self.follow() if self.follower is None else self.follower.tick()

    @cached_property
    def twin(self):
        """Another follower of this log."""
        twin = Site((self.lake, self.importer), self.folder)
        twin.options = self.options
        return twin

    def follow(self, *, is_stopping=False, **how):
        """Start following, and run the first tick."""
        how |= {"notify": self.told.append, "clock": lambda: self.now}
        self.follower = Follower(self.lake, self.importer, self.log, self.options, **how)
        self.follower.is_stopping = is_stopping
        self.follower.tick()

    def kill(self):
        """Lose everything in memory, but nothing else."""
        if self.follower:
            self.follower.close()
        self.follower = None

    def restart(self):
        self.kill()
        self.tick()

    def load(self, name="access.log"):
        """Import a log manually while it is being followed."""
        return self.importer.run(self.folder / name, self.options)

    def visits(self):
        return rows_of(self.lake, self.options.organization)

    def paths(self):
        return paths(self.lake, self.options.organization)

    def choose(self, *options):
        """Use other options, given as `name=value`, for the next follower or import."""
        chosen = (option.split("=") for option in options)
        self.options = replace(self.options, **{name: value == "yes" or value for name, value in chosen})

    def refuses(self, *words):
        """Check that a new follower rejects the log."""
        self.kill()
        with pytest.raises(BadInput, match=re.escape(" ".join(words))):
            self.tick()

    def hears(self, *words):
        """Check that the operator has received exactly this message since the last check."""
        assert self.told == [" ".join(words).replace("LOG", str(self.log))]
        self.told.clear()

    def reads(self, *names):
        """Check that exactly these rotated files have been read since the last check."""
        assert sorted(self.read) == [*names]
        self.read.clear()

    def limit(self, name, size):
        """Lower one of the reader's constants."""
        self.disk.setattr(f"data.ingest.tail.{name}", int(size))

    def copying(self, end=""):
        """Copy the beginning of the log: its first line ("line"), this number of bytes, or by default, all of it."""
        content = self.log.read_bytes()
        size = content.index(b"\n") + 1 if end == "line" else int(end or len(content))
        (self.folder / "access.log.0").write_bytes(content[:size])

    def link(self, name):
        """Make the log a symbolic link to another file."""
        self.log.unlink(missing_ok=True)
        self.log.symlink_to(name)

    def noted(self):
        """Return the number and reason of each rejected line."""
        with self.follower.totals.rejects_file.open(newline="", encoding="utf-8") as file:
            head, *rows = csv.reader(file)
        assert head == ["line", "reason"]
        return rows

    def batches(self):
        return self.lake.manifest.logs.batches(self.options.organization)


@pytest.fixture
def site(shared, tmp_path, monkeypatch):
    site, identify = Site(shared, tmp_path), sys.modules["data.ingest.rotation"].identify
    monkeypatch.setattr(
        "data.ingest.rotation.identify", lambda path, sizes: site.read.append(path.name) or identify(path, sizes)
    )
    yield site
    site.kill()
    site.twin.kill()
    site.disk.undo()


def once(*paths):
    return Counter(dict.fromkeys(paths, 1))


def fail(monkeypatch, place, kind, *args):
    def failing(*_, **__):
        raise kind(*args)

    monkeypatch.setattr(place, failing)


BROKEN = {
    "files": ("data.store.landing.write_parquet", OSError, errno.ENOSPC, "No space left on device"),
    "hashes": ("data.store.landing.sha256_of", OSError, errno.EIO, "Input/output error"),
    "manifest": ("data.manifest.manifest.Manifest.land", sqlite3.OperationalError, "database or disk is full"),
    "salts": ("data.ingest.importer.daily_salts", sqlite3.OperationalError, "database is locked"),
}
STEPS = {
    **{name: getattr(Site, name) for name in ("grow", "begin", "end", "rename", "copy", "truncate", "pack")},
    **{name: getattr(Site, name) for name in ("kill", "restart", "choose", "refuses", "hears", "limit", "link")},
    **{name: getattr(Site, name) for name in ("reads", "copying")},
    "write": lambda site, *paths: site.write(lines(*paths)),
    "text": lambda site, *words: site.write(" ".join(words) + "\n"),
    "bytes": lambda site, text, name="access.log": site.write(
        text.encode("latin-1").decode("unicode_escape").encode("latin-1"), name
    ),
    "nuls": lambda site, number, name="access.log": site.write("\0" * int(number), name),
    "many": lambda site, number: site.grow(*map("/{}".format, range(int(number)))),
    "keep": lambda site, number: os.truncate(
        site.log, len(b"".join(site.log.read_bytes().splitlines(True)[: int(number)]))
    ),
    "hold": lambda site: setattr(site, "held", (site.folder / "access.log.1").open("a")),
    "held": lambda site, path: (site.held.write(line(path)), site.held.flush()),
    "release": lambda site: site.held.close(),
    "compress": lambda site: setattr(site, "packed", gzip.compress(site.log.read_bytes())),
    "packing": lambda site, end=-1: (site.folder / "access.log.1.gz").write_bytes(site.packed[: int(end)]),
    "packed": lambda site: (site.folder / "access.log.1.gz").write_bytes(site.packed),
    "remove": lambda site, name: (site.folder / name).unlink(),
    "other": lambda site, name, *words: STEPS[name](site.twin, *words),
    "pipe": lambda site: os.mkfifo(site.log),
    "log": lambda site, name: setattr(site, "log", site.folder / name),
    "follow-once": lambda site: (site.kill(), site.follow(is_stopping=True)),
    "remember": lambda site: setattr(site, "remembered", site.batches()),
    "of-host": lambda site, host, path: site.write(f"{host} {line(path)}"),
    "put-text": lambda site, name, *words: site.write(" ".join(words) + "\n", name),
    "late": lambda site, *paths: site.write(lines(*paths), "access.log.1"),
    "late-end": lambda site: site.write(site.rest, "access.log.1"),
    "put": lambda site, name, *paths: site.write(lines(*paths), name),
    "folder": lambda site, name: (site.folder / name).mkdir(),
    "move": lambda site: site.rename(create=False),
    "age": lambda site, name, seconds: site.age(name, int(seconds)),
    "tick": lambda site, seconds=0: site.tick(float(seconds)),
    "stop": lambda site: setattr(site.follower, "is_stopping", True),
    "go": lambda site: setattr(site.follower, "is_stopping", False),
    "broken": lambda site, what: fail(site.disk, *BROKEN[what]),
    "broken-after-commit": lambda site: fail_at(site.disk, site.lake.manifest, "land", is_done=True),
    "free": lambda site: site.disk.undo(),
    "load": lambda site, visits, *name: is_true(site.load(*name).visits == int(visits)),
    "known": lambda site, *name: is_true(site.load(*name).already_imported),
    "landed": lambda site, *paths: is_true(site.paths() == once(*paths)),
    "whole": lambda site: is_true({visit["user_agent"] for visit in site.visits()} == {CHROME}),
    "counts": lambda site, path, number: is_true(site.paths()[path] == int(number)),
    "without-agent": lambda site, *paths: is_true(
        [*paths] == [v["path"] for v in site.visits() if not v["user_agent"]]
    ),
    "unchanged": lambda site: is_true(site.batches() == site.remembered),
    "read-whole": lambda site: is_true(
        {site.follower.totals.position} | {size for b in site.batches() for size in (b.size, b.whole_size)}
        == {site.log.stat().st_size}
    ),
    "formats": lambda site, *found: is_true({*found} == {b.log_format for b in site.batches()}),
    "told-of": lambda site, *names: is_true(
        sorted(re.split("[: ]", told)[0] for told in site.told) == [str(site.folder / name) for name in names]
    ),
    "over": lambda site: is_true(site.follower._late == []),
    "silent": lambda site: is_true(site.told == []),
    "heard": lambda site, *words: is_true(any(" ".join(words) in told for told in site.told)),
    "totals": lambda site, *told: is_true(
        {*told} <= {f"{n}={v}".replace(" ", "T") for n, v in vars(site.follower.totals).items()}
    ),
    "noted": lambda site, *words: is_true(site.noted() == [row.split(" ", 1) for row in " ".join(words).split(", ")]),
    "domains": lambda site, *found: is_true(
        [*found] == sorted(f"{v['path']}={v['domain'] or ''}" for v in site.visits())
    ),
    "imports": lambda site, *found: is_true([*found] == [f"{b.domain}={b.visits}" for b in site.batches()]),
}
"""The steps of transcripts, by name: events in the life of a log, and checks."""


def is_true(found):
    assert found


@examples("what", "transcript")
def test_every_line_lands_once_despite_any_rotation(site, what, transcript):
    for number, step in enumerate(transcript):
        name, *words = step.split()
        try:
            STEPS[name](site, *words)
        except AssertionError:
            pytest.fail(f"{what}: step {number}, {step}: {site.paths()} {site.told}")


def test_a_stopping_follower_ends_after_a_block(site, monkeypatch):
    monkeypatch.setattr("data.ingest.tail.BLOCK_BYTES", 50_000)
    paths, told = [f"/{number}" for number in range(1000)], []
    site.write(lines(*paths))
    for is_stopping in (True, False):
        site.kill()
        site.follow(progress=lambda *at: told.append(at), is_stopping=is_stopping)
        assert (0 < len(site.visits()) < 1000) is is_stopping
    assert site.paths() == once(*paths)
    assert len(told) > 2
    assert told[-1] == (site.log.stat().st_size,) * 2


def test_memory_does_not_grow_with_an_endless_line(site, monkeypatch):
    monkeypatch.setattr("data.ingest.tail.BLOCK_BYTES", 1 << 20)
    site.grow("/a")
    asked = []
    pread = os.pread
    monkeypatch.setattr("os.pread", lambda file, size, at: asked.append(size) or pread(file, size, at))
    os.truncate(site.log, 1 << 25)  # NULs
    site.tick()
    assert max(asked) == 1 << 20
    site.write("\n" + lines("/b"))
    site.tick()
    assert max(asked) == 1 << 20
    assert site.paths() == once("/a", "/b")


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may read anything")
def test_a_log_without_read_permission_is_bad_input(site):
    site.write(lines("/a"))
    site.log.chmod(0)
    with pytest.raises(BadInput, match=r"access\.log"):
        site.tick()


def test_no_address_reaches_the_disk(lake, tmp_path):
    (tmp_path / "logs").mkdir()
    site = Site((lake, Importer(lake)), tmp_path / "logs")
    site.write(line("/canary-path", ip="198.51.100.23") + "198.51.100.24 garbage\n")
    site.write(line("/b", ip="198.51.100.25")[:-5])
    site.tick()
    site.rename()
    site.tick()
    site.write("198.51.100.26 garbage\n")
    site.tick(61)
    site.kill()
    told = everything_in(lake.root)
    assert b"canary-path" in told
    assert b"198.51.100" not in told


def test_a_log_truncated_while_it_is_read_is_read_again(site, monkeypatch):
    site.grow("/a")
    read = Tail.read

    def reading(*args):
        monkeypatch.undo()
        site.copy()
        site.truncate()
        site.write(lines("/new0", "/new1", "/new2"))
        return read(*args)

    monkeypatch.setattr(Tail, "read", reading)
    site.grow("/b")
    site.tick()
    assert site.paths() == once("/a", "/b", "/new0", "/new1", "/new2")


def test_lines_missing_from_a_restored_lake_land_again(site):
    site.grow("/a")
    organization = site.options.organization
    (old,) = site.batches()
    files = {file.path for file in site.lake.manifest.files.live(organization)}
    site.grow("/b")
    with database_of(site.lake.manifest).transaction() as db:
        db.execute("UPDATE batches SET sha256 = ?, bytes = ?, whole_bytes = ? WHERE id = ?",
                   [old.sha256, old.size, old.whole_size, old.id])  # fmt: skip
        new = [file.path for file in site.lake.manifest.files.live(organization) if file.path not in files]
        db.executemany("DELETE FROM files WHERE path = ?", [(path,) for path in new])
    assert site.paths() == once("/a")
    site.grow("/c")
    assert site.paths() == once("/a", "/b", "/c")


def rotate_unread(site, error):
    """Rotate a log with an unread line, and make opening the rotated file fail."""
    site.grow("/a")
    site.kill()
    site.write(lines("/b"))
    site.rename()
    opened = Path.open

    def failing(path, *how, **options):
        if path.name == "access.log.1":
            raise error
        return opened(path, *how, **options)

    site.disk.setattr(Path, "open", failing)


def test_a_log_is_retried_a_minute_after_a_disk_error(site):
    rotate_unread(site, OSError(errno.EIO, "Input/output error"))
    site.grow("/c")
    site.grow("/d")
    assert site.paths() == once("/a", "/c", "/d")
    site.hears(f"{site.log}.1 cannot be read: Input/output error. Nothing is lost; retrying.")
    site.disk.undo()
    site.tick(59)
    assert site.paths() == once("/a", "/c", "/d")
    site.tick(1)
    assert site.paths() == once("/a", "/b", "/c", "/d")
    site.hears("rotated files can be read again.")


def test_a_full_disk_is_reported_despite_an_unread_rotated_log(site):
    rotate_unread(site, OSError(errno.EIO, "Input/output error"))
    site.grow("/c")
    site.told.clear()
    fail(site.disk, *BROKEN["files"])
    site.grow("/d")
    site.hears("visits cannot be stored: No space left on device. Nothing is lost; retrying.")


def test_old_salts_are_deleted_despite_an_unread_rotated_log(site, monkeypatch):
    rotate_unread(site, OSError(errno.EIO, "Input/output error"))
    asked = []
    monkeypatch.setattr("data.ingest.follower.delete_old_salts", lambda path, now: asked.append(path))
    site.grow("/c")
    assert asked == [site.lake.salts]


def test_an_unreadable_rotated_log_is_reported_once(site):
    rotate_unread(site, PermissionError(errno.EACCES, "Permission denied"))
    site.grow("/c")
    site.grow("/d")
    site.hears(f"{site.log}.1 cannot be read: Permission denied.")
    assert site.paths() == once("/a", "/c", "/d")


def test_old_salts_are_deleted_without_new_lines(site, monkeypatch):
    site.write(lines("/a"))
    asked = []
    monkeypatch.setattr("data.ingest.follower.delete_old_salts", lambda path, now: asked.append(path))
    for _ in range(2):
        site.tick()
    assert asked == [site.lake.salts] * 2


def test_a_follower_reloads_address_lists_only_after_a_change(site, monkeypatch):
    site.grow("/a")
    renewed = []
    monkeypatch.setattr("data.ingest.importer.intact_snapshots", lambda lake: renewed.append(1) or {})
    site.grow("/b")
    assert renewed == []
    (site.lake.ip_lists / "a.json").write_text("{}")
    (site.lake.ip_lists / "a.json").unlink()
    for path in ("/c", "/d"):
        site.grow(path)
    assert renewed == [1]


# Random events in any order


class RandomSite(Site):
    """A site with random events, and the paths of the lines that its server has written."""

    def __init__(self, shared, folder):
        super().__init__(shared, folder)
        self.written = []
        self.unfinished = ""
        self.target = "access.log"  # the file that the server has open
        self.log.touch()
        self.append(1)
        self.tick()

    def append(self, number):
        for _ in range(number):
            self.append_part(None)

    def append_part(self, length):
        self.finish()
        self.written.append(f"/{len(self.written)}")
        text = line(self.written[-1])
        self.write(text[:length], self.target)
        self.unfinished = text[length:] if length else ""

    def finish(self):
        self.write(self.unfinished, self.target)
        self.unfinished = ""

    def reopen(self):
        self.finish()
        self.target = "access.log"
        self.log.touch()

    def rotate(self, create):
        self.reopen()
        self.rename(create=create)
        self.target = "access.log.1"  # until it opens the new one

    def rotate_and_pack(self):
        self.rotate(create=True)
        self.reopen()
        self.pack()

    def copy_and_truncate(self, number):
        self.reopen()
        self.copy()
        if number:  # lines in between must be read before they are gone
            self.append(number)
            self.tick()
        self.truncate()
        self.append(number)
        if number:
            self.tick()

    def import_beside(self, name):
        with suppress(BadInput):  # it is missing, or contains only a part of a line
            self.load(name)

    def fail(self, call):
        """Run a tick during which the disk fails at this call, counted from 0, and at all later calls."""
        calls = itertools.count()
        for place in ("write_parquet", "sha256_of", "move_durably"):
            original = getattr(sys.modules["data.store.landing"], place)

            def failing(*args, original=original, **options):
                if next(calls) >= call:
                    raise OSError(errno.ENOSPC, "No space left on device")
                return original(*args, **options)

            self.disk.setattr(f"data.store.landing.{place}", failing)
        self.tick()
        self.disk.undo()


EVENTS = st.one_of(
    st.tuples(st.just("append"), st.integers(1, 3)),
    st.tuples(st.just("append_part"), st.integers(1, len(line("/1")) - 1)),
    st.tuples(st.just("tick"), st.sampled_from([0, 0, 0, 61])),
    st.tuples(st.just("kill")),
    st.tuples(st.just("reopen")),
    st.tuples(st.just("rotate"), st.booleans()),
    st.tuples(st.just("rotate_and_pack")),
    st.tuples(st.just("copy_and_truncate"), st.sampled_from([0, 0, 2])),
    st.tuples(st.just("import_beside"), st.sampled_from(["access.log", "access.log.1", "access.log.1.gz"])),
    st.tuples(st.just("fail"), st.integers(0, 3)),
)


@given(events=st.lists(EVENTS, max_size=14))
@tried(8)
def test_every_line_lands_once_in_random_histories(shared, tmp_path_factory, events):
    site = RandomSite(shared, tmp_path_factory.mktemp("site"))
    for name, *arguments in events:
        if name == "tick" and arguments == [61]:
            site.reopen()
        getattr(site, name)(*arguments)
    site.reopen()
    site.tick()
    assert site.paths() == once(*site.written), site.told
    site.tick(61)
    site.tick(61)
    site.restart()
    site.kill()
    assert site.paths() == once(*site.written)
    assert list(site.lake.staging.iterdir()) == []


def test_a_tick_reads_only_imports_it_can_continue(site, monkeypatch):
    for number in range(20):
        site.write(lines(f"/{number}", "/x", "/y", "/z"), f"other{number}")  # longer than the log
        site.importer.run(site.folder / f"other{number}", site.options)
    site.grow("/a")
    database = database_of(site.lake.manifest)
    found, rows = [], database.rows
    monkeypatch.setattr(database, "rows", lambda *asked: found.append(rows(*asked)) or found[-1])
    site.grow("/b", "/c")
    assert max(map(len, found)) <= 1
