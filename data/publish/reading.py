"""Finds the published objects with visits and links for a reader of the target, and the files not yet published."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from data.buckets.target import open_target
from data.manifest.files import LandedFile
from data.publish.delta import DeltaLog, ForeignLog, TableState
from data.publish.tables import by_name_in_lake, links_path, merged_from, replaced_paths, tables, visits_path
from data.store.lake import Lake


class PublishedObjects(NamedTuple):
    """The objects and files with the visits and links of one organization."""

    visits: list[str]  # keys of objects at the target
    links: list[str]
    unpublished_visits: list[LandedFile]  # lake files without a published object
    unpublished_links: list[str]  # paths of link files in the lake without a published object
    epoch: int | None
    """The organization's epoch if replaced objects are read in place of the files merged from them, which is valid only
    in that epoch; otherwise None."""


class PublishedLake:
    """Finds the published files of a lake at a target. Safe to use from several threads."""

    def __init__(self, lake: Lake, name: str) -> None:
        """Prepare to read from `name`, a target normalized by parse_target; do not connect yet. Raises BadInput."""
        self._lake = lake
        self.name = name
        self._target = open_target(name)
        self._states: dict[str, TableState] = {}
        """The newest version read of each table, by folder. Objects of older versions are unchanged or gone."""

    def find(self, organization: str, visits: Sequence[LandedFile], links: Sequence[str]) -> PublishedObjects:
        """Find the objects of the live files that the manifest listed for an organization before this call.

        `links` are paths in the lake. Raises TargetUnavailable, ForeignLog, or LakeDamaged if a file is gone.
        """
        visit_table, link_table = tables(self._target, organization, self._lake.manifest.copies.existing_mark())
        recorded = next((copy.version for copy in self._lake.manifest.copies.find(self.name, organization)), -1)
        state = self._newest(visit_table, lambda state: state.version >= recorded)
        epoch = self._lake.manifest.organizations.epoch(organization)
        is_exact = (state.version, state.epoch) == (recorded, epoch)
        named = {file: visits_path(file.day, file.path, file.sha256) for file in visits}
        found = [path for path in named.values() if path in state.files]
        missing = [file for file, path in named.items() if path not in state.files]
        merged = set[LandedFile]()
        if missing and is_exact and (dead := by_name_in_lake(state.files, replaced_paths(self._lake, organization))):
            for file in missing:
                if replaced := merged_from(self._lake.root / file.path, file.visits, dead):
                    merged.add(file)
                    found += replaced
        wanted = {links_path(path.rpartition("/")[2]): path for path in links}
        known = self._newest(link_table, lambda state: wanted.keys() <= state.files.keys()).files
        return PublishedObjects(
            [f"{visit_table.folder}/{path}" for path in found],
            [f"{link_table.folder}/{path}" for path in wanted if path in known],
            [file for file in missing if file not in merged],
            [path for name, path in wanted.items() if name not in known],
            epoch if merged else None,
        )

    def forget(self) -> None:
        """Forget all logs; they are read again when needed."""
        self._states.clear()

    def _newest(self, table: DeltaLog, is_enough: Callable[[TableState], bool]) -> TableState:
        """Return the version of a table that was read last if it `is_enough`; otherwise, read and return the newest."""
        state = self._states.get(table.folder, TableState())
        if not is_enough(state) and state.version >= 0:
            state = table.read_on(state)
        if not is_enough(state):
            try:
                state = table.read()
            except ForeignLog:  # perhaps a program wrote a checkpoint and deleted earlier versions meanwhile
                state = table.read()
        self._states[table.folder] = state
        return state
