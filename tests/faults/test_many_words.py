"""Strangers who send a new referrer with every request cannot make answers too large or delay other responses too long.

`TRAFFIC_FAULTS=all` lands 1.6 million referrers and checks that the server's memory and the times of other responses
stay within what is promised (P18, P21). The server builds no rollups during the test, so every answer reads all visits.
"""

import json
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import date, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from data.visits import VISITS_OF_DAYS
from queries.snapshot import MAX_VALUES_PER_DAY
from tests.faults.servers import serving
from tests.faults.trials import IS_LONG, P99_SECONDS, p99, scaled
from tests.faults.victims import nothing
from tests.recount import MAX_ROWS, OTHER_WORDS
from tests.support.lakes import opened
from tests.support.visits import land_table, visit

DAYS = 2
REFERRERS = scaled(DAYS * (MAX_VALUES_PER_DAY + 100), 1_600_000)
CLIENTS, REQUESTS = 3, scaled(1, 8)
CACHED = "/analytics/devices"
MEMORY_MB = 300
MOST_MB, LARGEST_DASHBOARD = MEMORY_MB + 300, 1_000_000


def land_referrers(lake):
    """Land visits by people on two days, as an import would; each visit has a different referrer."""
    for number in range(DAYS):
        moment = datetime(2026, 1, 5) + timedelta(days=number)
        columns = visit(visited_at=moment, short_code="sale", referrer_type="other")
        rows = REFERRERS // DAYS
        names = pc.cast(pa.array(range(number * rows, (number + 1) * rows)), pa.string())
        table = {
            field.name: pa.repeat(pa.scalar(columns.get(field.name), field.type), rows) for field in VISITS_OF_DAYS
        }
        referrers = pc.binary_join_element_wise("www.stranger-", names, ".example", "")
        land_table(lake, "acme", pa.table(table | {"referrer": referrers}, schema=VISITS_OF_DAYS))


def resident_mb(process):
    status = Path(f"/proc/{process}/status").read_text("ascii")
    return int(status.partition("VmRSS:")[2].split()[0]) // 1000


def ask_cached(server):
    """Request an answer that is cached after the first request; return the seconds that this takes."""
    begun = time.perf_counter()
    assert server.ask("GET", CACHED).status == 200
    return time.perf_counter() - begun


def test_many_referrers_make_no_answer_too_large_or_slow(program, tell, tmp_path):
    nothing(tmp_path)
    with opened(tmp_path / "lake") as lake:
        land_referrers(lake)

    def storm(client):
        bodies = {}
        for number in range(REQUESTS):  # each start date makes another scope, so that nothing is cached
            start = date(2025, 12, 1) + timedelta(REQUESTS * client + number)
            for name in ("referrers", "dashboard"):
                answer = server.ask("GET", f"/analytics/{name}?start_date={start}&end_date=2026-01-31")
                assert answer.status == 200, answer.body
                bodies[name] = answer.body
        return bodies

    with serving(program, tmp_path, memory=f"{MEMORY_MB}MB") as server, ThreadPoolExecutor(CLIENTS) as clients:
        alone = [ask_cached(server) for _ in range(scaled(20, 500))]
        storms = [clients.submit(storm, client) for client in range(CLIENTS)]
        seconds = []
        while not all(storm.done() for storm in storms):
            seconds.append(ask_cached(server))
        sizes = {name: len(body) for name, body in storms[0].result().items()}
        rows = json.loads(storms[0].result()["referrers"])
        memory = resident_mb(server.child.process)
    tell(
        referrers=REFERRERS, bytes_of_referrers=sizes["referrers"], bytes_of_the_dashboard=sizes["dashboard"],
        MB_afterwards=memory, cached_answers=len(seconds), p99_milliseconds=round(1000 * p99(seconds), 1),
        slowest=round(1000 * max(seconds), 1), p99_without_the_storm=round(1000 * p99(alone[1:]), 1),
    )  # fmt: skip
    assert len(rows) == MAX_ROWS
    assert rows[-1]["referrer"] == OTHER_WORDS
    assert sum(row["visits"] for row in rows) == REFERRERS
    assert sizes["dashboard"] < LARGEST_DASHBOARD
    assert not IS_LONG or (memory <= MOST_MB and p99(seconds) <= P99_SECONDS)
