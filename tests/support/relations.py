"""One file of relations for all lakes of the tests: to bind them is most of the time that an engine takes to start."""

from pathlib import Path
from typing import TYPE_CHECKING

import queries.definitions
import queries.own_sql

if TYPE_CHECKING:
    import pytest

of_a_lake = queries.definitions.relations_file

OF_OWN_SQL = """
from pathlib import Path
import queries.definitions
of_a_lake = queries.definitions.relations_file
queries.definitions.relations_file = lambda lake: Path({folder!r}) / of_a_lake(lake).name
"""


def share_file(patch: "pytest.MonkeyPatch", folder: Path) -> None:
    """Let all engines of this process, and of its processes for own SQL, copy the relations from a file in a folder."""
    patch.setattr(queries.definitions, "relations_file", lambda lake: folder / of_a_lake(lake).name)
    patch.setattr(queries.own_sql, "_PROGRAM", OF_OWN_SQL.format(folder=str(folder)) + queries.own_sql._PROGRAM)
