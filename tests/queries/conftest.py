"""Fixtures for the query tests."""

from contextlib import closing

import pytest

from queries import Warehouse


@pytest.fixture
def warehouse(lake):
    """The warehouse of `lake`."""
    with closing(Warehouse(lake)) as warehouse:
        yield warehouse
