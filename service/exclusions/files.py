"""Sets files aside, or counts them: says first what changes, marks history, then switches in one epoch."""

from typing import NamedTuple

from data import Lake
from data.progress import Progress, ignore_progress
from data.signals import BITS
from data.store.status import count_with_bits
from data.tasks.compaction import COMMAND_THREADS, Compactor
from data.tasks.reclassification import ReasonChange, Reclassifier
from queries import RollupBuilder


class FilesPlan(NamedTuple):
    """What setting files aside would change."""

    stored: int  # visits of the organization
    files: int  # of which are files
    unmarked: int  # visits of older rules, which are classified again first
    changed: int  # of which get another class


def plan_files(lake: Lake, organization: str, progress: Progress = ignore_progress) -> FilesPlan:
    """Count the files of an organization, also those that older versions stored without a mark.

    Raises LakeDamaged for a damaged file.
    """
    found = Reclassifier(lake).run([organization], dry_run=True, progress=progress)
    stored = lake.manifest.files.live(organization)
    marked = count_with_bits(lake, stored, BITS["file"]) or 0
    new = found.reasons[ReasonChange("file", is_set=True)] - found.reasons[ReasonChange("file", is_set=False)]
    return FilesPlan(sum(file.visits for file in stored), marked + new, found.rewritten, found.changed)


def switch_files(lake: Lake, organization: str, *, aside: bool, progress: Progress = ignore_progress) -> None:
    """Set files aside or count them, and count closed days ahead. Raises LakeDamaged for a damaged file.

    History is marked first, day by day, and judged again, since marking a day takes back what it was judged. The switch
    is last: meanwhile, answers are those of before.
    """
    if aside:
        Reclassifier(lake).run([organization], progress=progress)
        judging = Compactor(lake, threads=COMMAND_THREADS, version=1)
        judging.run(progress=progress, organization=organization, are_past=True)
    lake.manifest.exclusions.switch_files(organization, aside=aside)
    RollupBuilder(lake).run()
