"""Looks up the country of a client address in an optional database in MaxMind's format."""

import re
import struct
from datetime import UTC, datetime
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Final, NamedTuple

import maxminddb

from data.errors import BadInput
from data.rules.ip_lists import parse_address

_DAMAGE_ERRORS: Final = (
    ValueError, TypeError, LookupError, AttributeError, RecursionError, OverflowError, struct.error,
    maxminddb.InvalidDatabaseError,
)  # fmt: skip
"""Exceptions that the reader raises for a damaged file."""
_NETWORKS_TRIED: Final = 10_000
_NO_COUNTRY: Final = ("XX", "ZZ")
"""Codes that providers use for an unknown country."""


class CountryProvider(NamedTuple):
    """A provider of country databases."""

    name: str
    url: str  # the link that its licence requires wherever its countries are shown


_PROVIDERS: Final = {
    "dbip": CountryProvider("DB-IP", "https://db-ip.com"),
    "ipinfo": CountryProvider("IPinfo", "https://ipinfo.io"),
    "geolite2": CountryProvider("MaxMind", "https://www.maxmind.com"),
}
"""Providers by the prefix of their database types, in lower case."""


class CountryDatabase:
    """An opened database in MaxMind's format that maps IP addresses to countries."""

    def __init__(self, path: Path) -> None:
        """Open the database file at `path`. Raises BadInput if it is missing or not in MaxMind's format."""
        try:
            # the reader in C is faster, but its release 3.2.0 crashes the process on a damaged file
            self._reader = maxminddb.open_database(path, maxminddb.MODE_MMAP)
            metadata = self._reader.metadata()
            built_at = datetime.fromtimestamp(metadata.build_epoch, UTC)
        except (OSError, *_DAMAGE_ERRORS) as error:
            raise BadInput(f"{path} is not a valid country database in MaxMind's format: {error}") from error
        name = str(metadata.database_type)  # may not be a string in a damaged file
        self.description = f"{name} of {built_at:%Y-%m-%d}"
        """The database's type, as named by its provider, and its build date."""
        providers = (provider for prefix, provider in _PROVIDERS.items() if name.lower().startswith(prefix))
        self.provider = next(providers, None)
        """The database's provider; None if it is not in _PROVIDERS."""
        self.lookup = lru_cache(1 << 16)(self._lookup_uncached)

    def first_country(self) -> tuple[str, str] | None:
        """Return an address and its country; None if the first networks have no country, as in a database of operators,
        or if the file is damaged.
        """
        try:
            addresses = (str(network.network_address) for network, _ in islice(self._reader, _NETWORKS_TRIED))
            return next(((address, code) for address in addresses if (code := self.lookup(address))), None)
        except _DAMAGE_ERRORS:
            return None

    def _lookup_uncached(self, text: str) -> str | None:
        """Return the ISO 3166-1 alpha-2 code of an IP address's country; None if it is unknown."""
        address = parse_address(text)
        try:
            return _code_in(self._reader.get(address)) if address else None
        except _DAMAGE_ERRORS:
            return None  # a damaged database must not stop an import


def _code_in(record: object) -> str | None:
    """Return the country code in a record by MaxMind or DB-IP ({"country": {"iso_code": …}}) or by IPinfo."""
    if not isinstance(record, dict):
        return None
    country = record.get("country")
    code = country.get("iso_code") if isinstance(country, dict) else record.get("country_code", country)
    return code if isinstance(code, str) and re.fullmatch("[A-Z]{2}", code) and code not in _NO_COUNTRY else None
