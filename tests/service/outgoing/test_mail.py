"""Mail through servers of every kind: TLS, passwords, rejections, and one deadline for the whole conversation."""

import time
from concurrent.futures import ThreadPoolExecutor
from email.message import EmailMessage
from pathlib import Path

import pytest

from service.core.mail_settings import SmtpServer
from service.outgoing import mail
from service.outgoing.mail import Mailer, MailFailed
from tests.service.outgoing.mail_servers import PASSWORD, Mailbox, ScriptedServer, smtp_server
from tests.support.receivers import Authority
from tests.support.tables import tables

HOSTILE = tables(str(Path(__file__).with_name("hostile.json")))["mail"]
USER = {"user": "u", "password": PASSWORD}


@pytest.fixture
def authority(tmp_path, monkeypatch):
    """A certificate authority that this process trusts."""
    authority = Authority(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(authority.file))
    return authority


def sent(port, host="127.0.0.1", tls=False, **user):
    """Send a mail; return its problems. Raises MailFailed if it was sent to no recipient."""
    made = EmailMessage()
    made["Subject"] = "x"
    made.set_content(".x\n")
    return Mailer(SmtpServer(host, port, tls, **user)).send(made, "a@b.example", ("c@d.example",))


@pytest.mark.parametrize(("script", "outcome"), [row[1:] for row in HOSTILE], ids=[row[0] for row in HOSTILE])
@pytest.mark.parametrize("bound", ["REPLY_SECONDS", "CONVERSATION_SECONDS"])
def test_a_response_is_accepted_or_rejected_in_time(monkeypatch, script, outcome, bound):
    if {"hang", "drip"} & {*script.values()}:
        monkeypatch.setattr(mail, bound, 0.5)
    with ScriptedServer(script) as server:
        if isinstance(outcome, str):
            with pytest.raises(MailFailed) as failed:
                sent(server.port)
            assert str(failed.value).startswith(f"the mail server 127.0.0.1:{server.port} ")
            assert outcome in str(failed.value)
        else:
            assert sent(server.port) == [*outcome]
            assert b"Subject: x" in server.received


def test_an_unreachable_mail_server_is_reported():
    with pytest.raises(MailFailed, match=r"the mail server 127\.0\.0\.1:1 could not be used \(.*refused"):
        sent(1)
    with pytest.raises(MailFailed, match=r"the mail server a\.\.example:1 could not be used"):
        sent(1, "a..example")


def test_an_interruption_fails_the_current_and_later_mails():
    started_at, mail_of = time.monotonic(), (EmailMessage(), "a@b.example", ("c@d.example",))
    with ScriptedServer({"greeting": "hang"}) as server, ThreadPoolExecutor() as threads:
        mailer = Mailer(SmtpServer("127.0.0.1", server.port, tls=False))
        sending = threads.submit(mailer.send, *mail_of)
        assert server.connected.wait(60)
        mailer.interrupt()
        for send in (sending.result, lambda: mailer.send(*mail_of)):
            with pytest.raises(MailFailed, match="did not finish before this program ended"):
                send()
    assert time.monotonic() - started_at < mail.REPLY_SECONDS


# TLS and passwords


@pytest.mark.parametrize("tls", [True, False])
def test_a_password_is_sent_only_over_tls(authority, tls):
    mailbox, context = Mailbox(), authority.context("localhost")
    options = {"tls": context} if tls else {"tls_context": context, "require_starttls": True}
    with smtp_server(mailbox, **options) as port:
        assert sent(port, "localhost", tls, **USER) == []
        with pytest.raises(MailFailed, match="rejected the user name or password") as failed:
            sent(port, "localhost", tls, user="u", password="wrong-one")
    assert "wrong-one" not in str(failed.value)
    assert len(mailbox.mails) == 1
    assert {*mailbox.passwords} == {PASSWORD, "wrong-one"}


def test_without_starttls_a_password_is_not_sent():
    mailbox = Mailbox()
    with smtp_server(mailbox) as port, pytest.raises(MailFailed, match="STARTTLS") as failed:
        sent(port, **USER)
    assert (mailbox.passwords, mailbox.mails) == ([], [])
    assert PASSWORD not in str(failed.value) + repr(SmtpServer("h", 1, tls=False, **USER))


def test_a_server_with_an_invalid_certificate_gets_no_password(authority):
    mailbox, context = Mailbox(), authority.context("other.example")
    for tls, options in ((True, {"tls": context}), (False, {"tls_context": context, "require_starttls": True})):
        with smtp_server(mailbox, **options) as port:
            with pytest.raises(MailFailed, match="certificate"):
                sent(port, "localhost", tls, **USER)
            assert tls or sent(port) == []
    assert (mailbox.passwords, len(mailbox.mails)) == ([], 1)
