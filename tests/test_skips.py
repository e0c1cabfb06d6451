"""TRAFFIC_TESTS=all: a test that cannot run fails instead of being overlooked."""

import os
import subprocess
import sys

import pytest

from tests.support.forks import ROOT

TESTS = """
import pytest

def test_runs(): pass

@pytest.mark.skipif(True, reason="strace is missing")
def test_marked(): pass

@pytest.fixture
def tool(): pytest.skip("nginx is missing")

def test_fixture(tool): pass

def test_itself(): pytest.skip("the real log is not here")

@pytest.mark.skipif(True, reason="the superuser may read anything")
def test_inapplicable(): pass

@pytest.mark.xfail(strict=True)
def test_known(): assert False
"""


@pytest.mark.parametrize(
    ("wanted", "counts"),
    [("", "1 passed, 4 skipped, 1 xfailed"), ("all", "1 failed, 1 passed, 1 skipped, 1 xfailed, 2 errors")],
)
def test_a_skipped_test_fails_if_all_tests_are_required(tmp_path, wanted, counts):
    (tmp_path / "test_some.py").write_text(TESTS)
    command = [sys.executable, "-m", "pytest", "-n0", "-q", "-p", "no:cacheprovider", "-p", "no:schemathesis"]
    command += ["-p", "tests.conftest", tmp_path]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    told = subprocess.run(
        command, cwd=ROOT, env=environment | {"TRAFFIC_TESTS": wanted}, capture_output=True, text=True, check=False
    ).stdout
    assert told.splitlines()[-1].startswith(counts), told
    assert all(name in told for name in ("strace", "nginx", "real log")) == bool(wanted), told
