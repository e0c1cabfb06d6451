"""The jobs of organizations, read from control.sqlite. Other programs write them."""

from datetime import datetime
from typing import Any, Final

from data import Lake
from service.control_database import ControlDatabase

_FIELDS: Final = ("id", "organization", "type", "status", "title", "created_at", "updated_at")


class Jobs:
    """Reads the jobs of one lake."""

    def __init__(self, lake: Lake) -> None:
        self._database = ControlDatabase(lake)

    def of(self, organization: str) -> list[dict[str, Any]]:
        """Every job of an organization as a row of the endpoint /jobs, newest first."""
        rows = self._database.rows(
            "SELECT id, organization, type, status, title, created_at, updated_at FROM jobs "
            "WHERE organization = ? ORDER BY created_at DESC, id DESC",
            [organization],
        )
        return [dict(zip(_FIELDS, (*row[:5], *map(datetime.fromisoformat, row[5:])), strict=True)) for row in rows]

    def close(self) -> None:
        """Close the database."""
        self._database.close()
