"""Tests of the client that the extra `cluster` installs for users, against the servers of the other tests."""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import httpx2
import pytest

from tests.cluster.processes import wait_until

ROOT = Path(__file__).parent.parent.parent
PROGRAM = Path(sys.executable).parent / "traffic"
PARAMETERS = {"start_date": "2026-10-25", "end_date": "2026-11-20"}
DAYS = ["--start-date", "2026-10-25", "--end-date", "2026-11-20"]


@pytest.fixture(scope="session")
def programs(tmp_path_factory):
    """The folder of programs in a separate environment, with the extra `cluster`."""
    uv = shutil.which("uv")
    if uv is None:
        pytest.skip("uv is not installed: pip install uv")
    environ = {name: value for name, value in os.environ.items() if name != "VIRTUAL_ENV"}
    venv = tmp_path_factory.mktemp("client") / "venv"
    install = [uv, "sync", "--quiet", "--no-dev", "--extra", "cluster"]
    subprocess.run(install, cwd=ROOT, env={**environ, "UV_PROJECT_ENVIRONMENT": str(venv)}, check=True)
    return venv / "bin"


@pytest.fixture(scope="session")
def traffic(programs):
    """Run a program from the separate environment."""

    def run(program, *words):
        command = [programs / program, *map(str, words)]
        return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)

    return run


def test_the_extra_installs_version_4_2_of_the_client(traffic):
    program = "from importlib.metadata import version; print(version('pyspark-client'))"
    assert traffic("python", "-c", program).stdout.startswith("4.2.")


@pytest.mark.parametrize("name", ["top-links", "weekly-trend"])
def test_query_prints_the_same_bytes_from_a_cluster(traffic, sample, cluster, name):
    asked = ["traffic", "query", name, "--org", "acme", "--lake", sample.root, *DAYS, "--format", "json"]
    here, there = traffic(*asked), traffic(*asked, "--engine", cluster.address)
    assert (there.returncode, there.stdout, there.stderr) == (0, here.stdout, here.stderr)
    refused = traffic(*asked, "--engine", "sc://127.0.0.1:1")
    assert refused.returncode
    assert "no cluster responds at 127.0.0.1:1" in refused.stderr
    assert "Traceback" not in refused.stderr


@pytest.mark.parametrize("client", ["of the extra", "of Apache Spark"])
def test_queries_are_answered_after_connect_restarts(request, serving, key_of, sample, spark, client):
    folder = request.getfixturevalue("programs") if client == "of the extra" else PROGRAM.parent
    headers = {"Authorization": f"Bearer {key_of(sample)}"}
    settings = {"engine": spark.address, "engine_from": 0, "engine_timeout": 600, "monitor_port": 0}
    with (
        serving(sample, is_installed=True, folder=folder, **settings) as server,
        httpx2.Client(base_url=server.address, headers=headers, trust_env=False, timeout=600) as asking,
    ):
        asking.get("/analytics/devices", params=PARAMETERS).raise_for_status()
        spark.connect.stop()
        spark.start_connect()
        for name in ("browsers", "top-links"):
            asking.get(f"/analytics/{name}", params=PARAMETERS).raise_for_status()
        counted = httpx2.get(f"{server.monitor}/metrics", trust_env=False).text
        assert 'traffic_cluster_answers_total{outcome="answered"} 3.0' in counted


@pytest.mark.parametrize("is_published", [False, True])
def test_the_server_prints_its_cluster_and_source_at_startup(sample, tmp_path, is_published):
    there = str(tmp_path / "copy") if is_published else ""
    environ = {**os.environ, "TRAFFIC_ENGINE": "sc://127.0.0.1:1/;token=secret", "TRAFFIC_PUBLISH": there}
    command = [PROGRAM, "serve", "--port", "0", "--lake", sample.root]
    with subprocess.Popen(command, env=environ, stderr=subprocess.PIPE, text=True) as process:
        told = process.stderr.readline()
        process.terminate()
        process.stderr.read()
    read = f"the copy at {there}" if is_published else sample.root
    assert told == f"Queries that read 50,000,000 visits or more run at sc://127.0.0.1:1, and use {read}.\n"


def test_ctrl_c_interrupts_a_query_on_the_cluster(sample, spark):
    with_ctrl_c = ["env", "--default-signal=INT"]  # a shell that runs the tests in the background ignores it
    asked = [PROGRAM, "query", "bot-traffic", "--org", "acme", "--lake", sample.root, *DAYS, "--engine", spark.address]
    started, interrupted = spark.tasks(), spark.interrupted()
    with subprocess.Popen([*with_ctrl_c, *asked], stderr=subprocess.PIPE, text=True) as process:
        wait_until(lambda: spark.tasks() > started)
        with spark.stopped_executors():
            process.send_signal(signal.SIGINT)
            message = process.communicate()[1]
    assert (process.returncode, "Traceback" in message) == (130, False)
    assert spark.interrupted() > interrupted
