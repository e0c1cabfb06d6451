"""Logs that count twice, because earlier versions imported a log again when it came with another domain."""

from typing import Final, NamedTuple

from data.errors import LakeDamaged
from data.hosts import normalized_host
from data.logs.format_names import HOSTLESS_FORMATS
from data.store.files import UNREADABLE
from data.store.lake import Lake

MAX_FILES: Final = 500
"""The visit files of an organization that are read to find out whether one of the two was erased."""

_LOGS: Final = """
SELECT organization, group_concat(domain, ' '), min(visits), min(log_format) FROM (
    SELECT organization, domain, sha256, visits, log_format FROM batches WHERE visits > 0 ORDER BY organization, domain
) GROUP BY organization, sha256 HAVING count(*) > 1 ORDER BY 1, 2
"""


class RepeatedLog(NamedTuple):
    """A log whose visits count once for each of several domains."""

    organization: str
    domains: list[str]  # as --domain gave them; "": none
    visits: int
    names_hosts: bool  # whether its visits may have other domains, those in its lines


def repeated_logs(lake: Lake) -> list[RepeatedLog]:
    """The logs that count more than once. One whose lines name no host does not, if no visits of a domain are left."""
    logs = [
        RepeatedLog(organization, domains.split(" "), visits, log_format not in HOSTLESS_FORMATS)
        for organization, domains, visits, log_format in lake.manifest.rows(_LOGS)
    ]
    left = {log.organization: _domains(lake, log.organization) for log in logs if not log.names_hosts}
    return [log for log in logs if log.names_hosts or sum(_has(left[log.organization], d) for d in log.domains) > 1]


def _has(names: set[str] | None, domain: str) -> bool:
    return names is None or bool(names & {domain, (domain and normalized_host(domain)) or domain})


def _domains(lake: Lake, organization: str) -> set[str] | None:
    """The domains of an organization's visits, "" for none; None when it has too many files, or one is damaged."""
    files = lake.manifest.live_files(organization)
    if len(files) > MAX_FILES:
        return None
    try:
        return {domain or "" for file in files for domain in lake.domains_in(file)}
    except (LakeDamaged, *UNREADABLE):
        return None
