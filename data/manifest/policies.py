"""Policies of the tasks that replace visit files: how the tasks differ, apart from the contents of the new files."""

from typing import Final, Literal, NamedTuple


class Policy(NamedTuple):
    """How a task replaces files."""

    waiting: Literal["imports and rewriters", "rewriters", "as its caller decides"]
    """The tasks that must wait while files are replaced: `rewrite` acquires the locks, unless its caller does.

    Live visits never wait. If another process has replaced one of the files in the meantime, Conflict is raised.
    """
    changes_answers: bool
    """True if visits change or disappear, which invalidates answers, and the rollups of the old files' months."""
    judges: bool = False
    """True if signals are assigned to visits, which invalidates answers, but not the rollups of other days."""
    erases: bool = False
    """True if visits are deleted: they must then also be deleted from copies, and the rest of an unfinished last line
    must not land."""


MERGING: Final = Policy("as its caller decides", changes_answers=False)
JUDGING: Final = Policy("as its caller decides", changes_answers=False, judges=True)
"""Merging and judging are parts of one run, which skips days that other tasks are rewriting."""
RECLASSIFYING: Final = Policy("imports and rewriters", changes_answers=True)
"""Imports wait: otherwise, an import could add visits afterwards that it has already classified by older rules."""
RETAINING: Final = Policy("rewriters", changes_answers=True, erases=True)
"""Imports need not wait: if they add visits to expired days during a run, the next run deletes them."""
ERASING: Final = Policy("imports and rewriters", changes_answers=True, erases=True)
"""Imports wait: otherwise, an import that has already read the visits to erase would land them after the receipt."""
