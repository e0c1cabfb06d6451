"""No command is forgotten by the tests of lakes that cannot be written, and of those whose manifest is outdated."""

from tests.service.ops.every_command import EVERY, WITHOUT_LAKE
from tests.support.command_tree import COMMANDS


def test_every_command_is_tried_over_unusual_lakes():
    """Add a row to EVERY: whether the command works on a lake that cannot be written, and on an outdated manifest."""
    assert sorted(COMMANDS) == sorted({*EVERY, *WITHOUT_LAKE})
