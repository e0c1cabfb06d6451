"""Reads jobs for those who look after a lake, without migrating or creating its database."""

import hashlib
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Final

from data import Lake

CONTROL: Final = "control.sqlite"


def job_counts(lake: Lake) -> dict[str, dict[str, int]]:
    """The number of jobs by organization and status; empty without a database."""
    counts: dict[str, dict[str, int]] = {}
    with _database(lake) as database:
        if database:
            rows = database.execute(
                "SELECT organization, status, count(*) FROM jobs GROUP BY organization, status "
                "ORDER BY organization, status"
            )
            for organization, status, count in rows:
                counts.setdefault(organization, {})[status] = count
    return counts


def damaged_implementations(lake: Lake) -> list[str]:
    """What is wrong with implementations of jobs: contents whose SHA-256 differs from what was written."""
    with _database(lake) as database:
        if database is None:
            return []
        rows = database.execute(
            "SELECT job_id, number, sha256, content FROM implementations WHERE content IS NOT NULL ORDER BY 1, 2"
        )
        return [
            f"implementation {number} of {job_id} is damaged: its SHA-256 differs"
            for job_id, number, sha256, content in rows
            if hashlib.sha256(content).hexdigest() != sha256
        ]


@contextmanager
def _database(lake: Lake) -> Iterator[sqlite3.Connection | None]:
    path = lake.root / CONTROL
    if not path.exists():
        yield None
        return
    with closing(lake.read_database(path)) as database:
        yield database
