"""The program `traffic`: one file for each group of commands. What programs read goes to stdout, all else to stderr."""

import sqlite3
import sys
from importlib import import_module
from typing import Any, Final

import typer
from typer.core import TyperGroup
from typer.main import get_command

from data import BadInput, TrafficError
from service.http.errors import BadParameter

_COMMANDS: Final = {
    "demo": "demo.demo",
    "serve": "serve.serve",
    "import": "importing.import_logs",
    "follow": "follow.follow",
    "query": "query.query",
    "views": "query.views",
    "classify": "classify.classify",
    "reclassify": "reclassify.reclassify",
    "compact": "compact.compact",
    "erase": "erase.erase",
    "retain": "retain.retain",
    "verify": "verify.verify",
    "backup": "backup.backup",
    "status": "status.status",
    "agents": "agents.app",
    "keys": "keys.app",
    "links": "links.app",
}
"""The file of each command in this folder, and what it is called there."""


class _Commands(TyperGroup):
    """The commands. The file of one is loaded when it is called; to tell of all, as --help does, takes all of them."""

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ANN401, ARG002  # what it is has no public name
        return list(_COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ANN401
        for name in [cmd_name] if cmd_name in _COMMANDS else _COMMANDS:  # of all: one of them may have been meant
            if name not in self.commands:
                self.add_command(_loaded(name), name)
        return super().get_command(ctx, cmd_name)


def _loaded(name: str) -> Any:  # noqa: ANN401
    """A command, or a group of commands, from its file."""
    file, _, called = _COMMANDS[name].partition(".")
    found = getattr(import_module(f"{__name__}.{file}"), called)
    alone = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
    if not isinstance(found, typer.Typer):
        alone.command(name)(found)
        return get_command(alone)
    alone.add_typer(found, name=name)
    group = get_command(alone)
    return group.commands[name]  # type: ignore[attr-defined]  # who holds a group is one


app = typer.Typer(
    name="traffic",
    help="Who came by your short links: people, four kinds of AI traffic, other automation.",
    cls=_Commands,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


@app.callback()
def _traffic() -> None: ...  # makes a group of what names no command yet


def main() -> None:
    """Run one command. Exit code 2: a bad argument or file, nothing changed; 1: a failed run."""
    arguments = sys.argv[1:] or ["--help"]
    try:
        code = app(arguments, standalone_mode=False) or 0
    except typer.Abort:
        code = _tell("stopped.", 130)
    except typer.TyperException as error:
        code = _tell(getattr(error, "format_message", error.__str__)(), getattr(error, "exit_code", 2))
    except (BadInput, BadParameter) as error:
        code = _tell(str(error), 2)
    except TrafficError as error:
        code = _tell(str(error), 1)
    except BrokenPipeError:
        sys.stderr.close()  # whoever read us has left
        code = 1
    except sqlite3.Error as error:
        code = _tell(f"the lake's database cannot be used: {error}.", 1)
    except OSError as error:  # a full or failing disk
        code = _tell(f"{error.strerror or error}{f': {error.filename}' if error.filename else ''}.", 1)
    sys.exit(code)


def _tell(sentence: str, code: int) -> int:
    if sentence:
        print(f"traffic: {sentence}", file=sys.stderr)
    return code
