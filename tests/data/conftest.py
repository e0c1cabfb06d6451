"""What tests of the data floor share."""

from itertools import count

import pytest

from data import Lake


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


@pytest.fixture(scope="module")
def names():
    """Names for organizations, so that many examples share a lake."""
    numbers = count()
    return lambda: f"example-{next(numbers)}"
