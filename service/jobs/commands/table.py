"""The commands on jobs, by name."""

from typing import Final

from service.jobs.commands import jobs

COMMANDS: Final = {
    "jobs": jobs.app,
}
