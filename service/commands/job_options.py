"""What commands about jobs share: their arguments, and how they open a lake."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from data import Lake
from service.commands.options import existing_organization

if TYPE_CHECKING:
    from queries import Warehouse
    from service.jobs.store import Jobs

JobArgument = Annotated[str, typer.Argument(metavar="ID", help="the job's id, as `traffic jobs list` shows it")]
NoteOption = Annotated[str | None, typer.Option(help="why, for the job's history")]


@contextmanager
def opened_jobs(lake: Path) -> Iterator["Jobs"]:
    """The jobs of a lake."""
    from service.control_database import ControlDatabase
    from service.jobs.store import Jobs

    opened = Lake(lake)
    with closing(opened.manifest), closing(ControlDatabase(opened)) as control:
        yield Jobs(control)


@contextmanager
def opened_warehouse(lake: Path, organization: str) -> Iterator[tuple["Jobs", "Warehouse", Lake]]:
    """The jobs of a lake, its visits, and the lake itself, in which the organization exists."""
    from queries import Warehouse
    from service.control_database import ControlDatabase
    from service.jobs.store import Jobs

    opened = Lake(lake)
    existing_organization(opened, organization)
    with closing(opened.manifest), closing(ControlDatabase(opened)) as control, closing(Warehouse(opened)) as warehouse:
        yield Jobs(control), warehouse, opened
