"""What every page shows of jobs: how many wait for a decision."""

from service.control_database import ControlDatabase


class JobReader:
    """Reads jobs from an open database. Its methods block; safe to use from several threads."""

    def __init__(self, database: ControlDatabase) -> None:
        self._database = database

    def undecided(self, organization: str) -> int:
        """The number of jobs that nobody has decided: new or reviewed."""
        rows = self._database.rows(
            "SELECT count(*) FROM jobs WHERE organization = ? AND status IN ('new', 'reviewed')", [organization]
        )
        return int(rows[0][0])
