"""The parts of the service used by pages."""

from dataclasses import dataclass

from data.links.index import LinkIndex
from service.access.page_services import PageServices
from service.hooks.registry import Hooks
from service.intake.link_api import LinkService
from service.jobs.service import JobService
from service.reports.answers import Answers


@dataclass(frozen=True, kw_only=True)
class PageParts:
    """The parts given to each room's pages."""

    services: PageServices
    answers: Answers
    targets: LinkIndex
    jobs: JobService
    hooks: Hooks
    links: LinkService
