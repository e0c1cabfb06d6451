"""Looks up the country of a client address in an optional database in MaxMind's format."""

import re
import struct
from functools import lru_cache
from pathlib import Path
from typing import Final

import maxminddb

from data.errors import BadInput
from data.rules.ip_lists import parse_address

_DAMAGE_ERRORS: Final = (
    ValueError, TypeError, LookupError, AttributeError, RecursionError, OverflowError, struct.error,
    maxminddb.InvalidDatabaseError,
)  # fmt: skip
"""The exceptions that the reader raises for a damaged file."""


class CountryDatabase:
    """An open database of MaxMind, DB-IP or IPinfo that gives the country of an IP address."""

    def __init__(self, path: Path) -> None:
        """Open the database file at `path`. Raises BadInput when it is missing or not in MaxMind's format."""
        try:
            # the reader in C is faster, but its release 3.2.0 crashes the process on a damaged file
            self._reader = maxminddb.open_database(path, maxminddb.MODE_MMAP)
        except (OSError, *_DAMAGE_ERRORS) as error:
            raise BadInput(f"{path} is not a valid country database in MaxMind's format: {error}") from error
        self.lookup = lru_cache(1 << 16)(self._lookup_uncached)

    def _lookup_uncached(self, text: str) -> str | None:
        """The ISO 3166-1 alpha-2 code of an IP address's country; None when it is unknown."""
        address = parse_address(text)
        try:
            return _code_in(self._reader.get(address)) if address else None
        except _DAMAGE_ERRORS:
            return None  # a damaged database must not stop an import


def _code_in(record: object) -> str | None:
    """The country code in a record of MaxMind or DB-IP ({"country": {"iso_code": …}}) or of IPinfo."""
    if not isinstance(record, dict):
        return None
    country = record.get("country")
    code = country.get("iso_code") if isinstance(country, dict) else record.get("country_code", country)
    return code if isinstance(code, str) and re.fullmatch("[A-Z]{2}", code) and code != "XX" else None
