"""`traffic erase`: what it asks, its receipt, and what it waits for."""

import json
import os
import pty
import sqlite3
import time
from contextlib import closing
from datetime import UTC, datetime, timedelta

import pyarrow.parquet as pq
import pytest

from data.disk.files import sha256_of
from data.tasks import erasure as erasing
from service.ops.commands import erase as erase_command
from tests.support.lakes import rows_of
from tests.support.tables import examples
from tests.support.visits import land, visit

SMALLEST = -(2**63)
ON_TERMINAL = """
import os
from datetime import timedelta
import data.tasks.erasure
data.tasks.erasure.GRACE = timedelta(0)
os.dup2(os.open({terminal!r}, os.O_RDONLY), 0)
"""


@pytest.fixture(autouse=True)
def grace(monkeypatch):
    """Set the grace period to zero, unless a test sets another."""
    monkeypatch.setattr(erasing, "GRACE", timedelta(0))


@pytest.fixture
def erase(traffic, lake):
    """Run `traffic erase` for acme on a test's lake."""
    return lambda *flags: traffic("erase", "--org", "acme", *flags)


def paths(lake, organization="acme"):
    return sorted(row["path"] for row in rows_of(lake, organization))


def fill(lake, organization="acme"):
    """Land visits on three days; the visits of a day differ from each other in every criterion."""
    kinds = (("sale", "go.example", 7), ("Sale", "old.example", SMALLEST), (None, None, None))
    rows = [
        visit(visited_at=datetime(2026, 3, day), short_code=code, domain=domain, visitor=hash_, path=f"/{day}{n}")
        for day in (3, 4, 5)
        for n, (code, domain, hash_) in enumerate(kinds)
    ]
    land(lake, organization, rows)


def file_rows(files):
    return [{"path": file.path, "sha256": file.sha256, "visits": file.visits} for file in files]


# Effects and output


@examples("flags", "criteria", "gone")
def test_erasing_matching_visits_returns_a_receipt(lake, erase, flags, criteria, gone):
    fill(lake)
    begun = datetime.now(UTC).replace(microsecond=0)
    before = lake.manifest.files.live("acme")
    receipt = erase(*flags, "--yes").json
    after = lake.manifest.files.live("acme")
    expected = [f"/{day}{number}" for day in (3, 4, 5) for number in range(3)]
    assert paths(lake) == [path for path in expected if path[1:] not in gone.split()]
    assert list(receipt) == [
        "organization", "criteria", "dry_run", "erased_at", "visits", "partitions", "files", "jobs", "not_reached"
    ]  # fmt: skip
    assert (receipt["organization"], receipt["criteria"], receipt["dry_run"]) == ("acme", criteria, False)
    assert begun <= datetime.fromisoformat(receipt["erased_at"]) <= datetime.now(UTC)
    assert receipt["erased_at"].endswith("Z")
    assert (receipt["visits"], receipt["partitions"]) == (len(gone.split()), len({path[0] for path in gone.split()}))
    assert receipt["files"] == {
        "before": file_rows(file for file in before if file not in after),
        "after": file_rows(file for file in after if file not in before),
    }
    for file in receipt["files"]["after"]:
        assert (sha256_of(lake.root / file["path"]), file["visits"]) == (file["sha256"], 2)
    assert not any((lake.root / file["path"]).exists() for file in receipt["files"]["before"])
    assert "ackups" in receipt["not_reached"]


@pytest.mark.parametrize(("answer", "left"), [("n", 9), ("y", 6)])
def test_on_a_terminal_erase_shows_its_effects_and_asks(lake, forks, answer, left):
    fill(lake)
    (ours, theirs), (read, write) = pty.openpty(), os.pipe()
    words = ("erase", "--org", "acme", "--domain", "go.example", "--lake", lake.root)
    before = ON_TERMINAL.format(terminal=os.ttyname(theirs))
    with os.fdopen(read, "rb") as stdout:
        process = forks.start(*words, before=before, out=write, err=theirs)
        os.close(write)
        os.close(theirs)
        told = ""
        while "[y/N]" not in told:
            told += os.read(ours, 1000).decode()
        assert "3 stored visits of acme on 3 days would be deleted, in 3 files." in told
        assert len(rows_of(lake)) == 9
        os.write(ours, f"{answer}\n".encode())
        out = stdout.read()
    os.close(ours)
    assert (process.wait(), len(rows_of(lake))) == (0 if answer == "y" else 130, left)
    assert json.loads(out)["visits"] == 3 if answer == "y" else out == b""
    assert not out.startswith(b" ")


# The grace period


def test_erase_waits_until_no_query_reads_the_files(lake, erase, monkeypatch):
    fill(lake)
    monkeypatch.setattr(erasing, "GRACE", timedelta(seconds=15))
    (first, *_), slept = lake.manifest.files.live("acme"), []

    def sleep(seconds):
        slept.append(seconds)
        assert (lake.root / first.path).exists()
        assert rows_of(lake) == []

    monkeypatch.setattr(time, "sleep", sleep)
    run = erase("--all", "--yes")
    assert sum(slept) == 15
    assert "in 15 s" in run.err
    assert not (lake.root / first.path).exists()
    del slept[:]
    assert erase("--all", "--yes").json["visits"] == 0
    assert slept == []


def test_an_interrupted_erasure_is_finished_by_the_next_run(lake, erase, monkeypatch):
    fill(lake)
    before = lake.manifest.files.live("acme")

    def stopped(seconds):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(erasing, "GRACE", timedelta(seconds=1))
        patch.setattr(time, "sleep", stopped)
        run = erase("--all", "--yes")
    assert (run.code, run.out, rows_of(lake)) == (130, "", [])
    assert all((lake.root / file.path).exists() for file in before)
    assert erase("--all", "--yes").json["visits"] == 0
    assert not any((lake.root / file.path).exists() for file in before)


@pytest.mark.parametrize(("seconds", "code"), [(3, 0), (None, 1)])
def test_erase_waits_for_manifest_readers_up_to_a_limit(lake, erase, monkeypatch, seconds, code):
    fill(lake)
    slept = []
    monkeypatch.setattr(erase_command, "LOG_WAIT_SECONDS", 5)
    with closing(sqlite3.connect(lake.root / "manifest.sqlite", isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT * FROM files").fetchall()

        def sleep(second):
            slept.append(second)
            if len(slept) == seconds:
                reader.execute("ROLLBACK")

        monkeypatch.setattr(time, "sleep", sleep)
        run = erase("--all", "--yes")
    assert (run.code, sum(slept), bool(run.out)) == (code, seconds or 5, code == 0)
    assert run.err.count("manifest.sqlite") == (1 if code == 0 else 2)
    (record,) = lake.root.glob("visits/organization=acme/*/*.parquet")
    assert pq.read_metadata(record).num_rows == 0


def test_a_receipt_is_printed_despite_garbage_in_a_copys_log(lake, erase, traffic, tmp_path):
    fill(lake)
    copy = tmp_path / "copy"
    assert traffic("publish", str(copy)).code == 0
    (copy / f"acme/visits/_delta_log/{1:020}.json").write_bytes(b"\xff\xfegarbage")
    run = erase("--short-code", "sale", "--yes")
    receipt = json.loads(run.out)
    assert (run.code, receipt["visits"], receipt["copies"][0]["done"]) == (1, 3, False)
    assert f"Visits not yet erased at {copy} for acme: {copy}/acme/visits/_delta_log/" in run.err
    for command in (("publish", str(copy)), ("verify", "--published")):
        run = traffic(*command)
        assert (run.code, "Traceback" in run.err) == (1, False)
        assert "00001.json was not written by traffic publish" in run.out + run.err
    assert "may hold visits erased" in traffic("status").out
    assert "last publication failed" in " ".join(traffic("status").out.split())
    assert "copies        acme was not published: " in traffic("doctor").out
