"""What tests of the service share: servers that behave as a script says."""

import pytest

from tests.service.outgoing.receivers import Receiver


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
