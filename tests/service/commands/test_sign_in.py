"""`traffic sign-in`: who its link signs in; what it prints is in transcripts/sign-in.txt."""

import shlex

import httpx2

from service.pages.sessions import SessionStore
from tests.support.control import open_store


def opened_by(lake, address):
    """The session that a printed link opens; None if it opens none."""
    with open_store(SessionStore, lake) as store:
        opened = store.open_by_link(address.strip().partition("?code=")[2])
        return opened and store.session(opened.secret)


def test_a_link_opens_one_session_of_the_role_and_the_days_of_the_flags(traffic, lake):
    flags = ("--org", "acme", "--new")
    link, of_a_viewer = (
        traffic("sign-in", *flags).out,
        traffic("sign-in", *flags, "--role", "viewer", "--days", "2").out,
    )
    session = opened_by(lake, link)
    assert (session.organization, session.role, session.kind) == ("acme", "editor", "link")
    assert opened_by(lake, link) is None
    session = opened_by(lake, of_a_viewer)
    assert session.role == "viewer"
    assert session.expires_at[:10] > session.created_at[:10]


def test_the_command_that_a_server_prints_makes_a_link_to_that_server(traffic, lake, serving):
    with serving(lake, base_path="/v1") as server:
        assert server.monitor is None  # which is only there with a port of its own
        line = server.process.stderr.readline()
        words = shlex.split(line.partition("Sign in to its dashboard: traffic ")[2].replace("ORGANIZATION", "acme"))
        link = traffic(*words, "--new").out.strip()
        assert link.startswith(f"{server.address}/app/enter?code=")
        assert "Sign in to acme" in httpx2.get(link, trust_env=False).text
