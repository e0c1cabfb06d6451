"""No command is missing in the tests of read-only lakes and of lakes with an outdated manifest."""

from tests.service.ops.every_command import EVERY, WITHOUT_LAKE
from tests.support.command_tree import COMMANDS


def test_every_command_is_tried_over_unusual_lakes():
    """Add a row to EVERY: whether the command works on a read-only lake, and with an outdated manifest."""
    assert sorted(COMMANDS) == sorted({*EVERY, *WITHOUT_LAKE})
