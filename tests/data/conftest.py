"""Fixtures for the tests of the data floor."""

from dataclasses import replace
from itertools import count

import duckdb
import pytest

from data import Lake
from data.ingest.importer import Importer, Options
from data.logs.formats import LineReader
from tests.support.lakes import paths, rows_of

ACME = Options("acme")


@pytest.fixture
def reopened(lake):
    """Open the lake again, as another process would, or open any other lake."""
    lakes = []

    def reopened(root=lake.root, create=False):
        lakes.append(Lake(root, create))
        return lakes[-1]

    yield reopened
    for other in lakes:
        other.manifest.close()


@pytest.fixture(scope="module")
def reader():
    """A reader of lines, like an import's."""
    with duckdb.connect() as engine:
        engine.execute("SET TimeZone = 'UTC'")
        yield LineReader(engine)


@pytest.fixture
def importer(lake):
    """An importer into `lake`."""
    return Importer(lake)


@pytest.fixture
def load(importer, tmp_path):
    """Import a string as a log, with `importer` or another importer."""

    def load(text, options=ACME, name="access.log", by=importer, **how):
        (tmp_path / name).write_bytes(text.encode() if isinstance(text, str) else text)
        return by.run(tmp_path / name, options, **how)

    return load


@pytest.fixture(scope="module")
def names():
    """Names for organizations, so that many examples can share a lake."""
    numbers = count()
    return lambda: f"example-{next(numbers)}"


class Logs:
    """The logs of one test. Tests share a lake and its importer, but each test has its own organizations."""

    def __init__(self, importer, lake, folder, name):
        self.importer, self.lake, self.path, self._name = importer, lake, folder / "access.log", name

    def own(self, organization="acme"):
        return f"{self._name}-{organization}"

    def load(self, content, options=ACME, name="access.log", **how):
        """Import a string as a file."""
        path = self.path.with_name(name)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return self.importer.run(path, replace(options, organization=self.own(options.organization)), **how)

    def batches(self):
        return self.lake.manifest.logs.batches(self.own(), "")

    def visits(self, organization="acme"):
        """Return every visit, ordered by day, short code and time."""
        return rows_of(self.lake, self.own(organization))

    def column(self, name, organization="acme"):
        """Return a column of every visit, by the visit's path."""
        return {visit["path"]: visit[name] for visit in self.visits(organization)}

    def paths(self, organization="acme"):
        return paths(self.lake, self.own(organization))


@pytest.fixture(scope="module")
def shared_importer(shared_lake):
    return Importer(shared_lake)


@pytest.fixture
def logs(shared_lake, shared_importer, names, tmp_path):
    return Logs(shared_importer, shared_lake, tmp_path, names())
