"""Made-up visits in bulk, drawn by DuckDB: as lakes, built as an import would have left them, and as log files."""

from datetime import date
from typing import Final

ORGANIZATION: Final = "acme"
"""The organization that is asked about."""
LAST_DAY: Final = date(2026, 10, 31)
DAYS: Final = 90
