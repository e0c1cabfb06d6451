"""Jobs about sources of visits that have fallen silent: a followed log, folder or bucket, or reported visits.

No detector finds them, since detectors examine whole days. Each silence is a separate job, which is resolved when
visits arrive again; `traffic_silent_sources` of /metrics counts the open ones.
"""

import hashlib
from dataclasses import replace
from datetime import datetime
from typing import Final

import orjson

from data import Lake
from data.hosts import normalized_host
from data.manifest.arrivals import Silence
from service.core.clock import to_text
from service.jobs.findings import blank_job
from service.jobs.records import SYSTEM, Change, Job
from service.jobs.states import next_status
from service.jobs.store import Jobs
from service.jobs.tables import change_job, create_job, job_of_fingerprint, open_jobs_of_type

SILENT_SOURCE: Final = "silent_source"
"""The type of jobs about silent sources."""
_OPEN: Final = """
SELECT organization, count(*) FROM jobs
WHERE type = ? AND status IN ('new', 'reviewed', 'approved', 'sent') GROUP BY organization
"""


def update_silences(lake: Lake, jobs: Jobs, now: datetime) -> None:
    """Create a job for each source that has fallen silent, and resolve the jobs of sources with new visits."""
    known = open_silences(jobs)
    for organization in lake.manifest.arrivals.organizations():
        zone = lake.manifest.organizations.zone(organization)
        silent = lake.manifest.arrivals.silences(organization, zone, now)
        found = {job.fingerprint: job for job in (_job(organization, one, now) for one in silent)}
        if not found and organization not in known:
            continue
        with jobs.database.transaction() as connection:
            for job in open_jobs_of_type(connection, organization, SILENT_SOURCE):
                status = next_status("arrive", job.status)
                if job.fingerprint not in found and status:
                    change_job(connection, job, replace(job, status=status), Change("arrive", SYSTEM, now))
            for fingerprint, job in found.items():
                if not job_of_fingerprint(connection, organization, fingerprint or ""):
                    create_job(connection, job, Change("create", SYSTEM, now))


def open_silences(jobs: Jobs) -> dict[str, int]:
    """Return the number of open jobs about silent sources, by organization."""
    return dict(jobs.database.rows(_OPEN, [SILENT_SOURCE]))


def _job(organization: str, silence: Silence, now: datetime) -> Job:
    subject = orjson.dumps([organization, silence.source, silence.domain, to_text(silence.since)])
    domain = silence.domain if normalized_host(silence.domain) == silence.domain else ""
    source = {"follow": "the followed log", "drop": "the followed folder or bucket", "report": "reported visits"}
    of_domain = f" for {domain}" if domain and silence.source != "report" else ""
    usual = ", ".join(f"{visits:,}" for visits in silence.before)
    return replace(
        blank_job(organization, SILENT_SOURCE, f"Visits stopped arriving: {source[silence.source]}{of_domain}", now),
        priority="high",
        domain=domain or None,
        summary=f"No visits have arrived from this source since {silence.since:%Y-%m-%d %H:%M} UTC. In the same six "
        f"hours of each of the four weeks before, there were {usual}. Check that it is still running: the server, "
        "`traffic follow`, or the program that reports. The job is resolved when visits arrive again; dismiss it if "
        "none will.",
        action_id="restore_source",
        action_label="Restore the source of visits",
        implementation_type="manual",
        last_detected_at=to_text(now),
        fingerprint=hashlib.sha256(subject).hexdigest(),
        weight=sum(silence.before) / len(silence.before),
    )
