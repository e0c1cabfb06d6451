"""Examines the content of a lake: its visits, whether it is sound, its superfluous files, and all its bytes,
decompressed."""

import hashlib
import json
import re
import sqlite3
from collections import defaultdict
from contextlib import closing, suppress
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pyarrow.parquet as pq

from data.ingest.live import Submission
from data.recovery.verification import verify_lake
from data.tasks.compaction import Compactor
from data.visits import VISITS
from tests.support.manifests import database_of
from tests.support.user_agents import CHROME, GPTBOT
from tests.support.visits import unpacked

ADDRESSES = ("198.51.100.213", "2001:db8:ca7a:1d::beef")
"""The addresses of the visits' clients: no written file may contain them, as text or as 16 bytes."""
CANARIES = (b"198.51.100.213", b"2001:db8:ca7a:1d", bytes.fromhex("20010db8ca7a001d00000000"))
PER_BATCH = 6
"""The number of visits in a reported batch."""
_FAR = timedelta(days=36_500)
_ZSTD = b"\x28\xb5\x2f\xfd"


def line(path, day=1, address=ADDRESSES[0], agent=GPTBOT, when=None):
    """Return an access log line, on a day in January or at any other time."""
    when = when or datetime(2026, 1, day, 10, 5, 3)
    return f'{address} - - [{when:%d/%b/%Y:%H:%M:%S} +0000] "GET {path} HTTP/1.1" 200 5 "-" "{agent}"\n'


def log(name, lines, days=2):
    """Return an access log; every visit has a unique path, and every day has visits by people and by a bot."""
    return "".join(
        line(f"/{name}/{number}", 1 + number % days, ADDRESSES[number // 2 % 2], (GPTBOT, CHROME)[number // days % 2])
        for number in range(lines)
    )


def reported(batch, visits=PER_BATCH):
    """Return a batch of reported visits as JSON objects."""
    return [
        json.dumps(
            {"time": f"2026-01-0{1 + number % 2}T10:05:03Z", "path": f"/{batch}/{number}", "user_agent": CHROME,
             "ip": ADDRESSES[number % 2]}
        ).encode()
        for number in range(visits)
    ]  # fmt: skip


def report(intake, *names):
    """Have an intake store batches of visits, each from a different sender."""
    return intake.land([Submission("acme", reported(name)) for name in names])


# Content


def visits(lake):
    """Return all visits of a lake, whether in files or pending, sorted, by organization and day.

    Visitor hashes are reduced to whether they exist, since the salt of a day is random.
    """
    found = defaultdict(list)
    for organization in organizations(lake):
        for file in lake.manifest.files.live(organization):
            table = pq.ParquetFile(lake.root / file.path).read()
            found[organization, str(file.day)] += table.to_pylist()
    for organization, body in database_of(lake.manifest).rows("SELECT organization, body FROM pending"):
        for row in unpacked([body]):
            found[organization, str(row.pop("day"))].append(row)
    return {
        place: sorted(({**row, "visitor": row["visitor"] is not None} for row in rows), key=lambda row: row["path"])
        for place, rows in found.items()
    }


def organizations(lake):
    waiting = database_of(lake.manifest).rows("SELECT DISTINCT organization FROM pending")
    return sorted({*lake.manifest.organizations.names(), *(name for (name,) in waiting)})


def batches(lake):
    """Return the number of visits in each batch, by the first part of their paths."""
    found = defaultdict(int)
    for rows in visits(lake).values():
        for row in rows:
            found[row["path"].split("/")[1]] += 1
    return dict(found)


# Invariants


def assert_sound(lake):
    """Check that every live file is readable and unchanged, and that nothing else is wrong."""
    for organization in lake.manifest.organizations.names():
        for file in lake.manifest.files.live(organization):
            content = (lake.root / file.path).read_bytes()
            assert hashlib.sha256(content).hexdigest() == file.sha256, file.path
            table = pq.read_table(pa.BufferReader(content))
            assert (table.schema, len(table)) == (VISITS, file.visits), file.path
    found = verify_lake(lake)
    assert not found.findings


def sweep(lake):
    """Delete obsolete files, as if the lake had been idle for a long time."""
    Compactor(lake, lambda: datetime.now(UTC) + _FAR).sweep()


def strays(lake):
    """Return a lake's superfluous files, except unknown visit files, which a sweep keeps."""
    files = {path.relative_to(lake.root).as_posix() for path in lake.root.rglob("*") if path.is_file()}
    live = {
        path
        for (path,) in database_of(lake.manifest).rows("SELECT path FROM registered_files WHERE deletable_at IS NULL")
    }
    unknown = {name for name in files if name.startswith(("visits/", "unknown/"))}
    unknown -= {path for (path,) in database_of(lake.manifest).rows("SELECT path FROM files")}
    return {name for name in files - live - unknown if not _NEEDED.fullmatch(name)}


_NEEDED = re.compile(
    r"generation|(manifest|control)\.sqlite(-wal|-shm|\.before-\d+|\.before-rebuild-[\w-]+)?|salts\.sqlite|links/organization=_seed/(links|changes)\.parquet"
    r"|visits/organization=_seed/day=1970-01-01/seed\.parquet|rejects/\w+-[0-9a-f]{16}\.csv|ip-lists/[\w-]+\.json"
    r"|rollups/organization=_seed/month=1970-01-01/seed\.parquet"
    r"|relations/[\w.-]+\.duckdb"
)


# Forbidden content


def assert_no_address(folder, *texts, canaries=CANARIES):
    """Check that no file in a folder, and no given string, contains a client's address or other forbidden content."""
    for path in folder.rglob("*"):
        if path.is_file() and ".log" not in path.name:  # the log itself belongs to its owner
            for content in inflated(path.read_bytes()):
                assert not found_in(content, canaries), path
    for manifest in folder.glob("manifest.sqlite"):
        with closing(sqlite3.connect(manifest)) as db:
            waiting = unpacked(body for (body,) in db.execute("SELECT body FROM pending"))
        assert not found_in(str(waiting).encode(), canaries)
    for text in texts:
        assert not found_in(text.encode(), canaries), text


def found_in(content, words):
    return [word for word in words if word in content]


def inflated(content):
    """Yield these bytes, and the content of each Zstandard frame in them."""
    yield content
    start = content.find(_ZSTD)
    while start >= 0:
        with suppress(IndexError, OSError):  # not a frame, or never completely written
            frame = content[start : start + _length_of(content[start:])]
            with pa.CompressedInputStream(pa.BufferReader(frame), "zstd") as stream:
                yield stream.read()
        start = content.find(_ZSTD, start + 4)


def _length_of(frame):
    """Return the length of a Zstandard frame, computed from its headers (RFC 8878)."""
    told = frame[4]
    is_single = told >> 5 & 1
    end = 6 - is_single + (0, 1, 2, 4)[told & 3] + (is_single, 2, 4, 8)[told >> 6]
    is_last = 0
    while not is_last:
        block = frame[end] | frame[end + 1] << 8 | frame[end + 2] << 16
        is_last = block & 1
        end += 3 + (1 if block >> 1 & 3 == 1 else block >> 3)
    return end + 4 * (told >> 2 & 1)
