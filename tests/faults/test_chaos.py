"""Concurrent programs on one lake, many of them killed: nothing is lost, counted twice or seen in part.

A server that is stopped under load ends cleanly, and has stored each acknowledged visit exactly once.
"""

import gzip
import http.client
import itertools
import random
import re
import shutil
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, date, datetime

import pytest

from data.links.links import change_links, links_of
from data.store.pending import flush_all
from data.tasks.compaction import Compactor
from queries import ENTRIES, Scope
from tests.faults.chaos import BATCH, OLD, acknowledged, links_set
from tests.faults.lakes import PER_BATCH, assert_no_address, assert_sound, batches, log, strays, sweep
from tests.faults.servers import serving
from tests.faults.trials import scaled
from tests.faults.victims import INTO, nothing
from tests.support.lakes import opened
from tests.support.sql import answers

CHAOS_SECONDS = scaled(2, 600)
ROLES = (("import_logs", "a"), ("import_logs", "b"), ("send",), ("send",), ("maintain",), ("maintain",),
         ("set_links", "c"), ("set_links", "d"), ("reclassify",), ("forget",), ("read",), ("read",))  # fmt: skip


def test_programs_killed_at_random_lose_or_repeat_no_visit(program, tell, tmp_path):
    """Importers, senders, link setters, compactors, a reclassifier, retention and readers: every reader sees each
    batch completely or not at all. In the end, every acknowledged batch is stored once, and links are as last set.
    """
    nothing(tmp_path)
    choice, ended = random.Random(4), []
    children = {number: program.start(tmp_path, *role) for number, role in enumerate(ROLES)}
    end = time.monotonic() + CHAOS_SECONDS
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
        change_links(lake, "acme", [], datetime.now(UTC))  # an edit adopts the leftovers of a killed edit
        links = {link.short_code: link.target_url for link in links_of(lake, "acme")}
        assert_sound(lake)
        Compactor(lake).run()
        assert batches(lake) == found
        sweep(lake)
        assert strays(lake) == set()
    lost = {name for name in told if name not in found and not name.startswith(OLD)}
    assert (lost, {name: visits for name, visits in found.items() if visits != BATCH}) == (set(), {})
    expected = {code: targets for name in "cd" for code, targets in links_set(tmp_path, name).items()}
    assert {code: links.get(code) for code in expected if links.get(code) not in expected[code]} == {}
    assert_no_address(tmp_path)
    tell(kills=len(ended), batches=len(told), links=len(links), reads=len(reads), lost=0, doubled=0, halved=0)


def reads_of(ended, children=()):
    """Return each result that readers, ended or running, have printed."""
    told = [*(run.told for run in ended), *(child.told.read_text() for child in children)]
    return re.findall(r"^read \d+ (.*)$", "".join(told), re.MULTILINE)


def stopped(child):
    child.kill()
    return child.wait()


CHURN_SECONDS = scaled(2, 300)
CLIENTS = 3


def test_no_request_fails_while_merged_files_are_deleted(program, tell, tmp_path):
    """Every answer counts whole batches."""
    nothing(tmp_path)
    stop, totals, statuses = threading.Event(), [], []

    def query():
        before = 0
        while not stop.is_set():
            total = server.total()
            assert total % PER_BATCH == 0
            assert total >= before
            before = total
            totals.append(total)

    def send():
        number = 0
        while not stop.is_set():
            number += 1
            statuses.append(server.report(f"sent{number}").status)
            time.sleep(0.1)

    with serving(program, tmp_path) as server:
        churn = program.start(tmp_path, "churn")
        with ThreadPoolExecutor(CLIENTS + 1) as pool:
            work = [*(pool.submit(query) for _ in range(CLIENTS)), pool.submit(send)]
            time.sleep(CHURN_SECONDS)
            while churn.runs() and "churned" not in churn.told.read_text():  # on a busy machine a round takes longer
                time.sleep(0.1)
            stop.set()
            for future in work:
                future.result()
        churn.kill()
        rounds = churn.wait().told.count("churned")
    assert set(statuses) == {202}
    tell(reads=len(totals), reports=len(statuses), rounds=rounds, failed=0)
    assert rounds


LINES = 600
SCOPE = Scope("acme", date(2025, 12, 1), date(2026, 1, 31))
AT_ONCE = 4


def answers_of(folder):
    """Return the answers from all endpoints, after checking the lake."""
    with opened(folder / "lake") as lake:
        assert_sound(lake)
        sweep(lake)
        assert strays(lake) == set()
        return answers(lake, SCOPE, ENTRIES)


def test_a_log_counts_once_after_killed_concurrent_imports(program, tell, tmp_path):
    text, logs, once = log("a", LINES, days=3), tmp_path / "logs", tmp_path / "once"
    for folder in (logs, once):
        folder.mkdir()
    for name in ("access.log", "access.log.1"):
        (logs / name).write_text(text)
    with gzip.open(logs / "access.log.2.gz", "wt") as packed:
        packed.write(text)
    names = sorted(logs.iterdir())
    words = {path: ("traffic", "import", path, *INTO) for path in names}
    nothing(once)
    assert program.run(once, *words[names[0]]).code == 0
    expected = answers_of(once)
    assert expected["traffic-overview"]["total_visits"] == LINES
    choice, kills, imports = random.Random(3), 0, 0
    for number in range(scaled(1, 30)):
        folder = tmp_path / str(number)
        folder.mkdir()
        nothing(folder)
        children = [program.start(folder, *words[choice.choice(names)]) for _ in range(AT_ONCE)]
        for _ in range(AT_ONCE):
            time.sleep(choice.uniform(0, 0.3))
            victim = choice.choice(children)
            victim.kill()
            kills += victim.wait().code < 0
            children[children.index(victim)] = program.start(folder, *words[choice.choice(names)])
        assert [child.wait().code for child in children] == [0] * AT_ONCE
        assert [program.run(folder, *words[path]).code for path in names] == [0] * len(names)
        imports += 2 * AT_ONCE + len(names)
        assert answers_of(folder) == expected
        assert_no_address(folder)
        shutil.rmtree(folder)
    tell(imports=imports, kills=kills, answers=len(expected), lost=0, doubled=0)
    assert kills


# Stopped or killed under load

TIMES = {signal.SIGTERM: scaled(1, 50), signal.SIGKILL: scaled(1, 50)}
SENDERS, READERS = 3, 2


class Load:
    """Responses to clients that send requests without a pause until the server is gone."""

    def __init__(self):
        self.statuses, self.kept, self.unanswered = [], [], []
        self._names = map("batch{}".format, itertools.count())

    def send(self, server):
        name = next(self._names)
        self.statuses.append(server.report(name).status)
        if self.statuses[-1] == 202:
            self.kept.append(name)

    def read(self, server):
        server.total()
        self.statuses.append(200)

    def ask(self, ask, server):
        while True:
            try:
                ask(server)
            except ConnectionRefusedError:
                return
            except (OSError, http.client.HTTPException) as error:
                self.unanswered.append(error)


@pytest.mark.parametrize("number", TIMES, ids=lambda number: number.name)
def test_a_server_ended_under_load_keeps_acknowledged_visits(number, program, tell, tmp_path):
    nothing(tmp_path)
    choice, load = random.Random(23), Load()
    for _ in range(TIMES[number]):
        with serving(program, tmp_path) as server, ThreadPoolExecutor(SENDERS + READERS) as pool:
            asking = [pool.submit(load.ask, ask, server) for ask in [load.send] * SENDERS + [load.read] * READERS]
            time.sleep(choice.uniform(0.2, 0.8))
            server.child.kill(number)
            run = server.child.wait()
            for future in asking:
                future.result()
        assert run.code == (0 if number is signal.SIGTERM else -number), run.told
        assert "Traceback" not in run.told, run.told
        assert_no_address(tmp_path, run.told)
    with opened(tmp_path / "lake") as lake:
        waiting = flush_all(lake)
        found = batches(lake)
        assert_sound(lake)
        sweep(lake)
        assert strays(lake) == set()
    assert number is signal.SIGKILL or not waiting
    assert set(load.statuses) <= {200, 202}
    assert set(found.values()) == {PER_BATCH}
    assert found.keys() >= set(load.kept)
    told = {"requests": len(load.statuses), "batches": len(load.kept), "unanswered": len(load.unanswered)}
    tell(ends=TIMES[number], **told, lost=0, doubled=0)
