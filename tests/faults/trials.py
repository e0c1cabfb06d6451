"""A command that is disturbed at a system call, and what must be true right afterwards and after another run."""

import itertools
import os
import random
import shutil
from contextlib import contextmanager

from hypothesis import HealthCheck, settings

from tests.faults.lakes import assert_no_address, assert_sound, found_in, inflated, strays, sweep
from tests.support.lakes import opened
from tests.support.manifests import database_of

SHARE = os.environ.get("TRAFFIC_FAULTS", "1")
"""How many times as many trials to make as in a run of all tests, or "all"."""
IS_LONG = SHARE == "all"
P99_SECONDS = 0.05
"""The maximum duration of 99 of 100 cached answers (P18)."""


def scaled(sampled, long):
    """Return the number or duration of trials: `sampled` times SHARE, or `long` in the long form."""
    return long if IS_LONG else sampled * int(SHARE)


def tried(sampled, long=200):
    """Return Hypothesis settings: a run of all tests always tries the same examples; longer runs try others."""
    return settings(max_examples=scaled(sampled, long), derandomize=SHARE == "1", suppress_health_check=HealthCheck)


def p99(seconds):
    return sorted(seconds)[int(0.99 * len(seconds))]


def spread(points, sampled):
    """Return evenly spaced points, or all points in the long form."""
    return points if IS_LONG else points[:: -(-len(points) // scaled(sampled, 0))]


def some(calls, sampled, seed):
    """Return a sample of calls, of as many kinds as possible, or every call in the long form."""
    if IS_LONG:
        return calls
    kinds, choice = {}, random.Random(seed)
    for call in choice.sample(calls, len(calls)):
        kinds.setdefault(call.kind, []).append(call)
    turns = itertools.zip_longest(*choice.sample([*kinds.values()], len(kinds)))
    return [call for turn in turns for call in turn if call][: scaled(sampled, None)]


class Trial:
    """A victim, its initial state, and its result when nothing disturbs it."""

    def __init__(self, victim, program, folder):
        self.victim, self._program, self._folder = victim, program, folder
        self._numbers = itertools.count()
        self._begun = folder / "begun"
        self._begun.mkdir()
        victim.prepare(self._begun)
        with self._copy_of(self._begun) as copy:
            self.before = victim.state(copy)
        with self._copy_of(self._begun) as copy:
            run = self._trace(copy)
            assert run.code == 0, run.told
            self.calls = [
                call for call in run.calls if os.devnull not in call.text and call.process == run.calls[0].process
            ]
            assert victim.has_threads or len({call.process for call in run.calls}) == 1
            self._assert_finished(copy)
            self.after, self._files = victim.state(copy), files_of_days(copy)
        assert victim.acknowledged(run._replace(code=1), self.after) == set(self.after)

    def inject(self, injected):
        """Run the victim while strace kills it or makes a call fail, then again undisturbed; return the first run."""
        return self._disturb(lambda folder: self._trace(folder, ("-e", f"inject={injected}")))

    def limit(self, size):
        """Run the victim with a file size limit, then again undisturbed; return the first run."""
        function, words = self.victim.function, self.victim.words
        return self._disturb(lambda folder: self._program.run(folder, "limited", size, function, *words))

    def _disturb(self, disturbed):
        with self._copy_of(self._begun) as copy:
            run = disturbed(copy)
            with self._copy_of(copy) as left:
                state = self._assert_whole(left, run)
            words = self.victim.again(self.victim, state)
            if words:
                again = self._program.run(copy, "in_order", self.victim.function, *words)
                assert again.code == 0, again.told
                assert_no_address(copy, again.told)
            self._assert_finished(copy)
            assert self.victim.state(copy) == self.after
            if self.victim.function == "traffic":
                assert files_of_days(copy) == self._files
        return run

    def _trace(self, folder, options=("-y",)):
        return self._program.trace(folder, "in_order", self.victim.function, *self.victim.words, options=options)

    @contextmanager
    def _copy_of(self, folder):
        copy = self._folder / str(next(self._numbers))  # the leftovers of a failing test are kept
        shutil.copytree(folder, copy)
        yield copy
        shutil.rmtree(copy)

    def _assert_whole(self, folder, run):
        """Check that acknowledged work is stored, that other work is stored completely or not at all, and that nothing
        is broken.

        Returns the state.
        """
        assert_no_address(folder, run.told)
        state = self.victim.state(folder)
        assert state.keys() <= self.before.keys() | self.after.keys()
        acknowledged = self.victim.acknowledged(run, self.after)
        for name in self.before.keys() | self.after.keys():
            allowed = [self.after.get(name)] if name in acknowledged else [self.before.get(name), self.after.get(name)]
            assert state.get(name) in allowed, f"{name} after {run.code}: {run.told}"
        if (folder / "lake" / "manifest.sqlite").exists():
            with opened(folder / "lake") as lake:
                if not lake.manifest.problem:
                    assert_sound(lake)
        return state

    def _assert_finished(self, folder):
        """Check that deleted content is gone, and that a sweep removes all leftovers."""
        with opened(folder / "lake") as lake:
            assert_sound(lake)
            for path in folder.rglob("*") if self.victim.gone else ():
                if path.is_file():
                    assert not any(found_in(content, self.victim.gone) for content in inflated(path.read_bytes())), path
            sweep(lake)
            assert strays(lake) == set()
            assert_sound(lake)
        known = {path.name for path in self._begun.iterdir()}
        assert {path.name for path in folder.iterdir()} - known <= {"lake", "copy"}


def files_of_days(folder):
    """Return the number of live files for each organization and day."""
    with opened(folder / "lake") as lake:
        return database_of(lake.manifest).rows(
            "SELECT organization, day, count(*) FROM files WHERE deletable_at IS NULL GROUP BY 1, 2 ORDER BY 1, 2"
        )
