"""The program `traffic`: one file for each group of commands. What programs read goes to stdout, all else to stderr.

Every command is registered here, so the files of all of them are loaded at each start. They import what is slow to
load (duckdb, the web server, rich) inside the functions that need it, and so does printing.py.
"""

import sqlite3
import sys

import typer

from data import BadInput, TrafficError
from service.commands import (
    agents,
    backup,
    classify,
    compact,
    demo,
    erase,
    follow,
    importing,
    keys,
    links,
    query,
    reclassify,
    retain,
    serve,
    status,
    verify,
)
from service.http.errors import InvalidParameter

app = typer.Typer(
    name="traffic",
    help="Who came by your short links: people, four kinds of AI traffic, other automation.",
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
app.command("demo")(demo.demo)
app.command("serve")(serve.serve)
app.command("import")(importing.import_logs)
app.command("follow")(follow.follow)
app.command("query")(query.query)
app.command("views")(query.views)
app.command("classify")(classify.classify)
app.command("reclassify")(reclassify.reclassify)
app.command("compact")(compact.compact)
app.command("erase")(erase.erase)
app.command("retain")(retain.retain)
app.command("verify")(verify.verify)
app.command("backup")(backup.backup)
app.command("status")(status.status)
app.add_typer(agents.app, name="agents")
app.add_typer(keys.app, name="keys")
app.add_typer(links.app, name="links")


def main() -> None:
    """Run one command. Exit code 2: a bad argument or file, nothing changed; 1: a failed run."""
    arguments = sys.argv[1:] or ["--help"]
    try:
        code = app(arguments, standalone_mode=False) or 0
    except typer.Abort:
        code = _fail("stopped.", 130)
    except typer.TyperException as error:
        code = _fail(getattr(error, "format_message", error.__str__)(), getattr(error, "exit_code", 2))
    except (BadInput, InvalidParameter) as error:
        code = _fail(str(error), 2)
    except TrafficError as error:
        code = _fail(str(error), 1)
    except BrokenPipeError:
        sys.stderr.close()  # whoever read us has left
        code = 1
    except sqlite3.Error as error:
        code = _fail(f"the lake's database cannot be used: {error}.", 1)
    except OSError as error:  # a full or failing disk
        code = _fail(f"{error.strerror or error}{f': {error.filename}' if error.filename else ''}.", 1)
    sys.exit(code)


def _fail(sentence: str, code: int) -> int:
    if sentence:
        print(f"traffic: {sentence}", file=sys.stderr)
    return code
