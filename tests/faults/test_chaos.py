"""Importers, senders, compactors, a reclassifier, retention and readers at once, killed at any moment: each batch is
there as a whole or not at all for every reader, and in the end every acknowledged one is there once.
"""

import random
import re
import signal
import time

from data.maintenance.compaction import Compactor
from data.store.pending import flush_all
from tests.faults.chaos import BATCH, OLD, acknowledged
from tests.faults.lakes import assert_no_address, assert_sound, batches, strays, sweep
from tests.faults.trials import scaled
from tests.faults.victims import nothing
from tests.support.lakes import opened

SECONDS = scaled(2, 600)
ROLES = (("import_logs", "a"), ("import_logs", "b"), ("send",), ("send",), ("maintain",), ("maintain",),
         ("reclassify",), ("forget",), ("read",), ("read",))  # fmt: skip


def test_all_programs_at_work_and_killed_at_random_lose_double_and_halve_nothing(program, tell, tmp_path):
    nothing(tmp_path)
    choice, ended = random.Random(4), []
    children = {number: program.start(tmp_path, *role) for number, role in enumerate(ROLES)}
    end = time.monotonic() + SECONDS
    while time.monotonic() < end or not reads_of(ended, children.values()):  # on a busy machine readers start late
        time.sleep(choice.uniform(0.1, 0.7))
        for number in {choice.choice([*children]), *(key for key, child in children.items() if not child.runs())}:
            ended.append(stopped(children[number]))
            children[number] = program.start(tmp_path, *ROLES[number])
    ended += [stopped(child) for child in children.values()]
    assert {run.code for run in ended} == {-signal.SIGKILL}, [run for run in ended if run.code != -signal.SIGKILL]
    reads = reads_of(ended)
    assert set(reads) == {"whole"}
    told = acknowledged(tmp_path)
    with opened(tmp_path / "lake") as lake:
        flush_all(lake)
        found = batches(lake)
        assert_sound(lake)
        Compactor(lake).run()
        assert batches(lake) == found
        sweep(lake)
        assert strays(lake) == set()
    lost = {name for name in told if name not in found and not name.startswith(OLD)}
    assert (lost, {name: visits for name, visits in found.items() if visits != BATCH}) == (set(), {})
    assert_no_address(tmp_path)
    tell(kills=len(ended), batches=len(told), reads=len(reads), lost=0, doubled=0, halved=0)


def reads_of(ended, children=()):
    """What readers that ended or run saw, each time that they looked."""
    told = [*(run.told for run in ended), *(child.told.read_text() for child in children)]
    return re.findall(r"^read \d+ (.*)$", "".join(told), re.MULTILINE)


def stopped(child):
    child.kill()
    return child.wait()
