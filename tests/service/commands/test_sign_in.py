"""`traffic sign-in`: a link on stdout, and who it signs in."""

import re
import shlex

import httpx2
import pytest

from service.pages.sessions import SessionStore
from tests.service.commands.runs import refused
from tests.support.control import open_store
from tests.support.tables import examples


def opened_by(lake, address):
    """The session that a printed link opens; None if it opens none."""
    with open_store(SessionStore, lake) as store:
        opened = store.open_by_link(address.strip().partition("?code=")[2])
        return opened and store.session(opened.secret)


def test_a_link_is_the_only_line_on_stdout_and_opens_a_session_once(traffic, lake):
    run = traffic("sign-in", "--org", "acme", "--new", "--lake", lake.root)
    assert run.code == 0
    assert re.fullmatch(r"http://127\.0\.0\.1:8000/app/enter\?code=[\w-]{43}\n", run.out)
    session = opened_by(lake, run.out)
    assert (session.organization, session.role, session.kind) == ("acme", "editor", "link")
    assert opened_by(lake, run.out) is None


def test_the_command_that_a_server_prints_makes_a_link_to_that_server(traffic, lake, serving):
    with serving(lake, base_path="/v1") as server:
        line = server.process.stderr.readline()
        words = shlex.split(line.partition("Sign in to its dashboard: traffic ")[2].replace("ORGANIZATION", "acme"))
        link = traffic(*words, "--new").out.strip()
        assert link.startswith(f"{server.address}/app/enter?code=")
        assert "Sign in to acme" in httpx2.get(link, trust_env=False).text


@examples("flags", "environ", "address")
def test_the_link_has_the_address_at_which_browsers_reach_the_server(
    traffic, lake, monkeypatch, flags, environ, address
):
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    run = traffic("sign-in", "--org", "acme", "--new", "--lake", lake.root, *flags)
    assert run.out.partition("?")[0] == address


def test_role_and_days_are_those_of_the_flags(traffic, lake):
    run = traffic("sign-in", "--org", "acme", "--new", "--role", "viewer", "--days", "2", "--lake", lake.root)
    session = opened_by(lake, run.out)
    assert session.role == "viewer"
    assert session.expires_at[:10] > session.created_at[:10]


@pytest.mark.parametrize(
    ("flags", "named"),
    [(["--role", "admin"], "admin"), (["--days", "0"], "0"), (["--days", "367"], "367"), (["--org", "_x"], "_x")],
)
def test_a_bad_flag_is_refused(traffic, lake, flags, named):
    assert named in refused(traffic("sign-in", "--org", "acme", "--new", "--lake", lake.root, *flags))


def test_an_organization_that_the_lake_does_not_know_is_refused_with_the_nearest_names(traffic, lake, key_of):
    key_of(lake, "acme")
    message = refused(traffic("sign-in", "--org", "acmee", "--lake", lake.root))
    assert "no organization 'acmee'" in message
    assert "did you mean acme?" in message
    assert traffic("sign-in", "--org", "acme", "--lake", lake.root).code == 0
    assert opened_by(lake, traffic("sign-in", "--org", "acmee", "--new", "--lake", lake.root).out)
