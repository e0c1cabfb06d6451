"""What commands about jobs share: their arguments, and how they open a lake."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from data import Lake
from service.commands.options import existing_organization

if TYPE_CHECKING:
    from service.jobs.detection import Detection
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
def opened_detection(lake: Path, organization: str) -> Iterator["Detection"]:
    """The detectors of an organization, which exists in the lake, with its jobs and its visits."""
    from queries import Warehouse
    from service.control_database import ControlDatabase
    from service.jobs.detection import Detection
    from service.jobs.store import Jobs

    opened = Lake(lake)
    existing_organization(opened, organization)
    with closing(opened.manifest), closing(ControlDatabase(opened)) as control, closing(Warehouse(opened)) as warehouse:
        yield Detection(warehouse, opened, Jobs(control), organization)
