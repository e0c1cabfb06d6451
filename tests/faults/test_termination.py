"""Under load, told to stop or killed, a server keeps each visit it acknowledged once; told to stop, it ends well."""

import http.client
import itertools
import random
import signal
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from data.store.pending import flush_all
from tests.faults.lakes import PER_BATCH, assert_no_address, assert_sound, batches, strays, sweep
from tests.faults.servers import serving
from tests.faults.trials import scaled
from tests.faults.victims import nothing
from tests.support.lakes import opened

TIMES = {signal.SIGTERM: scaled(1, 50), signal.SIGKILL: scaled(1, 50)}
SENDERS, READERS = 3, 2


class Load:
    """What clients were answered that ask without a pause until nobody listens any more."""

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
def test_a_server_that_ends_under_load_keeps_every_visit_it_acknowledged(number, program, tell, tmp_path):
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
