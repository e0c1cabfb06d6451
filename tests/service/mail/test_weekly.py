"""Weekly reports, mailed once through real SMTP servers, for complete weeks, without a password in plain text."""

import email
import email.policy
import logging
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, date, datetime, timedelta

import pytest

from data import BadInput
from queries import DETECTORS, Warehouse
from service.core.mail_settings import SmtpServer
from service.core.settings import read_settings, setting
from service.jobs.store import Jobs
from service.mail.weekly import Week, WeeklyMail
from service.outgoing.mail import REPLY_SECONDS
from tests.service.jobs.findings import broken
from tests.service.jobs.test_texts import COUNTED
from tests.service.outgoing.mail_servers import Mailbox, ScriptedServer, smtp_server
from tests.support.tables import examples
from tests.support.visits import land, visit

SUNDAY = datetime(2026, 3, 15, 12, tzinfo=UTC)
MONDAY = datetime(2026, 3, 16, 6, tzinfo=UTC)
PATIENCE = 60  # seconds; awaited events come within two
TO = {"acme": ("ops@acme.example", "anna@acme.example")}


@pytest.fixture
def lake(lake):
    """A lake with visits in the week that ended on March 8, on the day before that week, and on the day after it."""
    days = [(1, "before"), (2, "in"), (8, "in"), (9, "after")]
    land(lake, "acme", [visit(visited_at=datetime(2026, 3, day, 12), short_code=code) for day, code in days])
    return lake


@pytest.fixture
def weekly(lake, control):
    """Make the weekly mail of one of the lake's servers: at this time, it is sent to the SMTP server on this port."""

    def weekly(port, now=SUNDAY, recipients=TO):
        return WeeklyMail(
            lake, control, lambda: now, lambda: Warehouse(lake),
            server=SmtpServer("127.0.0.1", port, tls=False), sender="traffic@acme.example", recipients=recipients,
        )  # fmt: skip

    return weekly


def parsed(envelope):
    return email.message_from_bytes(envelope.content, policy=email.policy.default)


def warnings(caplog):
    return [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]


@examples("zone", "now", "monday")
def test_a_week_is_due_from_6_on_the_next_monday_in_its_zone(zone, now, monday):
    first_day = date.fromisoformat(monday)
    assert Week.due(zone, datetime.fromisoformat(now).replace(tzinfo=UTC)) == (first_day, first_day + timedelta(days=6))


def test_a_server_mails_the_report_of_the_last_complete_week(lake, opened):
    mailbox = Mailbox()
    mail_to = "acme=ops@acme.example,anna@acme.example"
    with smtp_server(mailbox) as port:
        changes = {"smtp": f"smtp://127.0.0.1:{port}", "mail_to": mail_to, "mail_from": "traffic@acme.example"}
        with opened(lake, **changes):
            given_up = time.monotonic() + PATIENCE
            while not mailbox.mails and time.monotonic() < given_up:
                time.sleep(0.01)
    (mail,) = mailbox.mails
    assert (mail.mail_from, tuple(mail.rcpt_tos)) == ("traffic@acme.example", TO["acme"])
    message = parsed(mail)
    assert "acme" in message["Subject"]
    assert message["Auto-Submitted"] == "auto-generated"
    text, (html,) = message.get_body(("plain",)).get_content(), message.iter_attachments()
    assert (message.get_content_type(), html.get_content_type()) == ("multipart/mixed", "text/html")
    assert text.startswith("Overview of acme, 2 Mar – 8 Mar 2026")
    assert any(line.split() == ["Visits", "by", "people", "2"] for line in text.splitlines())
    assert html.get_content().startswith("<!doctype html>")


def sent(weekly):
    """Send the mail that is due; return its text."""
    mailbox = Mailbox()
    with smtp_server(mailbox) as port:
        weekly(port).send_due()
    return parsed(mailbox.mails[0]).get_body(("plain",)).get_content()


def test_a_mail_lists_the_most_urgent_jobs_first(weekly, control):
    for path, kind, weight in (("/gone", "broken_link", 500.0), ("/.env", "exposed_path", 1.0)):
        counts, detector = dict.fromkeys(COUNTED, 3), DETECTORS[kind]
        Jobs(control).upsert(broken(path, kind=detector, type=kind, rows=[counts], weight=weight), SUNDAY)
    lines = sent(weekly).splitlines()
    first = lines.index("To do") + 1
    assert [line.split()[:2] for line in lines[first : first + 2]] == [["high", "Secret"], ["high", "AI"]]


def test_a_mail_lists_ten_jobs_and_counts_the_others(weekly, control):
    for number in range(12):
        Jobs(control).upsert(broken(f"/gone-{number}"), SUNDAY)
    text = sent(weekly)
    assert text.count("AI products hit a missing page") == 10
    assert "and 2 more on the page To do" in text


def test_a_mail_without_jobs_reports_that_no_decision_is_needed(weekly):
    assert "To do: no job needs a decision." in sent(weekly)


def test_by_default_no_mail_is_sent(lake, opened, monkeypatch):
    monkeypatch.setattr("service.app.application.WeeklyMail", lambda *_, **__: pytest.fail("mail without its settings"))
    for changes in ({}, {"smtp": "smtp://127.0.0.1:1", "mail_from": "traffic@acme.example"}):
        with opened(lake, **changes):
            pass


def test_several_servers_together_send_one_report_a_week(weekly):
    mailbox = Mailbox()
    with smtp_server(mailbox) as port:
        servers = [weekly(port), weekly(port)]
        with ThreadPoolExecutor() as threads:
            assert [*threads.map(WeeklyMail.send_due, servers)] == [None, None]
        servers[0].send_due()
        assert len(mailbox.mails) == 1
        weekly(port, MONDAY).send_due()
        weekly(port, MONDAY + timedelta(days=3)).send_due()
    assert len({parsed(mail)["Subject"] for mail in mailbox.mails}) == len(mailbox.mails) == 2


def test_a_failed_mail_is_sent_later_with_one_warning(weekly, caplog, monkeypatch):
    mailbox = Mailbox(refused=TO["acme"])
    with smtp_server(mailbox) as port:
        mail = weekly(port, recipients={**TO, "other": ("x@y.example",)})
        mail.send_due()
        mail.send_due()
        (warning,) = warnings(caplog)
        assert "acme was not mailed" in warning
        assert "550 no such mailbox" in warning
        assert [one.rcpt_tos for one in mailbox.mails] == [["x@y.example"]]
        mailbox.refused = ()
        mail.send_due()
        mail.send_due()
    assert [tuple(one.rcpt_tos) for one in mailbox.mails] == [("x@y.example",), TO["acme"]]


def test_a_rejected_recipient_does_not_stop_the_others(weekly, caplog):
    mailbox = Mailbox(refused=["anna@acme.example"])
    with smtp_server(mailbox) as port:
        mail = weekly(port)
        mail.send_due()
        mail.send_due()
    assert [one.rcpt_tos for one in mailbox.mails] == [["ops@acme.example"]]
    (warning,) = warnings(caplog)
    assert "anna@acme.example was refused: 550 no such mailbox" in warning


def test_an_unconfirmed_mail_is_not_sent_twice(weekly, caplog):
    with ScriptedServer({"message": None}) as server:
        weekly(server.port).send_due()
    assert b"Subject: Traffic for acme" in server.received
    assert "did not confirm" in warnings(caplog)[0]
    mailbox = Mailbox()
    with smtp_server(mailbox) as port:
        weekly(port).send_due()
    assert mailbox.mails == []


def test_a_servers_shutdown_interrupts_its_mail(weekly, caplog):
    started_at = time.monotonic()
    with ScriptedServer({"greeting": "hang"}) as server, ThreadPoolExecutor() as threads:
        mail = weekly(server.port)
        sending = threads.submit(mail.send_due)
        assert server.connected.wait(PATIENCE)
        mail.interrupt()
        assert sending.result() is None
    assert time.monotonic() - started_at < REPLY_SECONDS
    assert warnings(caplog) == []


# Settings


@examples("url", "server")
def test_a_mail_server_is_given_as_a_url(url, server):
    assert setting("smtp").read(url) == (server and SmtpServer(*server))


@examples("url")
def test_an_invalid_url_is_rejected_without_its_password(url):
    with pytest.raises(BadInput, match="TRAFFIC_SMTP") as refused:
        read_settings({"TRAFFIC_SMTP": url, "TRAFFIC_MAIL_FROM": "a@b.example"})
    assert "geheim" not in str(refused.value)


def test_each_organization_can_have_different_recipients():
    found = setting("mail_to").read(" acme = ops@acme.example, anna@acme.example,ops@acme.example ; other=x@y.example;")
    assert found == {**TO, "other": ("x@y.example",)}


@examples("text")
def test_invalid_addresses_are_rejected(text):
    with pytest.raises(BadInput, match="TRAFFIC_MAIL_TO"):
        setting("mail_to").read(text)
