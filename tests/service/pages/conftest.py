"""What tests of the pages share: browsers that are signed in, and pages taken apart."""

from contextlib import contextmanager

import pytest

from service.control_database import ControlDatabase
from service.pages.sessions import SessionStore
from tests.conftest import NOW
from tests.service.pages.reading import Browser


@pytest.fixture(scope="session")
def link_of():
    """Makes a sign-in code of an organization."""

    def link_of(lake, organization="acme", clock=lambda: NOW, **how):
        store = SessionStore(ControlDatabase(lake), clock)
        code = store.create_link(organization, **how)
        store.database.close()
        return code

    return link_of


@pytest.fixture(scope="session")
def browsing(opened, link_of):
    """Opens the application over a lake as a browser that is signed in to acme unless told otherwise."""

    @contextmanager
    def browsing(lake, organization="acme", role="editor", **changes):
        with opened(lake, "", **changes) as client:
            browser = Browser(client, changes.get("base_path", "").rstrip("/"))
            if organization:
                browser.enter(link_of(lake, organization, role=role))
            yield browser

    return browsing


@pytest.fixture(scope="module")
def application(shared_lake, opened):
    """The application over the lake that the tests of a file share, asked without a key."""
    with opened(shared_lake, "") as client:
        yield client


@pytest.fixture
def stranger(application):
    """A browser that is not signed in."""
    application.cookies.clear()
    return Browser(application)


@pytest.fixture
def browser(stranger, shared_lake, link_of):
    """A browser that is signed in to acme as an editor."""
    stranger.enter(link_of(shared_lake))
    return stranger
