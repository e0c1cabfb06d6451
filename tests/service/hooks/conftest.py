"""An outbox with a clock that a test moves."""

import pytest

from tests.service.hooks.outboxes import Outbox


@pytest.fixture
def outbox(lake):
    outbox = Outbox(lake)
    yield outbox
    outbox.hooks.database.close()
