"""No command is forgotten by the tests of lakes that cannot be written, and of those whose manifest is outdated."""

from typer.main import get_command

from service.commands import app
from tests.service.ops.every_command import EVERY, WITHOUT_LAKE


def leaves(command, words=()):
    """The names of all commands that do something, as they are typed."""
    for name, one in command.commands.items():
        if hasattr(one, "commands"):
            yield from leaves(one, (*words, name))
        else:
            yield " ".join((*words, name))


def test_every_command_is_tried_over_unusual_lakes():
    """Add a row to EVERY: whether the command works on a lake that cannot be written, and on an outdated manifest."""
    assert sorted(leaves(get_command(app))) == sorted({*EVERY, *WITHOUT_LAKE})
