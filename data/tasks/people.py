"""Counts visits by people without binding the relations that answers use, since binding takes longer than a small
import.
"""

from datetime import date
from typing import NamedTuple

from data.signals import CONVICTING
from data.sql import read_sql
from data.store.engines import rewriting_engine
from data.store.lake import Lake


class People(NamedTuple):
    """The number of visits that answers count, and how many of these are by people."""

    visits: int
    people: int


def count_people(lake: Lake, organization: str, first_day: date, last_day: date) -> People:
    """Count an organization's visits and its visits by people, in the files from `first_day` to `last_day` (inclusive).

    Raises LakeDamaged for a damaged file.
    """
    manifest = lake.manifest
    files = [lake.verified_path(file) for file in manifest.files.live(organization, first_day, last_day)]
    asked = {
        "files": [lake.seed_visits, *files],
        "aside": manifest.exclusions.bits_aside(organization),
        "convicting": CONVICTING if manifest.behaviour.is_used(organization) else 0,
    }
    with rewriting_engine(lake.staging) as engine:
        ((visits, people),) = engine.execute(read_sql("data.tasks", "sql/count_people"), asked).fetchall()
    return People(visits, people)
