"""Records the organizations for which answers ignore behaviour signals; by default, answers use them."""

from collections.abc import Iterable
from datetime import date

from data.manifest.database import Database
from data.manifest.files import LandedFile
from data.manifest.organizations import begin_epoch
from data.visits import check_organization


class Behaviour:
    """The switch for behaviour signals in the answers of each organization."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def is_used(self, organization: str) -> bool:
        """Return whether an organization's answers reclassify visits by their signals."""
        return not self._database.rows("SELECT 1 FROM behaviour_off WHERE organization = ?", [organization])

    def switch(self, organization: str, *, on: bool) -> None:
        """Choose whether an organization's answers reclassify visits by their signals. Raises BadInput for an invalid
        name.
        """
        check_organization(organization)
        with self._database.transaction() as db:
            if on:
                db.execute("DELETE FROM behaviour_off WHERE organization = ?", [organization])
            else:
                db.execute("INSERT OR IGNORE INTO behaviour_off VALUES (?)", [organization])
            begin_epoch(db, organization)


def unjudged_days(files: Iterable[LandedFile]) -> set[date]:
    """Return the days of files with visits that have not been judged. Today's files are never judged."""
    return {file.day for file in files if file.visits and not file.behaviour_version}
