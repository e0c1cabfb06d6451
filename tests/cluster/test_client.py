"""The client that users install, the extra `cluster`, beside the servers that these tests run."""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cluster.processes import wait_until

ROOT = Path(__file__).parent.parent.parent
PROGRAM = Path(sys.executable).parent / "traffic"
DAYS = ["--start-date", "2026-10-25", "--end-date", "2026-11-20"]


@pytest.fixture(scope="session")
def traffic(tmp_path_factory):
    """Runs a program of an environment of its own with the extra `cluster`."""
    uv = shutil.which("uv")
    if uv is None:
        pytest.skip("uv is not installed: pip install uv")
    environ = {name: value for name, value in os.environ.items() if name != "VIRTUAL_ENV"}
    venv = tmp_path_factory.mktemp("client") / "venv"
    install = [uv, "sync", "--quiet", "--no-dev", "--extra", "cluster"]
    subprocess.run(install, cwd=ROOT, env={**environ, "UV_PROJECT_ENVIRONMENT": str(venv)}, check=True)

    def run(program, *words):
        command = [venv / "bin" / program, *map(str, words)]
        return subprocess.run(command, cwd=ROOT, env=environ, capture_output=True, text=True, check=False)

    return run


def test_the_extra_brings_another_client_than_the_servers_own(traffic):
    program = "from importlib.metadata import version; print(version('pyspark-client'))"
    assert traffic("python", "-c", program).stdout.startswith("4.2.")


@pytest.mark.parametrize("name", ["top-links", "weekly-trend"])
def test_query_prints_the_same_bytes_from_a_cluster(traffic, sample, spark, sail, name):
    asked = ["traffic", "query", name, "--org", "acme", "--lake", sample.root, *DAYS, "--format", "json"]
    here = traffic(*asked)
    for cluster in (spark, sail):
        there = traffic(*asked, "--engine", cluster.address)
        assert (there.returncode, there.stdout) == (0, here.stdout), there.stderr


def test_a_cluster_that_is_not_there_is_one_sentence(traffic, sample):
    asked = ["traffic", "query", "devices", "--org", "acme", "--lake", sample.root, *DAYS]
    refused = traffic(*asked, "--engine", "sc://127.0.0.1:1")
    assert refused.returncode
    assert "no cluster answers at 127.0.0.1:1" in refused.stderr
    assert "Traceback" not in refused.stderr


def test_ctrl_c_interrupts_a_query_on_the_cluster(sample, spark):
    with_ctrl_c = ["env", "--default-signal=INT"]  # a shell that runs the tests in the background would ignore it
    asked = [PROGRAM, "query", "bot-traffic", "--org", "acme", "--lake", sample.root, *DAYS, "--engine", spark.address]
    started, interrupted = spark.tasks(), spark.interrupted()
    with subprocess.Popen([*with_ctrl_c, *asked], stderr=subprocess.PIPE, text=True) as process:
        wait_until(lambda: spark.tasks() > started)
        with spark.stopped_executors():
            process.send_signal(signal.SIGINT)
            message = process.communicate()[1]
    assert (process.returncode, "Traceback" in message) == (130, False)
    assert spark.interrupted() > interrupted
