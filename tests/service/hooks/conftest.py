"""Receivers of hooks, closed at the end of a test."""

import pytest

from tests.service.hooks.receivers import Receiver


@pytest.fixture
def receiver():
    """Makes receivers."""
    made = []

    def receiver(*scripts, **how):
        made.append(Receiver(*scripts, **how))
        return made[-1]

    yield receiver
    for one in made:
        one.close()
