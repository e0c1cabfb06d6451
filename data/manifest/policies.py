"""How tasks replace files of visits: everything that differs between them except the contents of the new files."""

from typing import Final, Literal, NamedTuple


class Policy(NamedTuple):
    """How a task replaces files."""

    waiting: Literal["imports and rewriters", "rewriters", "those of its caller"]
    """Who waits meanwhile, for a lock that `rewrite` takes or its caller holds.

    Live visits never wait. If another process has replaced one of the files meanwhile, Conflict is raised.
    """
    changes_answers: bool
    """Whether visits change or disappear: answers and rollups of the old files are then out of date."""
    judges: bool = False
    """Whether visits get signals: answers are then out of date, but rollups of other days are not."""
    erases: bool = False
    """Whether visits are deleted: copies have to follow, and the rest of an unfinished last line must not land."""


MERGING: Final = Policy("those of its caller", changes_answers=False)
JUDGING: Final = Policy("those of its caller", changes_answers=False, judges=True)
"""Both are parts of one run, which skips the days that others rewrite."""
RECLASSIFYING: Final = Policy("imports and rewriters", changes_answers=True)
"""An import that read its lines by older rules would add them afterwards."""
RETAINING: Final = Policy("rewriters", changes_answers=True, erases=True)
"""Visits that an import adds to such days meanwhile are deleted by the next run."""
ERASING: Final = Policy("imports and rewriters", changes_answers=True, erases=True)
"""An import that read erased visits would land them after the receipt."""
