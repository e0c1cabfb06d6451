"""The parts of tests/twin that decide which differences count."""

from datetime import UTC, datetime
from types import SimpleNamespace

import pytest

from tests.twin.differences import Differences
from tests.twin.masks import Clock, Masks, Step

STARTED = datetime(2026, 6, 15, 12, 0, tzinfo=UTC)
MASKS = Masks(Clock(STARTED.timestamp()))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("at 2026-06-15T12:00:30.123Z", "at <now>"),
        ("at 2026-06-15 12:00", "at <now>"),
        ("at 15 Jun 2026 12:00", "at <now>"),
        ("at 15 Jun 2026 11:00", "at 15 Jun 2026 11:00"),
        ("until 2026-06-16T12:00:30Z", "until <now+1d>"),
        ("at 2026-06-15T11:00:00Z", "at 2026-06-15T11:00:00Z"),
        ("day 2026-06-15", "day 2026-06-15"),
        ("key tak_0123456789abcdef0123456789", "key <key>"),
        ("3.50 %", "3.50 %"),
    ],
)
def test_only_values_that_differ_between_lives_are_masked(text, shown):
    assert MASKS.masked("GET / as editor", text) == shown


def test_a_path_that_begins_like_the_tree_keeps_its_name():
    life = SimpleNamespace(names={"/srv/tw": "<tree>"}, steps=[Step("", "/srv/tw/a.log, /srv/tw and /srv/twin/a.log")])
    (step,) = MASKS.record(life)
    assert step.text == "<tree>/a.log, <tree> and /srv/twin/a.log"


def test_a_duration_is_masked_only_in_commands():
    texts = [MASKS.masked(label, "took 1.2 s") for label in ("command: import", "GET / as editor")]
    assert texts == ["took <duration>", "took 1.2 s"]


def test_rows_with_the_same_time_are_sorted_by_their_text():
    first, second = "<key id>  acme\n<key id>  berlin\n", "<key id>  berlin\n<key id>  acme\n"
    assert MASKS.masked("command: keys list", first) == MASKS.masked("command: keys list", second)
    assert MASKS.masked("command: links list", first) != MASKS.masked("command: links list", second)


@pytest.mark.parametrize(("hour", "minute", "zone"), [(23, 50, "UTC"), (2, 59, "UTC"), (21, 50, "Europe/Berlin")])
def test_no_life_begins_from_midnight_to_detection(monkeypatch, hour, minute, zone):
    class Late(datetime):
        @classmethod
        def now(cls, tz=None):
            return datetime(2026, 6, 15, hour, minute, tzinfo=tz)

    monkeypatch.setattr("tests.twin.masks.datetime", Late)
    with pytest.raises(SystemExit, match=f"in {zone}"):
        Clock.now()


def test_an_intended_difference_passes_and_counts_as_used():
    entry = {"step": "command: status", "reason": "It says more.", "theirs": r"(\d+) files", "ours": r"\1 files, 0 bad"}
    differences = Differences([entry])
    assert not differences.unexpected("command: status", "3 files", "3 files, 0 bad")
    assert differences.unused() == []


def test_an_intended_difference_hides_no_other_difference():
    entry = {"step": "command: status", "reason": "It says more.", "theirs": r"(\d+) files", "ours": r"\1 files, 0 bad"}
    differences = Differences([entry])
    assert differences.unexpected("command: status", "3 files", "4 files, 0 bad")
    assert differences.unexpected("command: verify", "3 files", "3 files, 0 bad")


def test_an_entry_without_a_match_is_reported():
    differences = Differences([{"step": "command: nothing", "reason": "None."}])
    assert not differences.unexpected("command: status", "same", "same")
    assert differences.unused() == ["command: nothing"]
