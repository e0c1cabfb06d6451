"""Checks whether a log may be imported again."""

from collections.abc import Collection
from datetime import date, timedelta

from data.errors import BadInput
from data.store.lake import Lake


class ReimportCheck:
    """Checks whether a log may be imported again: its visits in the lake must have been erased.

    Visits that land after this check was created do not count, so several logs from one day can be imported.
    """

    def __init__(self, lake: Lake, organization: str) -> None:
        self.landed: set[int] = set()  # ids of the batches that have been imported again since
        self._lake = lake
        self._organization = organization
        self._files = {file.path for file in lake.manifest.files.live(organization)}

    def run(self, log: object, first_day: date, last_day: date, domains: Collection[str | None]) -> None:
        """Raise BadInput if there are visits on these days (inclusive) and domains; None means no domain."""
        found: set[str | None] = set()
        for file in self._lake.live_files(self._organization, first_day, last_day):
            if file.path in self._files:
                found |= set(domains) & self._lake.domains_in(file)
        if found:
            days = f"--since {first_day} --before {last_day + timedelta(days=1)}"
            names = sorted(f"--domain {domain}" if domain else "--no-domain" for domain in found)
            erase = " and ".join(f"`traffic erase --org {self._organization} {name} {days}`" for name in names)
            raise BadInput(
                f"{log}: the lake already has visits on the days and domains of this log; erase them first: {erase}."
            )
