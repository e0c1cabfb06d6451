"""Fixtures for the service's tests: signed-in browsers, the server's log, and the program."""

import os
from contextlib import closing, contextmanager
from io import BytesIO

import pytest
from starlette.testclient import TestClient

from service.app.application import create_app
from service.core.logs import Log
from service.jobs.store import Jobs
from tests.conftest import NOW
from tests.support.control import open_store
from tests.support.page_reading import Browser, link_of
from tests.support.runs import called


@pytest.fixture(scope="session")
def browsing(opened):
    """Open the application over a lake with a browser that is signed in, by default to acme."""

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
    """The application over the lake that a file's tests share, called without a key."""
    with opened(shared_lake, "") as client:
        yield client


@pytest.fixture
def stranger(application):
    """A browser that is not signed in."""
    application.cookies.clear()
    return Browser(application)


@pytest.fixture
def browser(stranger, shared_lake):
    """A browser that is signed in to acme as an editor."""
    stranger.enter(link_of(shared_lake))
    return stranger


@pytest.fixture
def acme(lake, browsing):
    """A browser at a server over `lake` that is signed in to acme as an editor."""
    with browsing(lake) as browser:
        yield browser


@pytest.fixture
def jobs(lake):
    """The jobs of `lake`, as seen by another program."""
    with open_store(Jobs, lake) as jobs:
        yield jobs


@pytest.fixture
def logged(lake, settings):
    """Open a browser that is not signed in, at a server over `lake`; yield the browser and the stream of the server's
    log."""
    stream = BytesIO()

    @contextmanager
    def logged(**changes):
        with (
            closing(Log(stream)) as log,
            TestClient(create_app(settings(lake, **changes), lambda: NOW, log), follow_redirects=False) as client,
        ):
            yield Browser(client), stream

    return logged


@pytest.fixture
def traffic(request, monkeypatch):
    """Run `traffic` with some arguments over the lake of the test or of its file, without any other setting.

    Its questions get no answers.
    """
    for name in [name for name in os.environ if name.startswith("TRAFFIC_")]:
        monkeypatch.delenv(name)
    for name in ("shared_lake", "lake"):
        if name in request.fixturenames:
            monkeypatch.setenv("TRAFFIC_LAKE", str(request.getfixturevalue(name).root))
    return called
