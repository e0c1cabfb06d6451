"""Questions to users: confirmations of deletions, and choices of values."""

import sys
from collections.abc import Callable
from typing import TypeVar

import typer

from data import BadInput
from service.core.commands.printing import inform, pasteable

Answer = TypeVar("Answer")


def can_ask() -> bool:
    """Return whether a user can answer on a terminal."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def may_ask(yes: bool) -> bool:
    """Return whether a user can answer and has not passed --yes."""
    return not yes and can_ask()


def check_can_ask(yes: bool, dry_run: bool = False, otherwise: str = "continue, or --dry-run for a preview") -> None:
    """Raise BadInput if confirmation is needed, but there is no terminal. `otherwise` completes "use --yes to …"."""
    if not (yes or dry_run or can_ask()):
        raise BadInput(f"cannot ask for confirmation without a terminal: use --yes to {otherwise}.")


def is_confirmed(question: str) -> bool:
    """Ask a question on stderr; return whether the answer is yes."""
    typer.echo(f"{pasteable(question)} [y/N] ", nl=False, err=True)  # typer.confirm would write a space to stdout
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def ask(question: str) -> None:
    """Ask a question on stderr. Raises typer.Abort unless the answer is yes."""
    if not is_confirmed(question):
        raise typer.Abort


def answer_to(question: str, default: str, parse: Callable[[str], Answer]) -> Answer:
    """Ask a question on stderr until `parse` accepts the answer; Enter selects the default.

    Raises typer.Abort at the end of input.
    """
    while True:
        typer.echo(f"{pasteable(question)} [{default}]: ", nl=False, err=True)
        line = sys.stdin.readline()
        if not line:
            raise typer.Abort
        try:
            return parse(line.strip() or default)
        except BadInput as error:
            inform(str(error))
