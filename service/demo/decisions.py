"""Earlier decisions about the sample: two paths were repaired successfully, a third without success."""

from contextlib import closing
from datetime import datetime, timedelta

from data import Lake
from queries import DETECTORS, Warehouse, days_before, detect
from service.core.control_database import ControlDatabase
from service.demo.problems import REPAIRS
from service.jobs.detection import Detection
from service.jobs.findings import causes_of
from service.jobs.implementations import Draft
from service.jobs.records import COMMAND_LINE
from service.jobs.store import Jobs


def decide(lake: Lake, organization: str, now: datetime) -> None:
    """Find the job for each of REPAIRS as of the day of the repair, approve and ship it, and measure all outcomes as of
    now.
    """
    with closing(Warehouse(lake)) as engine, closing(ControlDatabase(lake)) as control:
        jobs = Jobs(control)
        for repair in REPAIRS:
            then = now - timedelta(days=repair.days_ago)
            day, subject = then.date(), {"domain": repair.domain, "path": repair.path}
            detector = DETECTORS[repair.type]
            found = next(one for one in detect(engine, detector, organization, day) if one.subject == subject)
            (cause,) = causes_of(detector, [found], days_before(day))
            jobs.upsert(cause, then)
            job_id = next(job.id for job in jobs.of(organization) if job.path == repair.path)
            jobs.act(organization, job_id, "approve_fix", COMMAND_LINE, then)
            kind = "patch" if repair.target else "manual"
            draft = Draft(kind, redirect_to=repair.target or None, note=repair.note)
            jobs.attach(organization, job_id, draft, COMMAND_LINE, then)
            jobs.set_implementation_status(organization, job_id, 1, COMMAND_LINE, then, status="shipped")
        Detection(engine, lake, jobs, organization).measure_outcomes(now)
