"""The parts of the service that every page uses, loaded at a server's start; Jinja2 is loaded with the first page."""

from dataclasses import dataclass
from datetime import date

from data import Lake
from data.local_time import local_now
from data.rules.geoip import CountryDatabase
from service.access.api_keys import ApiKeys
from service.access.oidc import OidcClient
from service.core.clock import Clock
from service.core.control_database import ControlDatabase
from service.core.http.pools import Workers
from service.core.http.rate_limit import SourceResolver
from service.core.settings import Settings


@dataclass(frozen=True, kw_only=True)
class PageServices:
    """The parts of the service that all pages use."""

    lake: Lake
    control: ControlDatabase
    api_keys: ApiKeys
    sources: SourceResolver
    settings: Settings
    clock: Clock
    workers: Workers
    oidc: OidcClient | None = None  # None: no identity provider for signing in
    countries: CountryDatabase | None = None  # None: only countries in logs are known

    def today(self, organization: str) -> date:
        """Return the current day in an organization's time zone."""
        return self.lake.manifest.organizations.today(organization, self.clock())

    def hours_begun(self, organization: str) -> int:
        """Return how many hours of the organization's current day have begun."""
        return local_now(self.lake.manifest.organizations.zone(organization), self.clock()).hour + 1
