"""A client that a generator makes from /openapi.json asks a real server, as the manual shows it."""

import os
import re
import shutil
import subprocess
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.support.visits import land, visit

MANUAL = Path(__file__).parent.parent.parent / "service/README.md"
ADDRESS = "http://127.0.0.1:8000"


@pytest.fixture
def run(tmp_path):
    """Runs a program with packages of its own in an empty folder; returns what it prints. Skips without the index."""
    uv = shutil.which("uv")
    if uv is None:
        pytest.skip("uv is missing, which installs the generator")
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("VIRTUAL_ENV", "PYTHON"))}

    def run(*command, **variables):
        environment = {**clean, "NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1", **variables}
        done = subprocess.run(
            [uv, *command], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )
        if "error sending request" in done.stderr.lower() or "dns error" in done.stderr.lower():
            pytest.skip("the package index cannot be reached")
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return run


def test_a_generated_client_reads_typed_answers(lake, server, key_of, run, tmp_path):
    land(lake, "acme", [visit(visited_at=datetime.now(UTC).replace(tzinfo=None), short_code="sale",
                              domain="go.example.com")] * 3)  # fmt: skip
    section = MANUAL.read_text("utf-8").partition("\n## A typed Python client\n")[2].partition("\n## ")[0]
    (command,) = re.findall(r"^uvx (.*)$", section, re.MULTILINE)
    (example,) = re.findall(r"^```python\n(.*?)^```", section, re.DOTALL | re.MULTILINE)
    run("tool", "run", *command.replace(ADDRESS, server.address).split())
    (tmp_path / "example.py").write_text(example.replace(ADDRESS, server.address))
    packages = [word for name in ("httpx", "attrs", "python-dateutil") for word in ("--with", name)]
    printed = run("run", "--no-project", *packages, "python", "example.py", KEY=key_of(lake))
    link, weeks = printed.splitlines()
    assert link == "sale 3"
    assert int(weeks) in {5, 6}  # that 30 days touch
