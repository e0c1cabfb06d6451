"""Concurrent programs, many of them killed, on one lake and its copy in a bucket, over a store that fails on purpose.

`TRAFFIC_FAULTS=all uv run pytest -n 0 tests/faults/test_published_chaos.py` kills programs 100 times, which takes a few
minutes.
"""

import io
import itertools
import random
import signal
import time
from collections import Counter
from datetime import UTC, datetime, timedelta
from importlib.util import find_spec

import pyarrow.parquet as pq

from data.publish.publisher import LakePublisher, follow_erasures
from data.publish.verification import verify_copies
from data.tasks.erasure import Criteria, Eraser
from tests.faults.chaos import BATCH, ERASED, days_ago
from tests.faults.lakes import assert_sound, batches, line
from tests.faults.trials import scaled
from tests.faults.victims import nothing
from tests.support.lakes import opened, rows_of
from tests.support.manifests import database_of
from tests.support.published import rows_of as published_rows

KILLS = scaled(8, 100)
LOGS, COPY = "s3://bucket/logs", "s3://bucket/copy"
ROLES = (("publish", COPY), ("follow_bucket", LOGS), ("maintain",), ("erase",), ("reclassify",), ("forget",))
FAILURES = (
    ("(GET|PUT|POST) /bucket/", "503 SlowDown"), ("GET /bucket/", "cut"), ("PUT /bucket/copy/", "lost"),
    ("PUT /bucket/copy/acme/visits/day", "late"), ("GET /bucket/logs/", "403 InvalidObjectState"),
)  # fmt: skip


def drop(store, number):
    """Write an object with a batch of visits and a visit to erase."""
    lines = [line(f"/batch-{number}/{at}", when=days_ago(at % 2)) for at in range(BATCH)]
    store.put(f"logs/{number:05}.log", "".join((*lines, line(f"/{ERASED}", when=days_ago(1)))).encode())


def test_killed_programs_leave_an_exact_copy_of_the_lake(program, store, tell, tmp_path):
    nothing(tmp_path)
    with opened(tmp_path / "lake", create=True) as lake:
        assert lake.manifest.organizations.names() == []
    choice, numbers, ended = random.Random(7), itertools.count(), []
    children = {role[0]: program.start(tmp_path, *role) for role in ROLES}
    while len(ended) < KILLS:
        for _ in range(3):
            drop(store, next(numbers))
        store.fail(*choice.choice(FAILURES), times=choice.randrange(1, 4))
        time.sleep(choice.uniform(0.2, 1.2))
        role = choice.choice(ROLES)
        children[role[0]].kill()
        ended.append((role[0], children[role[0]].wait()))
        children[role[0]] = program.start(tmp_path, *role)
    for name, child in children.items():
        child.kill()
        ended.append((name, child.wait()))
    store.mend()
    store.apply_late()
    codes = Counter(run.code for _, run in ended)
    assert set(codes) == {-signal.SIGKILL}, [run for _, run in ended if run.code != -signal.SIGKILL]
    last = program.start(tmp_path, "follow_bucket", LOGS)
    written = next(numbers)
    with opened(tmp_path / "lake") as lake:
        while len(database_of(lake.manifest).rows("SELECT DISTINCT key FROM objects")) < written:
            assert last.runs(), last.wait()
            time.sleep(0.2)
        last.kill()
        last.wait()
        assert_nothing_is_lost(lake, store, tmp_path, written)
        assert_sound(lake)
    tell(kills=len(ended), objects=written, requests=len(store.asked), lost=0, doubled=0, erased_and_found=0)


def assert_nothing_is_lost(lake, store, folder, written):
    Eraser(lake).run("acme", Criteria(short_code=ERASED))
    later = datetime.now(UTC) + timedelta(minutes=16)  # then no earlier put can appear
    publisher = LakePublisher(lake, COPY, lambda: later)
    publisher.publish("acme")  # finds the objects of killed programs
    later += timedelta(minutes=16)
    assert [followed.problem for followed in follow_erasures(lake, "acme", lambda: later)] == [""]
    assert lake.manifest.copies.find()[0].due_since is None
    publisher.publish("acme")
    assert [*verify_copies(lake)] == []
    assert batches(lake) == {f"batch-{number}": BATCH for number in range(written)}
    for key, found in store.objects().items():
        if key.startswith("copy/"):
            (folder / key).parent.mkdir(parents=True, exist_ok=True)
            (folder / key).write_bytes(found.body)
    table = folder / "copy/acme/visits"
    assert Counter(map(str, published_rows(table))) == Counter(map(str, rows_of(lake)))
    if find_spec("deltalake"):
        import deltalake  # noqa: PLC0415

        assert deltalake.DeltaTable(str(table)).count() == written * BATCH
    assert store.uploads == {}
    for key, each in store.buckets["bucket"].items():
        assert len(each) == 1  # no earlier version
        assert key.startswith("logs/") or ERASED.encode() not in each[0].body  # nor in the log's statistics
        if each[0].body.startswith(b"PAR1"):
            rows = pq.read_table(io.BytesIO(each[0].body))
            assert "short_code" not in rows.column_names or ERASED not in rows["short_code"].to_pylist()
