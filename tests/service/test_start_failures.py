"""A server that fails while it starts closes what it has opened."""

import logging
import socket
import sys
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace

import pytest
from starlette.testclient import TestClient

import service.app
from service.commands.serve import serve
from service.hooks.sender import Sender
from tests.support.programs import free_port

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux lists open files in /proc")


def fail(*_, **__):
    raise RuntimeError("can't start new thread")


def open_files(folder):
    """The files in a folder that this process has open."""
    found = set()
    for number in Path("/proc/self/fd").iterdir():
        with suppress(FileNotFoundError):  # the folder that is listed
            found.add(number.readlink())
    return {path for path in found if path.is_relative_to(folder)}


def test_an_application_that_fails_to_start_closes_files(settings, tmp_path, monkeypatch):
    monkeypatch.setattr(Sender, "begin", fail)
    app = service.app.create_app(settings(SimpleNamespace(root=tmp_path / "lake")))
    assert open_files(tmp_path)
    with pytest.raises(RuntimeError, match="new thread"), TestClient(app):
        pass
    assert open_files(tmp_path) == set()


def test_a_command_that_fails_to_start_frees_its_port(tmp_path, monkeypatch, capsysbinary):
    monkeypatch.setattr(service.app, "create_app", fail)
    port, handlers = free_port(), [*logging.getLogger().handlers]
    with pytest.raises(RuntimeError, match="new thread") as _failure:  # its traceback keeps the socket
        serve(port=str(port), lake=tmp_path / "lake")
    socket.create_server(("127.0.0.1", port)).close()
    assert logging.getLogger().handlers == handlers
