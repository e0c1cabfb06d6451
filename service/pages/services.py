"""What the pages get from the rest of the service. A server loads this at its start, and Jinja2 with the first page."""

from dataclasses import dataclass
from datetime import date

from data import Lake
from data.links.index import LinkIndex
from data.local_time import local_now
from data.rules.geoip import CountryDatabase
from queries import Warehouse
from service.api_keys import ApiKeys
from service.clock import Clock
from service.control_database import ControlDatabase
from service.hooks.registry import Hooks
from service.http.answers import Answers
from service.http.job_endpoints import LinkWrites
from service.http.lanes import Workers
from service.http.oidc import OidcClient
from service.http.rate_limit import SourceResolver
from service.jobs.store import Jobs
from service.settings import Settings


@dataclass(frozen=True)
class PageServices:
    """The parts of the service that pages use."""

    lake: Lake
    control: ControlDatabase
    answers: Answers
    targets: LinkIndex
    api_keys: ApiKeys
    sources: SourceResolver
    settings: Settings
    clock: Clock
    jobs: Jobs
    redirects: LinkWrites
    hooks: Hooks
    warehouse: Warehouse
    workers: Workers
    oidc: OidcClient | None = None  # None: there is no sign-in at an identity provider
    countries: CountryDatabase | None = None  # None: only those in logs are known

    def today(self, organization: str) -> date:
        """The current day of an organization."""
        return self.lake.manifest.organizations.today(organization, self.clock())

    def hours_begun(self, organization: str) -> int:
        """How many hours of that day have begun."""
        return local_now(self.lake.manifest.organizations.zone(organization), self.clock()).hour + 1
