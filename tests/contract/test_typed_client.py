"""A client generated from /openapi.json calls a real server."""

import os
import shutil
import subprocess
from datetime import UTC, datetime

import pytest

from tests.support.visits import land, visit

PROGRAM = """
import os

from traffic_client import AuthenticatedClient
from traffic_client.api.default import top_links, weekly_trend

client = AuthenticatedClient({address!r}, token=os.environ["KEY"], raise_on_unexpected_status=True)
for link in top_links.sync(client=client, domain="go.example.com"):
    print(link.short_code, link.visits)
print(len(weekly_trend.sync(client=client).weekly))
"""


@pytest.fixture
def run(tmp_path):
    """Run uv, which installs packages, in an empty folder; return its output. Skip the test without uv or the package
    index.
    """
    uv = shutil.which("uv")
    if uv is None:
        pytest.skip("uv is missing; it installs the generator")
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("VIRTUAL_ENV", "PYTHON"))}

    def run(*command, **variables):
        environment = {**clean, "NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1", **variables}
        how = {"cwd": tmp_path, "env": environment, "capture_output": True, "text": True}
        done = subprocess.run([uv, *command], check=False, **how)
        if "error sending request" in done.stderr.lower() or "dns error" in done.stderr.lower():
            pytest.skip("the package index cannot be reached")
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return run


def test_a_generated_client_reads_typed_answers(lake, server, key_of, run, tmp_path):
    land(lake, "acme", [visit(visited_at=datetime.now(UTC).replace(tzinfo=None), short_code="sale",
                              domain="go.example.com")] * 3)  # fmt: skip
    command = f"openapi-python-client generate --url {server.address}/openapi.json --meta none"
    run("tool", "run", *command.split(), "--output-path", "traffic_client")
    (tmp_path / "example.py").write_text(PROGRAM.format(address=server.address))
    packages = [word for name in ("httpx", "attrs", "python-dateutil") for word in ("--with", name)]
    printed = run("run", "--no-project", *packages, "python", "example.py", KEY=key_of(lake))
    link, weeks = printed.splitlines()
    assert link == "sale 3"
    assert int(weeks) in {5, 6}  # in a range of 30 days
