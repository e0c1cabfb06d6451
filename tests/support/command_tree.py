"""All commands of `traffic`, from its real command tree."""

from service.commands import PROGRAM


def leaves(command=PROGRAM, *words):
    """Return the names of all commands in a group, as they are typed; for a single command, only its name."""
    below = getattr(command, "commands", None)
    return [found for name in below for found in leaves(below[name], *words, name)] if below else [" ".join(words)]


COMMANDS = leaves()
