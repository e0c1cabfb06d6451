"""Opens the jobs of a lake for commands."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from service.core.commands.options import existing_organization

if TYPE_CHECKING:
    from service.jobs.detection import Detection
    from service.jobs.store import Jobs

JobArgument = Annotated[str, typer.Argument(metavar="ID", help="the job's id, as `traffic jobs list` shows it")]


@contextmanager
def opened_jobs(lake: Path, must_write: bool = False) -> Iterator["Jobs"]:
    """Yield the jobs of a lake, opened read-only unless `must_write`."""
    from service.core.control_database import opened_control
    from service.jobs.store import Jobs

    with opened_control(lake, must_write) as control:
        yield Jobs(control)


@contextmanager
def opened_detection(lake: Path, organization: str, must_write: bool = False) -> Iterator["Detection"]:
    """Yield an organization's Detection, read-only unless `must_write`. Raises BadInput for an unknown organization."""
    from queries import Warehouse
    from service.jobs.detection import Detection

    with opened_jobs(lake, must_write) as jobs:
        opened = jobs.database.lake
        existing_organization(opened, organization)
        with closing(Warehouse(opened)) as warehouse:
            yield Detection(warehouse, opened, jobs, organization)
