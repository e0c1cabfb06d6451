"""Weekly reports by mail, sent once a week by a server, or at any time by `traffic mail`."""

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import InitVar, dataclass
from datetime import date, datetime, timedelta
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import format_datetime, make_msgid
from typing import Final, NamedTuple

from data import Lake, TrafficError
from data.local_time import today
from queries import Warehouse
from service.core.clock import to_text
from service.core.control_database import ControlDatabase
from service.core.mail_settings import SmtpServer
from service.jobs.reader import JobReader
from service.outgoing.mail import Mailer

AFTER: Final = timedelta(hours=6)
"""Delay after the end of a week, Sunday at midnight, before its report is sent."""
MAX_LISTED: Final = 10
"""Maximum number of jobs that a mail lists."""
_LOG: Final = logging.getLogger(__name__)


class Week(NamedTuple):
    """Seven days, Monday to Sunday, in a time zone."""

    first_day: date
    last_day: date

    @classmethod
    def due(cls, zone: str, now: datetime) -> "Week":
        """Return the last week that ended at least AFTER ago."""
        day = today(zone, now - AFTER)
        monday = day - timedelta(days=day.weekday() + 7)
        return cls(monday, monday + timedelta(days=6))


def weekly_message(
    lake: Lake,
    warehouse: Warehouse,
    control: ControlDatabase,
    organization: str,
    now: datetime,
    *,
    sender: str,
    recipients: tuple[str, ...],
    cancelled: threading.Event | None = None,
) -> EmailMessage:
    """Return the report on the week that is due: as text with the undecided jobs, and as an attached HTML file."""
    from service.core.pages import formats  # noqa: PLC0415  # slow: a server loads its pages with the first report
    from service.dashboard.report import Report  # noqa: PLC0415

    zone = lake.manifest.organizations.zone(organization)
    week = Week.due(zone, now)
    days = {"start_date": week.first_day.isoformat(), "end_date": week.last_day.isoformat()}
    jobs = JobReader(control)
    broken = jobs.broken(organization)
    report = Report.load(lake, warehouse, organization, days, today(zone, now), cancelled, broken)
    message = EmailMessage(SMTP)
    message["From"], message["To"] = sender, ", ".join(recipients)
    message["Subject"] = f"Traffic for {organization}, {formats.span(week.first_day, week.last_day)}"
    message["Date"], message["Message-ID"] = format_datetime(now), make_msgid(domain=sender.partition("@")[2])
    message["Auto-Submitted"] = "auto-generated"
    to_do = "\n".join(_to_do(jobs.to_do(organization)))
    message.set_content(
        f"{report.text()}\n{to_do}\n\nThe attached file has the same report with charts; it opens in any browser.\n"
    )
    name = f"traffic-{organization}-{week.first_day}.html"
    message.add_attachment(report.html(now).encode(), "text", "html", filename=name, params={"charset": "utf-8"})
    return message


def _to_do(jobs: Sequence[tuple[str, str]]) -> list[str]:
    """Return lines about undecided jobs: the MAX_LISTED most urgent, and the number of the others."""
    if not jobs:
        return ["To do: no job needs a decision."]
    lines = ["To do", *(f"  {priority:<6}  {title}" for priority, title in jobs[:MAX_LISTED])]
    more = len(jobs) - MAX_LISTED
    return [*lines, f"  and {more:,} more on the page To do"] if more > 0 else lines


@dataclass(eq=False)
class WeeklyMail:
    """The sender of weekly reports. Even several servers of a lake send an organization each report at most once."""

    lake: Lake
    database: ControlDatabase
    clock: Callable[[], datetime]
    open_warehouse: Callable[[], Warehouse]
    """A function that opens an engine. Each report uses a new engine."""
    server: InitVar[SmtpServer]
    sender: str
    recipients: Mapping[str, tuple[str, ...]]

    def __post_init__(self, server: SmtpServer) -> None:
        self._mailer = Mailer(server)
        self._cancelled = threading.Event()
        self._warehouse: Warehouse | None = None
        self._warned: set[tuple[str, date]] = set()

    def send_due(self) -> None:
        """Send the reports that are due. A failure is logged once and does not stop the others."""
        now = self.clock()
        for organization in self.recipients:
            week = Week.due(self.lake.manifest.organizations.zone(organization), now)
            if self._cancelled.is_set():
                break
            key = [organization, week.first_day.isoformat()]
            if self.database.rows("SELECT 1 FROM weekly_mails WHERE organization = ? AND first_day = ?", key):
                continue
            try:
                problems = self._send(organization, week, now)
            except TrafficError as error:
                if not self._cancelled.is_set() and (organization, week.first_day) not in self._warned:
                    self._warned.add((organization, week.first_day))
                    _LOG.warning("the weekly report of %s was not mailed, and will be retried: %s", organization, error)
            else:
                for problem in problems:
                    _LOG.warning("the weekly report of %s: %s", organization, problem)

    def interrupt(self) -> None:
        """Stop the current report and all later ones."""
        self._cancelled.set()
        self._mailer.interrupt()
        if self._warehouse:
            self._warehouse.stop(self._cancelled)

    def _send(self, organization: str, week: Week, now: datetime) -> list[str]:
        recipients = self.recipients[organization]
        with closing(self.open_warehouse()) as warehouse:
            self._warehouse = warehouse
            try:
                message = weekly_message(
                    self.lake, warehouse, self.database, organization, now,
                    sender=self.sender, recipients=recipients, cancelled=self._cancelled,
                )  # fmt: skip
            finally:
                self._warehouse = None
        if self._cancelled.is_set():
            return []
        key = [organization, week.first_day.isoformat()]
        if not self.database.rows(
            "INSERT INTO weekly_mails VALUES (?, ?, ?) ON CONFLICT DO NOTHING RETURNING 1", [*key, to_text(now)]
        ):  # another server has recorded it, and sends it
            return []
        try:
            return self._mailer.send(message, self.sender, recipients)
        except BaseException:
            self.database.rows("DELETE FROM weekly_mails WHERE organization = ? AND first_day = ?", key)
            raise
