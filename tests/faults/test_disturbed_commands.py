"""A command that is killed at any system call, or whose disk is full or fails, acknowledges nothing that is not stored,
stores nothing twice and leaves a sound lake without a client's address; the next run finishes its work.
"""

import itertools
import re
import shutil
import signal

import pytest

from tests.faults.trials import IS_LONG, Trial, scaled, some
from tests.faults.victims import INTO, VICTIMS, grown_log, two_logs

SAMPLED = 1
"""The number of system calls at which each command is killed, and the number that fail; in the long form, all calls
that change the disk."""
LIMITS = range(20) if IS_LONG else [13]
"""Maximum file sizes, as powers of two."""
WAYS = ("error=ENOSPC:when={}+", "error=EIO:when={}", "error=ENOSPC:when={}", "error=EIO:when={}+")
"""How a call fails: with which error, and whether once or from then on."""
MOVES_NO_FILES = {"keys create", "approval", "rebuild", "rebuild of an older manifest", "backup", "publish"}
"""The commands that move no visit or link files into place before they commit the manifest."""


@pytest.fixture(scope="module", params=VICTIMS, ids=lambda victim: victim.name)
def trial(request, program, traceable, tmp_path_factory):
    return Trial(request.param, program, tmp_path_factory.mktemp("trial"))


def test_the_next_run_after_a_kill_finishes_without_loss(trial, tell):
    codes = [
        trial.inject(f"{call.name}:signal=KILL:when={call.number}").code
        for call in some(trial.calls, SAMPLED, seed=trial.victim.name)
    ]
    assert set(codes) <= {0, -signal.SIGKILL}
    tell(points=len(trial.calls), kills=codes.count(-signal.SIGKILL), lost=0, doubled=0)
    assert codes.count(-signal.SIGKILL) > len(codes) // 2


def test_the_next_run_after_a_failing_disk_finishes_without_loss(trial, tell):
    """A run of all tests tries one failure per command: a file size limit, a failing call, or a failing commit.

    A failed commit stays in the write-ahead log, where the next program finds it, so the files that it adds must exist.
    """
    commits = list(commits_of_files(trial.calls))
    assert (commits == []) == (trial.victim.name in MOVES_NO_FILES)
    begin = VICTIMS.index(trial.victim)  # together, all commands cover every way
    limits, calls = LIMITS, some(trial.calls, SAMPLED, seed=trial.victim.name)
    if scaled(1, None) == 1:
        tried = begin % (3 if commits else 2)
        limits, calls, commits = (LIMITS[tried:1], calls[: tried == 1], commits[: tried == 2])
    ways = itertools.islice(itertools.cycle(WAYS), begin, None)
    codes = [trial.inject(f"{call.name}:{next(ways).format(call.number)}").code for call in calls]
    codes += [trial.inject(f"fdatasync:error=EIO:when={commit.number}+").code for commit in commits]
    limited = [trial.limit(1 << power).code for power in limits]
    failed = sum(map(bool, codes + limited))
    tell(points=len(trial.calls), failures=len(codes), limits=len(limited), failed_runs=failed, false_acks=0)
    assert any(limited) == bool(limits)


def commits_of_files(calls):
    """Yield the calls that sync a manifest commit after visit or link files were moved into place."""
    has_moved = False
    for call in calls:
        has_moved |= call.name == "rename" and re.search(r"/(visits|links)/organization=[^_]", call.text) is not None
        if has_moved and call.name == "fdatasync" and "manifest.sqlite-wal" in call.text:
            has_moved = False
            yield call


def test_rejected_lines_are_kept_even_if_the_import_is_killed(program, traceable, tmp_path):
    grown_log(tmp_path)
    words = ("in_order", "traffic", "import", "a.log", *INTO)
    shutil.copytree(tmp_path, tmp_path / "undisturbed")
    calls = program.trace(tmp_path / "undisturbed", *words).calls
    (noted,) = [call for call in calls if call.name == "rename" and "/rejects/" in call.text]
    killed = program.trace(tmp_path, *words, options=("-e", f"inject=rename:signal=KILL:when={noted.number}"))
    assert killed.code == -signal.SIGKILL
    assert program.run(tmp_path, *words).code == 0
    assert [*(tmp_path / "lake" / "rejects").iterdir()]


def test_a_full_disk_is_reported_in_one_line(program, traceable, tmp_path):
    two_logs(tmp_path)
    words = ("in_order", "traffic", "import", "a.log", *INTO)
    run = program.trace(tmp_path, *words, options=("-e", "inject=fdatasync:error=ENOSPC"))
    assert run.code == 1
    assert run.told.splitlines()[-1].startswith("traffic: ")
    assert "Traceback" not in run.told
