"""The program `traffic`, with one file per command or group of commands. Results go to stdout, messages to stderr.

All commands are registered here, so all of their files are imported at each start. Slow imports (duckdb, the web
server, rich) are therefore inside the functions that need them.
"""

import sqlite3
import sys
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
    export,
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


app.command("demo")(demo.demo)
app.command("serve")(serve.serve)
app.command("sign-in")(sign_in.sign_in)
app.command("import")(importing.import_logs)
app.command("follow")(follow.follow)
app.command("query", cls=WithParameters)(query.query)
app.command("views", cls=WithParameters)(query.views)
app.command("export", cls=export.ExportCommand)(export.export)
app.command("report", cls=report.ReportCommand)(report.report)
app.command("mail")(mail.mail)
app.command("mcp")(mcp.mcp)
app.command("classify")(classify.classify)
app.command("countries")(countries.countries)
app.command("reclassify")(reclassify.reclassify)
app.command("compact")(compact.compact)
app.command("erase")(erase.erase)
app.command("retain")(retain.retain)
app.command("verify")(verify.verify)
app.command("rebuild")(rebuild.rebuild)
app.command("publish")(publish.publish)
app.command("backup")(backup.backup)
app.command("status")(status.status)
app.command("doctor")(doctor.doctor)
_GROUPS = {_module.__name__.rpartition(".")[2]: _module.app
           for _module in (agents, behaviour, hooks, jobs, keys, links, robots, zone)}  # fmt: skip
for _name, _group in _GROUPS.items():
    app.add_typer(_group, name=_name)
for _group in (app, *_GROUPS.values()):
    for _command in _group.registered_commands:  # without a short help, the first sentence, lists of commands cut it
        _command.cls = _command.cls if issubclass(_command.cls or typer.core.TyperCommand, Command) else Command
        _words = " ".join(((_command.callback and _command.callback.__doc__) or "").split())
        _command.short_help = f"{_words.partition('. ')[0].rstrip('.')}."


def main() -> None:
    """Run one command. Exit code 2: invalid argument or file, nothing was changed; 1: the command failed."""
    arguments = sys.argv[1:] or ["--help"]
    try:
        code = app(arguments, standalone_mode=False) or 0
    except (typer.Abort, KeyboardInterrupt):
        code = _fail("stopped.", 130)
    except typer.TyperException as error:
        code = _fail(getattr(error, "format_message", error.__str__)(), getattr(error, "exit_code", 2))
    except BadInput as error:
        code = _fail(str(error), 2)
    except TrafficError as error:
        code = _fail(str(error), 1)
    except RuntimeError as error:
        if str(error) != "Query interrupted":  # so DuckDB reports Ctrl-C
            raise
        code = _fail("stopped.", 130)
    except BrokenPipeError:
        sys.stderr.close()  # the reader of stdout is gone
        code = 1
    except sqlite3.Error as error:
        from data.store.schema import disk_problem

        code = _fail(f"the lake's database cannot be used: {disk_problem(error) or error}.", 1)
    except OSError as error:  # a full or failing disk
        code = _fail(f"{error.strerror or error}{f': {error.filename}' if error.filename else ''}.", 1)
    sys.exit(code)


def _fail(message: str, code: int) -> int:
    """Print a message to stderr, if there is one, and return the exit code."""
    if message:
        print(f"traffic: {message}", file=sys.stderr)
    return code
