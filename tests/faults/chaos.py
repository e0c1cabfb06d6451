"""Programs that work on a lake at the same time, each in a process that may be killed at any moment.

All batches have the same size. An importer repeats the import of a log until it is acknowledged, as the log's owner
would; a sender that gets no response sends something else, since it cannot know whether the first batch was stored.
"""

import os
import time
import uuid
from collections import Counter
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

from data import Lake
from data.errors import Conflict, TrafficError
from data.ingest.drop_follower import DropFollower
from data.ingest.dropped import open_drop
from data.ingest.importer import Importer, Options
from data.ingest.live import LiveIngest, Submission
from data.links.links import LinkEdit, edit_links, new_link
from data.publish.publisher import LakePublisher, follow_erasures
from data.store.link_files import fold_links
from data.store.pending import flush_all
from data.tasks.compaction import Compactor
from data.tasks.erasure import Criteria, Eraser
from data.tasks.reclassification import Reclassifier
from data.tasks.retention import apply_retention
from queries import ENTRIES, RollupBuilder, Scope, Warehouse
from tests.faults.lakes import CHROME, GPTBOT, line
from tests.support.sql import rows

BATCH = 10
KEPT_DAYS = 30
ERASED = "canary"
"""The short code of the link whose visits are erased."""
CODES = 5
"""Number of short codes for each link setter."""
TARGET = "https://shop.example/"
OLD = "old"
"""The prefix of the names of batches with visits that are too old to be kept."""


def days_ago(days):
    return datetime.now(UTC) - timedelta(days)


def acknowledge(name):
    with Path("acknowledged").open("ab", buffering=0) as file:
        file.write(f"{name}\n".encode())


def acknowledged(folder):
    return (folder / "acknowledged").read_text().split()


def import_logs(name):
    """Write logs and import each, continuing where a killed predecessor stopped."""
    Path("acknowledged").touch()
    lake = Lake(Path("lake"))
    importer = Importer(lake)
    number = sum(told.startswith((f"{name}-", f"{OLD}{name}-")) for told in acknowledged(Path()))
    while True:
        batch = f"{OLD if number % 4 == 0 else ''}{name}-{number}"
        path = Path(f"{batch}.log")
        if not path.exists():
            written = Path(f"{batch}.log.part")
            written.write_text(log_of(batch))
            written.rename(path)
        importer.run(path, Options("acme"))
        acknowledge(batch)
        path.unlink()
        number += 1


def log_of(batch):
    newest = 60 if batch.startswith(OLD) else 1
    lines = [
        line(f"/{batch}/{number}", agent=(CHROME, GPTBOT)[number % 2], when=days_ago(newest + number % 2))
        for number in range(BATCH)
    ]
    return "".join(lines)


def send():
    """Send batches to an intake."""
    lake = Lake(Path("lake"))
    intake = LiveIngest(lake)
    while True:
        batch = uuid.uuid4().hex
        rows = [
            f'{{"path": "/{batch}/{number}", "time": {days_ago(number % 2).timestamp()}}}'.encode()
            for number in range(BATCH)
        ]
        intake.land([Submission("acme", rows)])
        acknowledge(batch)


def maintain():
    """Move visits into files, merge files, count closed days, and delete obsolete files."""
    lake = Lake(Path("lake"))
    compactor, rollups = Compactor(lake), RollupBuilder(lake)
    while True:
        flush_all(lake)
        compactor.run(wait=False)
        rollups.run(wait=False)
        compactor.sweep()
        time.sleep(0.05)


def reclassify():
    """Change the version of the rules and reclassify all visits, again and again."""
    lake = Lake(Path("lake"))
    reclassifier = Reclassifier(lake)
    while True:
        reclassifier._classifier.rules_version = uuid.uuid4().hex[:8]
        reclassifier.run(["acme"])
        time.sleep(0.5)


def forget():
    """Expire old days."""
    lake = Lake(Path("lake"))
    while True:
        apply_retention(lake, KEPT_DAYS, datetime.now(UTC))
        time.sleep(0.2)


def set_links(name):
    """Set links one after another, continuing where a killed predecessor stopped; fold them from time to time."""
    told = Path(f"{name}.set")
    told.touch()
    lake = Lake(Path("lake"))
    number = len(told.read_text().split())
    while True:
        code = f"{name}-{number % CODES}"
        edit_links(lake, "acme", [LinkEdit(code, "", new_link(code, "", f"{TARGET}{number}", datetime.now(UTC)))])
        with told.open("ab", buffering=0) as file:
            file.write(f"{number}\n".encode())
        number += 1
        if number % 7 == 0:
            fold_links(lake, "acme")


def links_set(folder, name):
    """Return the possible targets of each of a setter's codes: only the first unacknowledged edit is uncertain."""
    count = len((folder / f"{name}.set").read_text().split())
    last = {f"{name}-{number % CODES}": {f"{TARGET}{number}"} for number in range(count)}
    last.setdefault(f"{name}-{count % CODES}", {None}).add(f"{TARGET}{count}")
    return last


def read():
    """Count the visits in each batch, as the server would; print every result, with any incomplete batches."""
    lake = Lake(Path("lake"))
    warehouse = Warehouse(lake)
    scope = Scope("acme", days_ago(100).date(), days_ago(-1).date())
    while True:
        snapshot = warehouse.snapshot(scope)
        sql = "SELECT split_part(path, '/', 2), count(*) FROM visits_in_scope GROUP BY 1"
        found = Counter(dict(rows(warehouse, sql, snapshot)))
        counted = warehouse.answer(ENTRIES["traffic-overview"], snapshot)["total_visits"]
        broken = {name: visits for name, visits in found.items() if visits != BATCH}
        if counted != found.total():
            broken["counted"] = counted
        os.write(1, f"read {len(found)} {broken or 'whole'}\n".encode())


def publish(place):
    """Publish again and again, whatever the store answers."""
    lake = Lake(Path("lake"))
    publisher = LakePublisher(lake, place)
    while True:
        with suppress(TrafficError):
            publisher.publish("acme")
        time.sleep(0.05)


def follow_bucket(place):
    """Follow a bucket."""
    lake = Lake(Path("lake"))
    options = Options("acme", "go.example")
    follower = DropFollower(lake, Importer(lake), open_drop(place), options, notify=lambda _: None)
    while True:
        follower.tick()
        time.sleep(0.1)


def erase():
    """Erase a link's visits from the lake and its copies again and again, since new ones keep landing."""
    lake = Lake(Path("lake"))
    while True:
        with suppress(Conflict):
            Eraser(lake).run("acme", Criteria(short_code=ERASED))
        follow_erasures(lake)
        time.sleep(0.3)
