"""`traffic mail`: the report of the last week at will; what it would be is in transcripts/mail.txt."""

import pytest

from service.settings import setting
from tests.service.outgoing.mail_servers import Mailbox, smtp_server
from tests.support.visits import land, visit


@pytest.fixture
def mail(traffic, lake, monkeypatch):
    """Runs `traffic mail` for acme, with these settings."""
    land(lake, "acme", [visit()])

    def mail(*flags, **settings):
        for name, value in settings.items():
            monkeypatch.setenv(setting(name).variable, value)
        return traffic("mail", "--org", "acme", *flags)

    return mail


def test_a_mail_is_sent_at_will_as_often_as_wanted(mail):
    mailbox = Mailbox(refused=["gone@acme.example"])
    with smtp_server(mailbox) as port:
        settings = {"smtp": f"smtp://127.0.0.1:{port}", "mail_from": "t@acme.example", "mail_to": "acme=a@acme.example"}
        assert mail(**settings).err == "Sent to a@acme.example.\n"
        assert mail("--to", "b@acme.example,c@acme.example").err == "Sent to b@acme.example, c@acme.example.\n"
        partly, refused_all = mail("--to", "gone@acme.example,d@acme.example"), mail("--to", "gone@acme.example")
    assert [one.rcpt_tos for one in mailbox.mails] == [
        ["a@acme.example"], ["b@acme.example", "c@acme.example"], ["d@acme.example"],
    ]  # fmt: skip
    assert (partly.code, refused_all.code) == (1, 1)
    assert "gone@acme.example was refused: 550" in partly.err
    assert "refused every recipient" in refused_all.err
