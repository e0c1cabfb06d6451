"""Fixtures for tests on a real cluster: Apache Spark and Sail on loopback, and a lake to count.

The tests need Debian's package openjdk-17-jre-headless and the dependency group "cluster". Without these, the tests are
skipped, or fail if TRAFFIC_TESTS is "all".
"""

import os
import shutil
from datetime import UTC, date, datetime
from importlib.util import find_spec

import pytest

from data import Lake
from data.ingest.importer import Importer, Options
from data.links.exports import read_export
from data.links.links import change_links
from data.tasks.compaction import Compactor
from service.demo.sample import Sample
from tests.cluster.processes import Sail, Spark


@pytest.fixture(scope="session", autouse=True)
def _programs():
    """Skip the tests if Java, Spark or Sail is missing, or fail them if all tests were requested."""
    reasons = {
        "Java is not installed: apt-get install openjdk-17-jre-headless": shutil.which("java"),
        "Spark and Sail are not installed: uv run --group cluster pytest tests/cluster": all(
            find_spec(name) for name in ("pyspark", "pysail")
        ),
    }
    missing = "; ".join(reason for reason, is_there in reasons.items() if not is_there)
    if missing and os.environ.get("TRAFFIC_TESTS") == "all":
        pytest.fail(f"{missing}; with TRAFFIC_TESTS=all no test is skipped")
    if missing:
        pytest.skip(missing)


@pytest.fixture(scope="session")
def spark(tmp_path_factory):
    """A running Spark: a master, two workers with one core each, and a Connect server."""
    spark = Spark(tmp_path_factory.mktemp("spark"))
    yield spark
    spark.stop()


@pytest.fixture(scope="session")
def sail(tmp_path_factory):
    """A running Sail."""
    sail = Sail(tmp_path_factory.mktemp("sail"))
    yield sail
    sail.stop()


@pytest.fixture(scope="session", params=["sail", "spark"])
def cluster(request):
    """Each cluster in turn."""
    return request.getfixturevalue(request.param)


@pytest.fixture(scope="session")
def sample(tmp_path_factory):
    """A lake with links, and with acme's visits on the twelve days up to 2026-11-20.

    The days are judged, since a server would judge them, and thus change its answers, during a test.
    """
    folder = tmp_path_factory.mktemp("sample")
    lake = Lake(folder / "lake", create=True)
    made = Sample(1_000, date(2026, 11, 20), 12)
    made.write(folder / "access.log")
    made.write_links(folder / "links.csv")
    Importer(lake).run(folder / "access.log", Options("acme"))
    now = datetime(2026, 11, 20, tzinfo=UTC)
    change_links(lake, "acme", read_export(folder / "links.csv", now).links, now)
    Compactor(lake).run()
    yield lake
    lake.manifest.close()
