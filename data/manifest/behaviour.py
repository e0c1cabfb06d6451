"""Whether the answers of an organization move visits by the signals of their day, which is so unless switched off."""

from collections.abc import Iterable
from datetime import date

from data.manifest.database import Database
from data.manifest.files import LandedFile
from data.manifest.organizations import begin_epoch
from data.visits import check_organization


class Behaviour:
    """Which organizations use the signals."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def is_used(self, organization: str) -> bool:
        """Whether answers move visits by their signals."""
        return not self._database.rows("SELECT 1 FROM behaviour_off WHERE organization = ?", [organization])

    def switch(self, organization: str, *, on: bool) -> None:
        """Let answers move visits by their signals, or take them as they landed. Raises BadInput for a bad name."""
        check_organization(organization)
        with self._database.transaction() as db:
            if on:
                db.execute("DELETE FROM behaviour_off WHERE organization = ?", [organization])
            else:
                db.execute("INSERT OR IGNORE INTO behaviour_off VALUES (?)", [organization])
            begin_epoch(db, organization)


def unjudged_days(files: Iterable[LandedFile]) -> set[date]:
    """The days with visits that were not judged, of the live files of an organization: today is always one of them."""
    return {file.day for file in files if file.visits and not file.behaviour_version}
