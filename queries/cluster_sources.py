"""The sources of the visits and links that a cluster reads: files, and rows sent with the query."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq

from data import Lake, LakeDamaged
from data.buckets.object_errors import TargetUnavailable
from data.disk.files import READ_ERRORS
from data.publish.delta import ForeignLog
from data.publish.reading import PublishedLake, PublishedObjects
from data.store.layout import LINKS
from data.visits import VISITS
from queries.cluster_options import ClusterUnavailable
from queries.locked_engine import FilesGone
from queries.snapshot import ClusterSnapshot

MAX_SENT_ROWS: Final = 100_000
MAX_SENT_BYTES: Final = 64 << 20
"""Maximum size in bytes of the visits sent, and of the links sent: servers accept messages of up to 128 MiB."""


class ClusterSources(NamedTuple):
    """The visits and links that a cluster session reads: files, and rows sent to the cluster."""

    visits: list[str]  # files, by their paths on the workers
    links: list[str]
    sent_visits: pa.Table  # rows that are in none of these files
    sent_links: pa.Table
    epoch: int | None = None
    """If set, some files may have been replaced; their rows are valid only while the organization has this epoch."""


class SharedFolder:
    """The lake folder, mounted on every worker."""

    def __init__(self, folder: str) -> None:
        self._folder = folder

    def sources(self, snapshot: ClusterSnapshot) -> ClusterSources:
        """Return the sources for a cluster snapshot."""
        return ClusterSources(
            [f"{self._folder}/{file.path}" for file in snapshot.landed],
            [f"{self._folder}/{path}" for path in snapshot.landed_links],
            VISITS.empty_table(),
            LINKS.empty_table(),
        )

    def forget(self) -> None:
        """Do nothing, since this class does not remember which files exist."""


class PublishedCopy:
    """The target where the lake is published. A few unpublished rows are sent with the query."""

    def __init__(self, lake: Lake, name: str) -> None:
        """Prepare to read the target `name`. Raises BadInput if that needs the extra `publish` and it is missing."""
        self._lake = lake
        self._published = PublishedLake(lake, name)

    def sources(self, snapshot: ClusterSnapshot) -> ClusterSources:
        """Return the sources for a cluster snapshot. Raises FilesGone or ClusterUnavailable."""
        files, organization = snapshot.landed, snapshot.scope.organization
        try:
            found = self._published.find(organization, files, snapshot.landed_links)
            sent_visits, sent_links = self._rows_to_send(found, organization)
        except (LakeDamaged, *READ_ERRORS) as error:  # a snapshot's files may be replaced and deleted
            raise FilesGone(str(error)) from error
        except (TargetUnavailable, ForeignLog) as error:
            raise ClusterUnavailable(str(error)) from error
        return ClusterSources(
            [f"{self._published.name}/{key}" for key in found.visits],
            [f"{self._published.name}/{key}" for key in found.links],
            sent_visits,
            sent_links,
            found.epoch,
        )

    def forget(self) -> None:
        """Forget which objects exist, because a file was missing."""
        self._published.forget()

    def _rows_to_send(self, found: PublishedObjects, organization: str) -> tuple[pa.Table, pa.Table]:
        """Return the visits and links that are not published yet. Raises ClusterUnavailable if there are too many to
        send.
        """
        root = self._lake.root
        counts = {
            "visits": sum(file.visits for file in found.unpublished_visits),
            "links": sum(pq.read_metadata(root / path).num_rows for path in found.unpublished_links),
        }
        for what, count in counts.items():
            if count > MAX_SENT_ROWS:
                raise ClusterUnavailable(self._refusal(f"{count:,} {what}", organization))
        visits = _read([root / file.path for file in found.unpublished_visits], VISITS)
        links = _read([root / path for path in found.unpublished_links], LINKS)
        for what, table in (("visits", visits), ("links", links)):
            if table.nbytes > MAX_SENT_BYTES:
                raise ClusterUnavailable(self._refusal(f"{table.nbytes >> 20:,} MiB of {what}", organization))
        return visits, links

    def _refusal(self, what: str, organization: str) -> str:
        return (
            f"{what} of {organization} are not published at {self._published.name} yet, and at most {MAX_SENT_ROWS:,} "
            f"rows or {MAX_SENT_BYTES >> 20} MiB of them are sent with a query; publish them with `traffic publish` or "
            "a server with TRAFFIC_PUBLISH."
        )


ClusterLake: TypeAlias = SharedFolder | PublishedCopy
"""The place where a cluster's workers find a lake."""


def _read(paths: Sequence[Path], schema: pa.Schema) -> pa.Table:
    """Return the rows of lake files, including the columns that older files lack."""
    tables = [pq.read_table(path, schema=schema, partitioning=None) for path in paths]
    return pa.concat_tables(tables) if tables else schema.empty_table()
