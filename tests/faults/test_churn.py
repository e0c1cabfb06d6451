"""While files are written, merged and deleted, no request fails and every answer counts whole batches."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

from tests.faults.lakes import PER_BATCH
from tests.faults.servers import serving
from tests.faults.trials import scaled
from tests.faults.victims import nothing

SECONDS = scaled(2, 300)
CLIENTS = 3


def test_no_request_fails_while_files_are_merged_and_deleted_without_grace(program, tell, tmp_path):
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
            time.sleep(SECONDS)
            while churn.runs() and "churned" not in churn.told.read_text():  # on a busy machine a round takes longer
                time.sleep(0.1)
            stop.set()
            for future in work:
                future.result()
        churn.kill()
        rounds = churn.wait().told.count("churned")
        told = server.child.told.read_text()
    assert set(statuses) == {202}
    tell(reads=len(totals), reports=len(statuses), rounds=rounds, files_gone=told.count("files gone"), failed=0)
    assert rounds
