"""Makes answers count requests for files or leave them out: previews the change, marks stored visits before these
requests are left out, and switches to a new epoch.
"""

from typing import NamedTuple

from data import Lake
from data.progress import Progress, ignore_progress
from data.signals import BITS
from data.store.status import count_with_bits
from data.tasks.compaction import COMMAND_THREADS, Compactor
from data.tasks.reclassification import ReasonChange, Reclassifier
from queries import RollupBuilder


class FilesPlan(NamedTuple):
    """The changes that setting files aside would make."""

    stored: int  # visits of the organization
    files: int  # requests for files
    unmarked: int  # visits in stored files that contain visits classified by older rules; reclassified first
    changed: int  # of these, visits that reclassification changes


def plan_files(lake: Lake, organization: str, progress: Progress = ignore_progress) -> FilesPlan:
    """Count an organization's requests for files, including those that older versions stored without a mark.

    Raises LakeDamaged for a damaged file.
    """
    found = Reclassifier(lake).run([organization], dry_run=True, progress=progress)
    stored = lake.manifest.files.live(organization)
    marked = count_with_bits(lake, stored, BITS["file"]) or 0
    new = found.reasons[ReasonChange("file", is_set=True)] - found.reasons[ReasonChange("file", is_set=False)]
    return FilesPlan(sum(file.visits for file in stored), marked + new, found.rewritten, found.changed)


def switch_files(lake: Lake, organization: str, *, aside: bool, progress: Progress = ignore_progress) -> None:
    """Set files aside or count them, and rebuild rollups. Raises LakeDamaged for a damaged file.

    Before files are set aside, stored visits are marked day by day and then judged again, since marking a day discards
    its judgement. The switch comes last: until then, answers do not change.
    """
    if aside:
        Reclassifier(lake).run([organization], progress=progress)
        judging = Compactor(lake, threads=COMMAND_THREADS, version=1)
        judging.run(progress=progress, organization=organization, are_past=True)
    lake.manifest.exclusions.switch_files(organization, aside=aside)
    RollupBuilder(lake).run()
