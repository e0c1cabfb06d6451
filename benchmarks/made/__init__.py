"""Generates visits in bulk, drawn by DuckDB: as lakes in the same state as after an import, and as log files."""

from datetime import date
from typing import Final

ORGANIZATION: Final = "acme"
"""The organization that is queried."""
LAST_DAY: Final = date(2026, 10, 31)
DAYS: Final = 90
