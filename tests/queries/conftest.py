"""What tests of the queries share."""

from contextlib import closing

import pytest

from queries import Warehouse


@pytest.fixture
def warehouse(lake):
    """The warehouse of `lake`."""
    with closing(Warehouse(lake)) as warehouse:
        yield warehouse
