"""What tests of the data floor share."""

from itertools import count

import pytest

from data import Lake
from data.ingest.importer import Importer, Options

ACME = Options("acme")


@pytest.fixture
def reopened(lake):
    """Opens the lake again, as another process would."""
    lakes = []

    def reopened():
        lakes.append(Lake(lake.root))
        return lakes[-1]

    yield reopened
    for other in lakes:
        other.manifest.close()


@pytest.fixture
def importer(lake):
    """An importer into `lake`."""
    return Importer(lake)


@pytest.fixture
def load(importer, tmp_path):
    """Imports a text as a log, by this importer or another one."""

    def load(text, options=ACME, name="access.log", by=importer, **how):
        (tmp_path / name).write_bytes(text.encode() if isinstance(text, str) else text)
        return by.run(tmp_path / name, options, **how)

    return load


@pytest.fixture(scope="module")
def names():
    """Names for organizations, so that many examples share a lake."""
    numbers = count()
    return lambda: f"example-{next(numbers)}"
