"""The program `traffic`, with one file per command or group of commands. Results go to stdout, messages to stderr.

All commands are registered here, so all of their files are imported at each start. Slow imports (duckdb, the web
server, rich) are therefore inside the functions that need them.
"""

import sqlite3
import sys
from collections.abc import Callable
from importlib.metadata import version
from typing import Annotated

import typer

from data import BadInput, TrafficError
from service.commands import (
    agents,
    backup,
    behaviour,
    classify,
    compact,
    countries,
    demo,
    doctor,
    erase,
    follow,
    hooks,
    importing,
    jobs,
    keys,
    links,
    mail,
    mcp,
    publish,
    query,
    rebuild,
    reclassify,
    report,
    retain,
    robots,
    serve,
    sign_in,
    status,
    verify,
    zone,
)
from service.commands.filters import WithParameters
from service.commands.options import Command

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


_COMMANDS: dict[str, Callable[..., None]] = {
    "demo": demo.demo, "serve": serve.serve, "sign-in": sign_in.sign_in, "import": importing.import_logs,
    "follow": follow.follow, "query": query.query, "views": query.views, "report": report.report,
    "mail": mail.mail, "mcp": mcp.mcp, "classify": classify.classify,
    "countries": countries.countries, "reclassify": reclassify.reclassify, "compact": compact.compact,
    "erase": erase.erase, "retain": retain.retain, "verify": verify.verify, "rebuild": rebuild.rebuild,
    "publish": publish.publish, "backup": backup.backup, "status": status.status, "doctor": doctor.doctor,
}  # fmt: skip
_WITH_PARAMETERS = {"query": WithParameters, "views": WithParameters, "report": report.ReportCommand}
for _name, _function in _COMMANDS.items():
    app.command(_name, cls=_WITH_PARAMETERS.get(_name))(_function)
_GROUPS = {_module.__name__.rpartition(".")[2]: _module.app
           for _module in (agents, behaviour, hooks, jobs, keys, links, robots, zone)}  # fmt: skip
for _name, _group in _GROUPS.items():
    app.add_typer(_group, name=_name)
for _group in (app, *_GROUPS.values()):
    for _command in _group.registered_commands:  # without a short help, the first sentence, lists of commands cut it
        _command.cls = _command.cls if issubclass(_command.cls or typer.core.TyperCommand, Command) else Command
        _words = " ".join(((_command.callback and _command.callback.__doc__) or "").split())
        _command.short_help = f"{_words.partition('. ')[0].rstrip('.')}."


def _shortage(error: MemoryError | RuntimeError) -> tuple[str, int]:
    """The sentence and the exit code for a lack of memory or threads, or Ctrl-C. Raises any other error."""
    if isinstance(error, MemoryError):
        return "there is not enough memory.", 1
    if str(error) == "can't start new thread":
        return "the system allows no more threads; raise the limit (ulimit -u, TasksMax, pids).", 1
    if str(error) == "Query interrupted":  # so DuckDB reports Ctrl-C
        return "stopped.", 130
    raise error


def main() -> None:
    """Run one command. Exit code 2: invalid argument or file, nothing was changed; 1: the command failed."""
    try:
        sys.exit(app(sys.argv[1:] or ["--help"], standalone_mode=False) or 0)
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

        message, code = f"the lake's database cannot be used: {disk_problem(error) or error}.", 1
    except OSError as error:  # a full or failing disk
        message, code = f"{error.strerror or error}{f': {error.filename}' if error.filename else ''}.", 1
    if message:
        print(f"traffic: {message}", file=sys.stderr)
    sys.exit(code)
