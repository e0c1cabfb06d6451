"""The files that the manifest knows: what it records of each, and what is to be replaced."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Final

from data.visits import SCHEMA_VERSION

Publisher = Callable[[], "list[LandedFile]"]
"""Moves staged files to their final paths and returns them; called inside the transaction that makes them live."""

READERS_GRACE: Final = timedelta(hours=24)
"""How long a dead file stays on disk for readers that may still use it: queries, or an analyst's shell."""


@dataclass(frozen=True)
class LandedFile:
    """One registered Parquet file of one organization and day."""

    organization: str
    day: date
    path: str
    visits: int
    size: int
    sha256: str
    changed_ns: int  # st_ctime_ns, which unlike st_mtime_ns cannot be set back after a change
    inode: int
    checked_at: datetime  # when its bytes were last verified
    unfinished_of: int | None = None  # the batch whose unfinished last line (without a newline) it contains
    schema_version: int = SCHEMA_VERSION  # of its visits
    behaviour_version: int = 0  # of what its visits were judged by, with all visits of its day; 0: they were not


@dataclass(frozen=True)
class Replacement:
    """Live files of one organization that are to be replaced."""

    files: Sequence[LandedFile]
    deletable_at: datetime
    changes_answers: bool
    """Whether answers computed from the old files are out of date, and whatever else was computed from them."""
    judges: bool = False
    """Whether visits get signals: answers are out of date then, but rollups of other days are not."""
    erased_at: datetime | None = None
    """When visits were erased that the new files lack, so that copies have to follow; None: none were."""
