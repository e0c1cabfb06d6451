"""The program `traffic`, made up of the commands from all rooms. Results go to stdout, messages to stderr.

Every command's file is imported at each start, so slow imports (duckdb, the web server, rich) are inside the functions
that need them.
"""

import sqlite3
import sys
from importlib.metadata import version
from typing import Annotated, Final

import typer
from typer.main import get_command

from data import BadInput, TrafficError
from service import serve
from service.access.commands import table as access
from service.core.commands.options import Command, CommandRow
from service.core.commands.printing import pasteable
from service.dashboard import command as dashboard
from service.demo import command as demo
from service.exclusions import command as exclusions
from service.hooks import command as hooks
from service.intake.commands import table as intake
from service.jobs.commands import table as jobs
from service.mail import command as mail
from service.mcp import command as mcp
from service.ops.commands import table as ops
from service.reports.commands import table as reports
from service.robots import command as robots

app = typer.Typer(
    name="traffic",
    help="Analytics of traffic to short links: people, four kinds of AI traffic, other automated traffic.",
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


def _print_version(is_asked: bool) -> None:
    if is_asked:
        print(f"traffic {version('traffic-analytics')}")
        raise typer.Exit


@app.callback()
def _traffic(
    _: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Declare the options of `traffic` itself."""


ROOMS: Final = (access, dashboard, demo, exclusions, hooks, intake, jobs, mail, mcp, ops, reports, robots, serve)
ORDER: Final = (
    "demo serve sign-in import follow query views report mail mcp classify countries files reclassify compact erase "
    "retain verify rebuild publish backup status doctor"
)
"""The order of commands in `traffic --help`; commands that are not listed here follow, and command groups come last."""


def _rank(name: str) -> tuple[int, str]:
    names = ORDER.split()
    return (names.index(name) if name in names else len(names)), name


_COMMANDS = {name: command for room in ROOMS for name, command in room.COMMANDS.items()}
for _name in sorted(_COMMANDS, key=_rank):
    _command = _COMMANDS[_name]
    if isinstance(_command, CommandRow):
        app.command(_name, cls=_command.cls)(_command.run)
    else:
        app.add_typer(_command, name=_name)
for _group in (app, *(one for one in _COMMANDS.values() if isinstance(one, typer.Typer))):
    for _one in _group.registered_commands:  # lists of commands show the first sentence, not a truncated help
        _one.cls = _one.cls if issubclass(_one.cls or typer.core.TyperCommand, Command) else Command
        _words = " ".join(((_one.callback and _one.callback.__doc__) or "").split())
        _one.short_help = f"{_words.partition('. ')[0].rstrip('.')}."
PROGRAM: Final = get_command(app)
"""The tree of all commands."""


def _shortage(error: MemoryError | RuntimeError) -> tuple[str, int]:
    """Return the message and exit code for a lack of memory or threads, or for Ctrl-C. Re-raises any other error."""
    if isinstance(error, MemoryError):
        return "there is not enough memory.", 1
    if str(error) == "can't start new thread":
        return "the system allows no more threads; raise the limit (ulimit -u, TasksMax, pids).", 1
    if str(error) == "Query interrupted":  # how DuckDB reports Ctrl-C
        return "stopped.", 130
    raise error


def main() -> None:
    """Run one command. The exit code is 2 for an invalid argument or file, 1 for any other failure, 130 if stopped."""
    try:
        sys.exit(PROGRAM(sys.argv[1:] or ["--help"], standalone_mode=False) or 0)
    except (typer.Abort, KeyboardInterrupt):
        message, code = "stopped.", 130
    except typer.TyperException as error:
        message, code = getattr(error, "format_message", error.__str__)(), getattr(error, "exit_code", 2)
    except TrafficError as error:
        message, code = str(error), 2 if isinstance(error, BadInput) else 1
    except (MemoryError, RuntimeError) as error:
        message, code = _shortage(error)
    except BrokenPipeError:
        sys.stderr.close()  # the reader of stdout is gone
        sys.exit(1)
    except sqlite3.Error as error:
        from data.manifest.schema import disk_problem

        message, code = f"a database of the lake cannot be used: {disk_problem(error) or error}.", 1
    except OSError as error:  # a full or failing disk
        message, code = f"{error.strerror or error}{f': {error.filename}' if error.filename else ''}.", 1
    if message:
        print(f"traffic: {pasteable(message)}", file=sys.stderr)
    sys.exit(code)
