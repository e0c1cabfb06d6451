"""All commands of `traffic`, as its real tree has them."""

from service.commands import PROGRAM


def leaves(command=PROGRAM, *words):
    """The names of every command below a group, as they are typed, or of the command itself."""
    below = getattr(command, "commands", None)
    return [found for name in below for found in leaves(below[name], *words, name)] if below else [" ".join(words)]


COMMANDS = leaves()
