"""While its disk is full or fails, a server answers what it is asked and refuses what it is sent; then it goes on."""

import asyncio
import errno
import re
import resource
import time
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

from data.ingest.live import LiveIngest
from service.maintenance import Maintenance
from tests.cluster.processes import wait_until
from tests.faults.lakes import PER_BATCH, assert_no_address, assert_sound, batches, report
from tests.faults.servers import serving
from tests.faults.tracing import traced
from tests.faults.trials import scaled
from tests.faults.victims import nothing
from tests.support.lakes import opened
from tests.support.visits import land, visit

REPORTS = scaled(5, 200)


@contextmanager
def limited(server, folder):
    """No file may become larger than a page: what the server tells has room, what its databases hold has not."""
    resource.prlimit(server.child.process, resource.RLIMIT_FSIZE, (4096, resource.RLIM_INFINITY))
    yield
    resource.prlimit(server.child.process, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))


def failing(injected):
    """Some system calls fail."""
    return lambda server, folder: traced(server, folder / "trace", "-e", f"inject={injected}")


WAYS = {
    "no file may grow": (limited, {503}),
    "no space for databases": (failing("pwrite64:error=ENOSPC"), {503}),
    "databases are not synced": (failing("fdatasync:error=EIO"), {503}),
    "files are not synced or moved": (failing("fsync,rename:error=EIO"), {202}),
}


def test_a_server_reads_on_refuses_what_it_cannot_keep_and_resumes(program, traceable, tell, tmp_path):
    """In every way, one after the other: what one of them leaves behind is there when the next one comes."""
    nothing(tmp_path)
    answers = {}

    def kept():
        return sum(status == 202 for status in answers.values()) * PER_BATCH

    with serving(program, tmp_path) as server:
        for way, (disturbed, statuses) in WAYS.items():
            answers[f"before {way}"] = server.report(f"before {way}").status
            wait_until(lambda: server.total() == kept(), 60)
            before = kept()
            answers[f"waiting {way}"] = server.report(f"waiting {way}").status  # for its file, if it has none yet
            with disturbed(server, tmp_path):
                during = [f"during {way} {number}" for number in range(REPORTS)]
                for name in during:
                    answers[name] = server.report(name).status
                    assert server.total() in (before, before + PER_BATCH)
                time.sleep(2.5)  # its background work fails, too
                assert server.total() in (before, before + PER_BATCH)
            assert {answers[name] for name in during} == statuses, way
            answers[f"after {way}"] = server.report(f"after {way}").status
            wait_until(lambda: server.total() == kept(), 60)
    assert {status for name, status in answers.items() if not name.startswith("during")} == {202}
    taken = [name for name, status in answers.items() if status == 202]
    with opened(tmp_path / "lake") as lake:
        found = batches(lake)
        assert_sound(lake)
    assert found == dict.fromkeys(taken, PER_BATCH)
    assert_no_address(tmp_path, server.child.told.read_text())
    tell(reports=len(answers), refused=len(answers) - len(taken), lost=0, doubled=0, failed_reads=0)


READING = (("query", "traffic-overview", "--org", "acme"), ("status",), ("verify",))


def test_commands_that_only_read_go_on_with_a_full_disk_and_others_name_it(program, tmp_path):
    nothing(tmp_path)
    with opened(tmp_path / "lake") as lake:
        land(lake, "acme", [visit()])
    for words in READING:
        run = program.run(tmp_path, "limited", 8192, "traffic", *words, "--lake", "lake")
        assert run.code == 0, run.told
    run = program.run(tmp_path, "limited", 8192, "traffic", "compact", "--lake", "lake")
    assert run.code == 1
    assert re.search(r"manifest\.sqlite cannot be used: the disk is full or fails \(.*\); make room on it", run.told)


async def test_background_work_goes_on_when_its_trouble_cannot_be_told(lake, control, monkeypatch):
    flushes = []

    def full(_):
        raise OSError(errno.ENOSPC, "No space left on device")

    def flush(_):
        flushes.append(time.monotonic())
        full(_)

    report(LiveIngest(lake), "waiting")
    monkeypatch.setattr("service.maintenance.START_DELAY_SECONDS", 0.0)
    monkeypatch.setattr("service.maintenance.flush_all", flush)
    monkeypatch.setattr("sys.stderr", SimpleNamespace(write=full))
    upkeep = Maintenance(lake, control, lambda: datetime.now(UTC) + timedelta(minutes=1), None)
    upkeep.begin()
    async with asyncio.timeout(60):
        while len(flushes) < 2:
            await asyncio.sleep(0.1)
    for task in upkeep._running:
        task.cancel()
    await asyncio.gather(*upkeep._running, return_exceptions=True)
