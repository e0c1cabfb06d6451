"""Fixtures for all tests: a lake, the application in this process, and the program on a real socket."""

import gc
import importlib
import itertools
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

import httpx2
import pytest
from hypothesis import settings
from starlette.testclient import TestClient

from data import Lake
from data.rules.classifier import shared_classifier
from data.rules.lake_tables import SHIPPED
from service.access.api_keys import ApiKeys
from service.app.application import create_app
from service.core.control_database import ControlDatabase
from service.core.settings import read_settings, setting
from tests.support.control import open_store
from tests.support.failing_store import failing_store
from tests.support.forks import ROOT, Forked, Forks, without_settings
from tests.support.provider import real_provider
from tests.support.receivers import Receiver
from tests.support.relations import bind_relations, give_relations

NOW = datetime(2026, 3, 15, 12, tzinfo=UTC)  # a Sunday
settings.register_profile("any machine", deadline=None)
settings.load_profile("any machine")
MIN_REST_OF_DAY = timedelta(minutes=2)
PROXY = "10.0.0.1"


@pytest.fixture
def store():
    """An object store that fails on purpose."""
    with failing_store() as running:
        yield running


@pytest.fixture(scope="session")
def new_lake(tmp_path_factory):
    """Make lakes with bound relations, as in a lake that was queried before."""
    relations = bind_relations(tmp_path_factory.mktemp("relations"))

    def new_lake(root):
        lake = Lake(root, create=True)
        give_relations(lake, relations)
        return lake

    return new_lake


@pytest.fixture(scope="session")
def classifier():
    """The classifier with the shipped rules."""
    return shared_classifier(SHIPPED)


@pytest.fixture
def lake(tmp_path, new_lake):
    """A fresh lake."""
    lake = new_lake(tmp_path / "lake")
    yield lake
    lake.manifest.close()


@pytest.fixture
def control(lake):
    """The control database of `lake`."""
    with closing(ControlDatabase(lake)) as control:
        yield control


@pytest.fixture(scope="module")
def shared_lake(tmp_path_factory, new_lake):
    """One lake for all tests in a file."""
    lake = new_lake(tmp_path_factory.mktemp("shared") / "lake")
    yield lake
    lake.manifest.close()


@pytest.fixture(scope="module")
def today():
    """The UTC date, for tests of code that reads the clock. In the last two minutes of a day, tests wait for the next
    day."""
    while (now := datetime.now(UTC)).date() != (later := now + MIN_REST_OF_DAY).date():
        midnight = later.replace(hour=0, minute=0, second=0, microsecond=0)
        time.sleep((midnight - now).total_seconds())
    return now.date()


@pytest.fixture(scope="session")
def settings():
    """Make the settings of a server over a lake; the in-process client's address is a trusted proxy."""

    def settings(lake, **changes):
        chosen = {"lake": lake.root, "trusted_proxies": PROXY} | changes
        return read_settings({}, **{name: str(value) for name, value in chosen.items()})

    return settings


@pytest.fixture(scope="session")
def key_of():
    """Make an API key for an organization."""

    def key_of(lake, organization="acme"):
        with open_store(ApiKeys, lake) as keys:
            return keys.create_key(organization, "test")

    return key_of


@pytest.fixture(scope="session")
def opened(settings, key_of):
    """Open the application over a lake and send requests in process, by default with acme's key.

    Every request comes from its own source address, so that no test hits the rate limit by accident.
    """
    numbers = itertools.count(1)

    def from_a_source_of_its_own(request: httpx2.Request) -> None:
        number = next(numbers)
        request.headers.setdefault("x-forwarded-for", f"198.{number >> 16}.{number >> 8 & 255}.{number & 255}")

    @contextmanager
    def opened(lake, organization="acme", clock=lambda: NOW, log=None, **changes):
        headers = {"Authorization": f"Bearer {key_of(lake, organization)}"} if organization else {}
        with TestClient(
            create_app(settings(lake, **changes), clock, log),
            raise_server_exceptions=False,
            follow_redirects=False,
            client=(PROXY, 50_000),
            headers=headers,
        ) as client:
            client.event_hooks = {"request": [from_a_source_of_its_own]}
            yield client

    return opened


@pytest.fixture
def client(lake, opened) -> Iterator[TestClient]:
    """The application over `lake`, queried in process by acme."""
    with opened(lake) as client:
        yield client


@pytest.fixture
def receiver():
    """Make HTTP receivers that follow a script."""
    with ExitStack() as stack:
        yield lambda *scripts, **how: stack.enter_context(closing(Receiver(*scripts, **how)))


class Server(NamedTuple):
    """A running `traffic serve`."""

    address: str  # with the base path, without a final slash
    process: subprocess.Popen[str] | Forked
    monitor: str | None = None  # the address of its health and metrics

    @property
    def port(self) -> int:
        return int(re.search(r":(\d+)", self.address)[1])


@pytest.fixture(scope="session")
def forks():
    """Start `traffic` in processes that have already loaded it."""
    with closing(Forks()) as forks:
        yield forks


@pytest.fixture(scope="session")
def serving(forks):
    """Run `traffic serve` on a free port while in this context: in a forked process, or as the installed program."""

    @contextmanager
    def serving(lake, *flags, before="", is_installed=False, folder=Path(sys.executable).parent, **changes):
        settings = {setting(name).variable: str(value) for name, value in {"lake": lake.root, **changes}.items()}
        words = ["serve", "--port", "0", *flags]
        if is_installed:
            command, environ = [folder / "traffic", *words], without_settings() | settings
            process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environ)
        else:
            process = forks.start(*words, before=before, settings=settings)
        try:
            told = ""
            while not (place := re.search(r"at (http://\S+)/ ", told)):
                line = process.stderr.readline()
                assert line, f"the server ended: {told}"
                told += line
            monitor = re.search(r"Health and metrics at (http://\S+)/\n", told)
            yield Server(place[1], process, monitor and monitor[1])
        finally:
            process.terminate()
            try:
                process.wait(60)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            process.stderr.close()

    return serving


@pytest.fixture
def server(lake, serving) -> Iterator[Server]:
    """The real server over `lake`, on a port of the loopback interface."""
    with serving(lake) as server:
        yield server


@pytest.fixture(scope="session")
def identity_provider():
    """The issuer of a real provider with the users in tests.support.provider."""
    with real_provider() as issuer:
        yield issuer


@pytest.fixture
def tell(record_property):
    """Print a test's figures immediately, and all figures again at the end of the run."""

    def tell(**figures):
        text = ", ".join(f"{value} {name.replace('_', ' ')}" for name, value in figures.items())
        sys.stdout.write(f"{text}\n")
        record_property("figures", text)

    return tell


def pytest_runtest_logreport(report):
    """Print each failure when it happens, because a long run may be stopped before its summary."""
    if report.failed and "PYTEST_XDIST_WORKER" not in os.environ:
        print(f"\n{report.nodeid} failed in {report.when}", file=sys.__stdout__, flush=True)


def pytest_terminal_summary(terminalreporter):
    """Print the figures of all tests; if tests run in several processes, nothing else shows them."""
    reports = [report for reports in terminalreporter.stats.values() for report in reports]
    told = {
        report.nodeid.partition("::")[2]: value
        for report in reports
        for name, value in getattr(report, "user_properties", ())
        if name == "figures"
    }
    for name, value in sorted(told.items()):
        terminalreporter.write_line(f"{name}: {value}")


INAPPLICABLE = (
    "DuckDB 1.5 has no limit",
    "this DuckDB survives",
    "only Linux",
    "only the newer program",
    "the superuser may",
    "nothing in the request can be invalid",
    "this is the newer program",
)
"""Beginnings of skip reasons for tests that do not apply here. All other reasons say that something is missing."""


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    """With TRAFFIC_TESTS=all, fail a test that is skipped because something is missing."""
    report = yield
    if os.environ.get("TRAFFIC_TESTS") == "all" and report.skipped and not hasattr(report, "wasxfail"):
        reason = report.longrepr[2].removeprefix("Skipped: ")
        if not reason.startswith(INAPPLICABLE):
            report.outcome, report.longrepr = "failed", f"TRAFFIC_TESTS=all lets no test skip: {reason}"
    return report


@pytest.fixture(scope="session")
def anyio_backend():
    """The event loop for coroutine tests."""
    return "asyncio"


MEMORY_DISK = Path("/dev/shm")  # pytest creates its own folders in it
MEMORY_DISK_MIN_FREE = 4 * 1024**3


def pytest_configure(config):
    """Keep compiled files even if the environment forbids that: otherwise, a program started by a test would
    compile for longer than it runs, and each test process would compile everything at its start.

    Tests keep their folders in memory if there is room, because every landing waits for the disk several times, and no
    test can pull the plug. TRAFFIC_FAULTS=all, --basetemp and PYTEST_DEBUG_TEMPROOT keep them on a disk.
    """
    if (
        os.environ.get("TRAFFIC_FAULTS") != "all"
        and MEMORY_DISK.is_dir()
        and os.access(MEMORY_DISK, os.W_OK)
        and shutil.disk_usage(MEMORY_DISK).free >= MEMORY_DISK_MIN_FREE
    ):
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(MEMORY_DISK))
    if sys.dont_write_bytecode:
        sys.dont_write_bytecode, sys.pycache_prefix = False, str(config.rootpath / ".pytest_cache" / "compiled")
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        os.environ["PYTHONPYCACHEPREFIX"] = sys.pycache_prefix


def pytest_collection(session):
    """Import a part of the test files first: a different part in each process.

    Rewriting the assertions of all files takes longer than any other part of collection in a clean clone. Every process
    needs all files, but finds the other parts already compiled after its own.
    """
    if worker := getattr(session.config, "workerinput", None):
        files = sorted(file for place in session.config.args for file in Path(place).rglob("test_*.py"))
        for file in files[int(worker["workerid"].removeprefix("gw")) :: worker["workercount"]]:
            with suppress(Exception, pytest.skip.Exception):  # reported when the file is collected
                importlib.import_module(".".join(file.resolve().relative_to(ROOT).with_suffix("").parts))


def pytest_collection_finish():
    """Leave collected tests out of garbage collection: each collection over nine thousand tests takes 0.4 s."""
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)  # rarely, since no request waits meanwhile


def pytest_unconfigure():
    """Collect all garbage at the end; otherwise libraries warn about apparent leaks."""
    gc.unfreeze()


def pytest_xdist_auto_num_workers():
    """Return one process more than there are cores, because many tests mostly wait for another process."""
    return (os.cpu_count() or 1) + 1
