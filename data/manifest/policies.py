"""How tasks replace files of visits: what differs between them, beside what they write into the new files."""

from typing import Final, Literal, NamedTuple


class Policy(NamedTuple):
    """How a task replaces files."""

    locks: Literal["others", "rewriters", "none"]
    """Who waits meanwhile: all that land or rewrite visits, only others that rewrite them, or the task sees to it."""
    changes_answers: bool
    """Whether answers and rollups that were computed from the old files are out of date."""
    judges: bool = False
    """Whether visits get signals: answers are out of date then, but rollups of other days are not."""
    erases: bool = False
    """Whether visits are gone: copies have to follow, and the rest of an unfinished last line must not land."""


MERGING: Final = Policy("none", changes_answers=False)
JUDGING: Final = Policy("none", changes_answers=False, judges=True)
RECLASSIFYING: Final = Policy("others", changes_answers=True)
RETAINING: Final = Policy("rewriters", changes_answers=True, erases=True)
ERASING: Final = Policy("others", changes_answers=True, erases=True)
