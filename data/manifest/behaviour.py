"""Whether the answers of an organization move visits by the signals of their day, which is so unless switched off."""

from collections.abc import Iterable
from datetime import date

from data.manifest.files import LandedFile
from data.manifest.manifest import Manifest
from data.manifest.organizations import begin_epoch
from data.visits import check_organization


def uses_behaviour(manifest: Manifest, organization: str) -> bool:
    """Whether answers move visits by their signals."""
    return not manifest.rows("SELECT 1 FROM behaviour_off WHERE organization = ?", [organization])


def switch_behaviour(manifest: Manifest, organization: str, *, on: bool) -> None:
    """Let answers move visits by their signals, or take them as they landed. Raises BadInput for an invalid name."""
    check_organization(organization)
    with manifest.transaction() as db:
        if on:
            db.execute("DELETE FROM behaviour_off WHERE organization = ?", [organization])
        else:
            db.execute("INSERT OR IGNORE INTO behaviour_off VALUES (?)", [organization])
        begin_epoch(db, organization)


def unjudged_days(files: Iterable[LandedFile]) -> set[date]:
    """The days with visits that were not judged, of the live files of an organization: today is always one of them."""
    return {file.day for file in files if file.visits and not file.behaviour_version}
