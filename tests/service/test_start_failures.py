"""Servers and other programs that fail to start close everything that they have opened."""

import logging
import socket
import sqlite3
import sys
import threading
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace

import duckdb
import pytest
from starlette.testclient import TestClient

import service.app.application
from data import TrafficError
from data.manifest.schema import open_database
from queries import QueryFailed
from service.hooks.sender import Sender
from service.serve import serve
from tests.support.programs import free_port
from tests.support.runs import run
from tests.support.visits import land, visit

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux lists open files in /proc")


def fail(*_, **__):
    raise RuntimeError("can't start new thread")


def open_files(folder):
    """Return the files in a folder that this process holds open."""
    found = set()
    for number in Path("/proc/self/fd").iterdir():
        with suppress(FileNotFoundError):  # the listed folder
            found.add(number.readlink())
    return {path for path in found if path.is_relative_to(folder)}


def test_an_application_that_fails_to_start_closes_files(settings, tmp_path, monkeypatch):
    monkeypatch.setattr(Sender, "begin", fail)
    app = service.app.application.create_app(settings(SimpleNamespace(root=tmp_path / "lake")))
    assert open_files(tmp_path)
    with pytest.raises(RuntimeError, match="new thread"), TestClient(app):
        pass
    assert open_files(tmp_path) == set()


PARTS = ("ControlDatabase", "Hooks", "Warehouse", "Authenticator", "Maintenance", "LinkIndex", "Pages")
PLACES = (*(f"service.app.application.{part}" for part in PARTS), "queries.locked_engine.Watchdog")


@pytest.mark.parametrize("place", PLACES)
def test_an_application_that_cannot_be_created_closes_files(settings, tmp_path, monkeypatch, place):
    before = threading.enumerate()
    monkeypatch.setattr(place, fail)
    with pytest.raises(RuntimeError, match="new thread") as _failure:  # its traceback keeps every part
        service.app.application.create_app(settings(SimpleNamespace(root=tmp_path / "lake")))
    assert open_files(tmp_path) == set()
    assert [one for one in threading.enumerate() if one not in before and one.name != "watchdog"] == []


@pytest.mark.parametrize(
    ("name", "opened"), [("manifest.sqlite", 2), ("manifest.sqlite", 3), ("control.sqlite", 1), ("control.sqlite", 2)]
)
def test_databases_are_closed_if_another_cannot_be_opened(settings, tmp_path, monkeypatch, name, opened):
    places = []

    def open_some(path, migrations, refuse_new):
        places.append(path.name)
        if places.count(name) == opened:
            raise OSError(24, "Too many open files", str(path))
        return open_database(path, migrations, refuse_new)

    monkeypatch.setattr("data.store.lake.open_database", open_some)
    with pytest.raises(OSError, match="Too many open files") as _failure:
        service.app.application.create_app(settings(SimpleNamespace(root=tmp_path / "lake")))
    assert open_files(tmp_path) == set()


def test_a_server_without_its_monitor_port_closes_the_lake(tmp_path, monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        monkeypatch.setenv("TRAFFIC_MONITOR_PORT", str(taken.getsockname()[1]))
        with pytest.raises(TrafficError) as _failure:
            serve(port=str(free_port()), lake=tmp_path / "lake")
    assert open_files(tmp_path) == set()


FAILURES = {
    "service.mcp.sources.Warehouse": (QueryFailed("the engine does not start."), "the engine does not start."),
    "queries.locked_engine.Watchdog": (RuntimeError("can't start new thread"), "the system allows no more threads; "),
    "service.mcp.sources.ControlDatabase": (OSError(28, "No space left"), "No space left."),
    "service.mcp.sources.LinkIndex": (sqlite3.OperationalError("disk I/O error"), "a database of the lake cannot be "),
    "queries.locked_engine.duckdb.connect": (duckdb.IOException("no\nroom"), "the query engine cannot start: "),
    "service.mcp.tools.Toolbox": (MemoryError(), "there is not enough memory."),
}


@pytest.mark.parametrize("place", FAILURES)
def test_mcp_tools_that_fail_to_start_report_it_and_close_files(lake, monkeypatch, place):
    failure, told = FAILURES[place]
    land(lake, "ant", [visit()])
    lake.manifest.close()

    def fail_so(*_, **__):
        raise failure

    monkeypatch.setattr(place, fail_so)
    ended = run("mcp", "--org", "ant", "--lake", lake.root)
    assert (ended.code, ended.out, ended.err.count("\n")) == (1, "", 1)
    assert ended.err.startswith(f"traffic: {told}")
    assert open_files(lake.root) == set()


def test_a_server_that_fails_to_start_frees_its_port(tmp_path, monkeypatch, capsysbinary):
    monkeypatch.setattr(service.app.application, "create_app", fail)
    port, handlers = free_port(), [*logging.getLogger().handlers]
    with pytest.raises(RuntimeError, match="new thread") as _failure:  # its traceback keeps the socket
        serve(port=str(port), lake=tmp_path / "lake")
    socket.create_server(("127.0.0.1", port)).close()
    assert logging.getLogger().handlers == handlers
