"""How tasks replace files of visits: what differs between them, beside what they write into the new files."""

from typing import Final, Literal, NamedTuple


class Policy(NamedTuple):
    """How a task replaces files."""

    waiting: Literal["imports and rewriters", "rewriters", "those of its caller"]
    """What waits meanwhile, by a lock that `rewrite` takes, or that its caller holds.

    Live visits always become files, and whatever was replaced meanwhile by others raises Conflict.
    """
    changes_answers: bool
    """Whether visits have other values or are gone: answers and rollups of the old files are out of date."""
    judges: bool = False
    """Whether visits get signals: answers are out of date then, but rollups of other days are not."""
    erases: bool = False
    """Whether visits are gone: copies have to follow, and the rest of an unfinished last line must not land."""


MERGING: Final = Policy("those of its caller", changes_answers=False)
JUDGING: Final = Policy("those of its caller", changes_answers=False, judges=True)
"""Both are parts of one run, which skips the days that others rewrite."""
RECLASSIFYING: Final = Policy("imports and rewriters", changes_answers=True)
"""An import that read its lines by older rules would add them afterwards."""
RETAINING: Final = Policy("rewriters", changes_answers=True, erases=True)
"""What an import adds to such days meanwhile goes in the next run."""
ERASING: Final = Policy("imports and rewriters", changes_answers=True, erases=True)
"""An import that read erased visits would land them after the receipt."""
