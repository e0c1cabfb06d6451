"""Measures an operator's tasks on a whole lake: verify, back up, restore, erase, rebuild, reclassify."""

import shutil
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Final

import pyarrow as pa

from benchmarks.figures import Figure, figure
from benchmarks.importing import Ran, run
from benchmarks.made import DAYS, LAST_DAY, ORGANIZATION
from benchmarks.made.lakes import compact, land_organization
from benchmarks.servers import TRAFFIC
from benchmarks.worlds import WHOLE, Setting
from data import Lake
from queries import OwnSql
from service.demo.sample import Sample

_OLDER: Final = "older"
"""A version of the rules that no program has."""


def operations(setting: Setting) -> Iterator[Figure]:
    """Run each operation once on a lake of the largest size; yield its duration and its peak memory."""
    world = setting.worlds[-1]
    lake, backup = setting.scratch / "lake", setting.scratch / "backup"
    shutil.copytree(world.lake.root, lake)
    taken = {"verify": _traffic(lake, "verify"), "backup": _traffic(lake, "backup", str(backup))}
    shutil.rmtree(lake)
    copied, checked = run(["cp", "-a", str(backup), str(lake)]), _traffic(lake, "verify")
    taken["restore"] = Ran(copied.seconds + checked.seconds, 0, max(copied.megabytes, checked.megabytes), checked.lines)
    erased = ["erase", "--org", ORGANIZATION, "--visitor", str(_a_visitor(world.lake)), "--yes"]
    taken["erase one visitor"] = _traffic(lake, *erased)
    lose_manifest(lake)
    taken["rebuild a lost manifest"] = _traffic(lake, "rebuild", "--yes")
    older = _of_older_rules(setting, world.visits)
    shutil.rmtree(lake)
    shutil.copytree(older, lake)
    taken["reclassify all"] = _traffic(lake, "reclassify")
    for name, ran in taken.items():
        yield figure(name, "s", [ran.seconds], world.visits)
        yield figure(f"memory: {name}", "MB", [ran.megabytes], world.visits)


def lose_manifest(lake: Path) -> None:
    """Delete the manifest of a lake."""
    for name in ("manifest.sqlite", "manifest.sqlite-wal", "manifest.sqlite-shm"):
        (lake / name).unlink(missing_ok=True)


def _traffic(lake: Path, *arguments: str) -> Ran:
    return run([str(TRAFFIC), *arguments, "--lake", str(lake)])


def _a_visitor(lake: Lake) -> int:
    """Return a visitor, read from the kept lake, since `rebuild` refuses a lake that this process has open."""
    with closing(OwnSql(lake, ORGANIZATION, seconds=600)) as own_sql:
        found = own_sql.sql("SELECT visitor FROM visits_in_scope WHERE visitor IS NOT NULL LIMIT 1", WHOLE)
    visitor: int = found.rows[0][0]
    return visitor


def _of_older_rules(setting: Setting, visits: int) -> Path:
    """Return the folder of a kept lake with all visits marked as classified by older rules."""
    lake = Lake(setting.kept / f"lake-older-{visits}", create=True)
    land_organization(lake, ORGANIZATION, Sample(visits, LAST_DAY, DAYS), change=classified_by_older_rules)
    compact(lake)
    return lake.root


def classified_by_older_rules(visits: pa.Table) -> pa.Table:
    """Return the same visits, marked with a version of the rules that no program has."""
    at = visits.schema.get_field_index("rules_version")
    older = pa.repeat(_OLDER, len(visits)).cast(visits.schema.field(at).type)
    return visits.set_column(at, visits.schema.field(at), older)
