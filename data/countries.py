"""From a client's address to its country, by a database in MaxMind's format that the operator may have."""

from functools import lru_cache
from pathlib import Path

import maxminddb

from data.errors import BadInput


class Countries:
    """An open database of addresses, of MaxMind, DB-IP or IPinfo."""

    def __init__(self, path: Path) -> None:
        """Open a database. Raises BadInput when it is none."""
        try:
            self._reader = maxminddb.open_database(path)
        except (OSError, ValueError, maxminddb.InvalidDatabaseError) as error:
            raise BadInput(f"{path} is no database of countries in MaxMind's format: {error}") from error
        self.of = lru_cache(1 << 16)(self._of_uncached)

    def _of_uncached(self, address: str) -> str | None:
        """The ISO 3166-1 alpha-2 code of an address's country; None when it is not known."""
        try:
            record = self._reader.get(address)
        except (ValueError, maxminddb.InvalidDatabaseError):
            return None  # no address, or a damaged record: never a reason to fail
        return _code_in(record)


def _code_in(record: object) -> str | None:
    """The code in a record: {"country": {"iso_code": …}} of MaxMind and DB-IP, {"country": …} of IPinfo."""
    if not isinstance(record, dict):
        return None
    country = record.get("country", record.get("country_code"))
    code = country.get("iso_code") if isinstance(country, dict) else country
    return code if isinstance(code, str) and len(code) == 2 and code.isascii() and code.isupper() else None
