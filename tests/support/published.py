"""The content of a published copy, read by the Delta protocol's rules without the product; and changes to its lake."""

import json
from datetime import UTC, datetime
from pathlib import Path

import pyarrow.parquet as pq

from data.buckets.target import TargetUnavailable
from data.tasks.compaction import Compactor
from data.tasks.erasure import Criteria, Eraser, delete_files
from tests.support.visits import visit

NOW = datetime(2026, 3, 10, 12, tzinfo=UTC)


def at(day, hour=12, minute=40, **columns):
    """Return a visit on a day in March."""
    return visit(visited_at=datetime(2026, 3, day, hour, minute), **columns)


def merge(lake):
    Compactor(lake, lambda: NOW).run()


def erase(lake, **criteria):
    """Erase visits of acme, and delete the files immediately."""
    erased = Eraser(lake).run("acme", Criteria(**criteria))
    delete_files(lake, erased.dead, erased.ended_at)


def out_of_reach(target, *_):
    """Raise TargetUnavailable, as a replacement for a target's put()."""
    raise TargetUnavailable(f"{target.name} cannot be used: it does not answer.")


def actions_of(table):
    """Yield the actions that a reader needs: from the last checkpoint, then from later versions."""
    log = table / "_delta_log"
    last = log / "_last_checkpoint"
    checkpoint = json.loads(last.read_bytes())["version"] if last.exists() else -1
    if last.exists():
        yield from pq.read_table(log / f"{checkpoint:020}.checkpoint.parquet").to_pylist()
    for path in sorted(log.glob("*.json")):
        if int(path.stem) > checkpoint:
            yield from map(json.loads, path.read_text().splitlines())


def files_of(table):
    """Return the files of a table, each with its day."""
    files = {}
    for action in actions_of(table):
        if action.get("add"):
            files[action["add"]["path"]] = dict(action["add"]["partitionValues"]).get("day")
        if action.get("remove"):
            del files[action["remove"]["path"]]
    return files


def rows_of(table):
    """Return the rows of a table."""
    return [row for path in files_of(table) for row in pq.ParquetFile(table / path).read().to_pylist()]


def versions_of(table):
    """Return the actions of each existing version, except those that name its writer."""
    versions = {}
    for path in sorted((table / "_delta_log").glob("*.json")):
        versions[int(path.stem)] = [
            action for action in map(json.loads, path.read_text().splitlines()) if "commitInfo" not in action
        ]
    return versions


def objects_in(folder: Path):
    """Return every object of a target, with its bytes."""
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
