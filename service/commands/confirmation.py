"""Asks before something is deleted."""

import sys

import typer

from data import BadInput


def can_ask() -> bool:
    """Whether there is a terminal on which somebody can answer."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def check_can_ask(yes: bool, dry_run: bool = False, otherwise: str = "go on, or --dry-run for a preview") -> None:
    """Raise BadInput when a question would have to be asked where nobody can answer it."""
    if not (yes or dry_run or can_ask()):
        raise BadInput(f"not a terminal, so nobody can be asked to confirm: use --yes to {otherwise}.")


def is_confirmed(question: str) -> bool:
    """Ask a question on stderr. Whether the answer is yes."""
    typer.echo(f"{question} [y/N] ", nl=False, err=True)  # typer.confirm would write a space to stdout
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def ask(question: str) -> None:
    """Ask a question on stderr. Raises typer.Abort unless the answer is yes."""
    if not is_confirmed(question):
        raise typer.Abort
