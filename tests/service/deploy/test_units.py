"""The systemd units: what systemd-analyze finds, and that the program makes none of the system calls that they forbid.

tests/containers starts them.
"""

import os
from pathlib import Path

import pytest

from tests.support.forks import PROGRAM, without_settings
from tests.support.programs import DEPLOY, accepts, checked, free_port, moved, running
from tests.support.web_servers import installed

UNITS = ["traffic.service", "traffic-follow@acme.service"]
MAX_EXPOSURE = 20  # out of 100; systemd-analyze prints it as 2.0 of 10


@pytest.fixture
def units(tmp_path):
    """The units in a folder, with the program under test and one instance of the template."""
    paths = []
    for name in UNITS:
        text = (DEPLOY / name.replace("acme", "")).read_text()
        paths.append(tmp_path / name)
        paths[-1].write_text(moved(text, {"/opt/traffic/bin/traffic": PROGRAM}))
    return paths


def test_systemd_accepts_the_units_and_rates_their_exposure_low(units):
    analyze = installed("systemd-analyze")
    assert checked(analyze, "verify", "--man=no", *units) == ""
    for unit in units:
        printed = checked(analyze, "security", "--offline=true", f"--threshold={MAX_EXPOSURE}", "--no-pager", unit)
        assert "Overall exposure level" in printed


def allowed_calls(analyze):
    """Return the system calls that the units' filter allows."""
    sets = checked(analyze, "syscall-filter", "--no-pager")
    members = {block.split()[0]: block.split("\n")[1:] for block in sets.split("\n\n") if block.startswith("@")}

    def calls_of(name):
        names = [line.strip() for line in members[name] if line.strip() and not line.strip().startswith("#")]
        return {call for one in names for call in (calls_of(one) if one.startswith("@") else [one])}

    return calls_of("@system-service") - calls_of("@privileged")


def test_the_server_makes_only_allowed_system_calls(tmp_path):
    strace, analyze = installed("strace"), installed("systemd-analyze")
    monitor, calls = free_port(), tmp_path / "calls"
    environ = without_settings()
    environ |= {"TRAFFIC_LAKE": str(tmp_path / "lake"), "TRAFFIC_PORT": "0", "TRAFFIC_MONITOR_PORT": str(monitor)}
    serve = [PROGRAM, "serve"]
    command = [strace, "-f", "-c", "-U", "name", "-I", "3", "-o", calls, *serve]
    with running(command, lambda: accepts(monitor), tmp_path / "output", env=environ) as process:
        (server,) = children_of(process.pid)
        os.kill(server, 15)
        process.wait()
    made = {line.strip() for line in calls.read_text().splitlines() if line.strip().isidentifier()}
    assert {"openat", "listen"} <= made
    of_root = {"fchown"}  # SQLite gives its files to the owner of the database if root runs it, unlike the units
    assert made - {"syscall", "total"} - of_root - allowed_calls(analyze) == set()


def children_of(process):
    return [int(child) for child in Path(f"/proc/{process}/task/{process}/children").read_text().split()]
