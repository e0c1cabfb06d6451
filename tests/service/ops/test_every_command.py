"""The tests for read-only lakes and for outdated manifests cover every command."""

from tests.service.ops.every_command import EVERY, WITHOUT_LAKE
from tests.support.command_tree import COMMANDS


def test_every_command_is_tried_on_unusual_lakes():
    """If this fails, add a row to EVERY that says how the command ends on such lakes."""
    assert sorted(COMMANDS) == sorted({*EVERY, *WITHOUT_LAKE})
