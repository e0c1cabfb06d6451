"""`traffic follow` as a process: its output, its exit, and its state after it is killed.

It is killed twice; with `TRAFFIC_FAULTS=10` ten times as often, with `TRAFFIC_FAULTS=all` 60 times.
"""

import os
import pty
import random
import re
import signal
import sys
import threading
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

import pytest

from tests.faults.trials import scaled
from tests.support.lakes import paths
from tests.support.log_lines import line
from tests.support.runs import Run


class Following:
    """A running `traffic follow`."""

    def __init__(self, forks, folder, *arguments, err=None):
        self.out, self.err = folder / "out", err or folder / "err"
        out, err = (
            os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOCTTY) for path in (self.out, self.err)
        )
        self.process = forks.start("follow", *arguments, out=out, err=err)
        os.close(out)
        os.close(err)

    @property
    def told(self):
        return self.err.read_text() if self.err.is_file() else ""

    def end(self, number=signal.SIGTERM):
        self.process.send_signal(number)
        return self.ended()

    def ended(self):
        return Run(self.process.wait(), self.out.read_text(), self.told)


@pytest.fixture
def follow(forks, lake, tmp_path):
    """Start `traffic follow` on a test's lake; kill processes that are still running at the end of the test."""
    started = []

    def follow(log, *flags, every="0.02", **how):
        flags = ("--org", "acme", "--domain", "go.example", "--lake", lake.root, "--every", every, *flags)
        started.append(Following(forks, tmp_path, log, *flags, **how))
        return started[-1]

    yield follow
    for following in started:
        following.process.kill()
        following.process.wait()


def until(is_so, process):
    """Wait for a condition while the process runs."""
    while not is_so():
        assert process.process.poll() is None, process.ended()
        time.sleep(0.03)


@pytest.fixture
def log(tmp_path):
    (tmp_path / "logs").mkdir()
    return tmp_path / "logs" / "access.log"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_follow_after_all_complete_lines_landed(lake, follow, log, number):
    log.write_text(line("/a"))
    process = follow(log, every="600")
    until(lambda: paths(lake), process)
    with log.open("a") as file:
        file.write(line("/b") + line("/c") + line("/unfinished")[:50])
    run = process.end(number)
    assert (run.code, run.out) == (0, "")
    assert paths(lake) == Counter(("/a", "/b", "/c"))
    told = run.err.splitlines()
    assert told[0] == f"Lake: {lake.root}"
    read = len(line("/a") * 3)
    last = "the last at 2015-05-17 10:05:03 UTC"
    assert told[-1] == f"{log}: 3 visits imported, {last}; the log has been read to byte {read}."
    assert len(told) == 3


def test_without_a_terminal_progress_is_one_line_a_minute(lake, follow, log):
    log.touch()
    process = follow(log)
    for number in range(3):
        with log.open("a") as file:
            file.write(line(f"/{number}") + f"garbage {number}\n")
        until(lambda number=number: len(paths(lake)) > number, process)
    told = process.end().err.splitlines()
    assert [re.sub(": .*", "", text) for text in told] == ["Lake", str(log), str(log)]
    assert "1 visit imported" in told[1]
    assert re.search(rf"3 visits imported.*; 3 lines not read, noted in {lake.rejects}/acme-[0-9a-f]+\.csv\.", told[2])


def test_on_a_terminal_one_line_is_updated(lake, follow, log):
    log.write_text(line("/a"))
    ours, theirs = pty.openpty()
    process = follow(log, err=Path(os.ttyname(theirs)))
    told = b""
    while b"access.log: 1 visit, last 2015-05-17 10:05:03" not in told:
        told += os.read(ours, 10_000)
    process.end()
    os.set_blocking(ours, False)
    with suppress(BlockingIOError):
        while more := os.read(ours, 10_000):
            told += more
    os.close(theirs)
    os.close(ours)
    assert told.count(b"\n") == 3  # the lake, the last status line, the summary
    assert process.out.read_text() == ""


def test_follow_waits_for_a_missing_log(lake, follow, log):
    process = follow(log)
    until(lambda: "waiting for it" in process.told, process)
    log.write_text(line("/a"))
    until(lambda: paths(lake), process)
    run = process.end()
    assert run.code == 0
    assert run.err.count("waiting for it") == 1


KILLS = scaled(2, 60)


class Writer(threading.Thread):
    """A server that writes unique lines to a log, sometimes part of a line first, and also rotates the log."""

    def __init__(self, log):
        super().__init__()
        self.log = log
        self.lines = self.rotations = 0
        self.is_read = threading.Event()  # files rotated before the first start are not followed
        self.is_over = threading.Event()

    def run(self):
        choice = random.Random(5)
        file = self.log.open("a")
        while not self.is_over.wait(choice.uniform(0, 0.01)):
            text = line(f"/{self.lines}")
            cut = choice.choice((0, 0, choice.randrange(len(text))))
            for part in (text[:cut], text[cut:]):
                file.write(part)
                file.flush()
            self.lines += 1
            if not self.log.exists():  # it continues in the old file for a while
                if choice.random() < 0.1:
                    file.close()
                    file = self.log.open("a")
            elif self.is_read.is_set() and choice.random() < 0.02:
                self.log.rename(self.log.with_name(f"access.log.{self.rotations:03}"))
                self.rotations += 1
        file.close()


def test_follow_loses_and_repeats_nothing_when_killed(lake, follow, log):
    choice, ends = random.Random(3), []
    writer = Writer(log)
    writer.start()
    process = follow(log, every="0.01")
    until(lambda: paths(lake), process)
    writer.is_read.set()
    for _ in range(KILLS):
        ends.append(process.end(signal.SIGKILL).code)
        process.err.unlink()
        process = follow(log, every="0.01")
        until(lambda process=process: process.told, process)
        time.sleep(choice.uniform(0, 0.3))
    until(lambda: writer.rotations, process)
    writer.is_over.set()
    writer.join()
    until(lambda: paths(lake).total() >= writer.lines, process)
    assert process.end().code == 0
    found = paths(lake)
    lost = writer.lines - len(found)
    doubled = found.total() - len(found)
    told = f"{KILLS} kills, {writer.rotations} rotations, {writer.lines} lines: {lost} lost, {doubled} doubled"
    sys.stdout.write(f"{told}\n")
    assert ends == [-signal.SIGKILL] * KILLS
    assert (lost, doubled) == (0, 0)
    assert found.keys() == {f"/{number}" for number in range(writer.lines)}
