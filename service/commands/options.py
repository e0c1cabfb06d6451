"""Flags that several commands share, generated from the table of settings."""

from pathlib import Path
from typing import Annotated, Any

import typer

from service.settings import setting


def flag(name: str) -> Any:  # noqa: ANN401  # as typer.Option
    """The flag of a setting, which its environment variable sets too."""
    one = setting(name)
    return typer.Option(f"--{name.replace('_', '-')}", envvar=one.variable, help=one.meaning, show_default=True)


LakeOption = Annotated[Path, flag("lake")]
OrganizationOption = Annotated[str, typer.Option("--org", help="organization: 1 to 64 of A-Z a-z 0-9 _ -")]
DEFAULT_LAKE = Path(setting("lake").default)


def announce_new_lake(lake: Path) -> None:
    """Say on stderr that there is no lake at this path yet, before one is created: the path may be mistyped."""
    if not ((lake / "manifest.sqlite").exists() or (lake / "visits").exists()):
        typer.echo(f"There is no lake at {lake.absolute()} yet: a new one is created.", err=True)
