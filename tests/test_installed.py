"""The program works outside of a clone: installed as a wheel, with the pinned versions and nothing else."""

import os
import shutil
import subprocess
import sys
from importlib.metadata import version

import pytest

from tests.support.docs import REQUIREMENTS, ROOT

LINE = '203.0.113.7 - - [01/Mar/2026:10:00:00 +0000] "GET /launch HTTP/1.1" 302 0 "-" "GPTBot/1.2"\n'


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    """Runs the installed `traffic` in an empty folder; returns what it prints."""
    uv = shutil.which("uv")
    if uv is None:
        pytest.skip("uv is missing, which installs the program")
    folder = tmp_path_factory.mktemp("installed")
    # the interpreter of the tests may be one of a project, whose variables must not reach another
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("VIRTUAL_ENV", "PYTHON"))}
    install = [uv, "pip", "install", "--quiet", "--python", "venv/bin/python"]
    for command in (
        [uv, "venv", "--quiet", "--python", sys.executable, "venv"],
        [*install, "--require-hashes", "-r", str(REQUIREMENTS)],
        [*install, "--no-deps", "--no-build-isolation", str(ROOT)],
        [uv, "pip", "check", "--quiet", "--python", "venv/bin/python"],
    ):
        done = subprocess.run(command, cwd=folder, env=clean, capture_output=True, text=True, check=False)
        if "error sending request" in done.stderr.lower() or "dns error" in done.stderr.lower():
            pytest.skip("the package index cannot be reached")
        assert done.returncode == 0, done.stderr

    def run(*arguments, **variables):
        command, environment = [folder / "venv/bin/traffic", *arguments], clean | variables
        return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=True).stdout

    (folder / "access.log").write_text(LINE)
    return run


def test_an_installed_program_imports_answers_and_reports(program):
    program("import", "access.log", "--org", "acme", "--domain", "go.example.com")
    answer = program(
        "query",
        "bot-traffic",
        "--org",
        "acme",
        "--start-date",
        "2026-03-01",
        "--end-date",
        "2026-03-01",
        "--format",
        "csv",
    )
    assert "GPTBot,OpenAI" in answer
    report = program("report", "--org", "acme", "--start-date", "2026-03-01", "--end-date", "2026-03-01")
    assert report.startswith("<!doctype html>")
    assert "GPTBot" in report or "OpenAI" in report


def test_an_installed_program_says_its_version(program):
    assert program("--version") == f"traffic {version('traffic-analytics')}\n"


def test_an_installed_program_completes_its_commands(program):
    asked = {"_TRAFFIC_COMPLETE": "complete_bash", "COMP_WORDS": "traffic que", "COMP_CWORD": "1"}  # as bash asks
    assert program(**asked).split() == ["query"]
