"""Flags and arguments shared by several commands, and functions to open the named lake."""

import re
from collections.abc import Callable
from contextlib import closing
from datetime import date
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer
from typer.core import TyperCommand, TyperOption

from data import BadInput, Lake, check_organization
from service.core import program
from service.core.commands.printing import LAKE, inform
from service.core.settings import setting

DEFAULT_LAKE = program.DEFAULT_LAKE


def value_name(name: str) -> str:
    """The metavar of a flag or parameter in the help: the last word of its name, in capitals."""
    return name.replace("_", "-").rpartition("-")[2].upper()


def flag(name: str) -> Any:  # noqa: ANN401  # as typer.Option
    """The flag of a setting, which can also be set by its environment variable."""
    one = setting(name)
    return typer.Option(
        one.flag, envvar=one.variable, help=one.meaning, metavar=value_name(one.flag), show_default=True
    )


class Command(TyperCommand):
    """A command with the last word of each flag as its metavar in the help, as in `--short-code CODE`.

    Its messages name its lake in the commands that they recommend.
    """

    def get_params(self, ctx: Any) -> list[Any]:  # noqa: ANN401  # of private types
        """All arguments and options; `--help` is the last."""
        params = super().get_params(ctx)
        for option in params:
            if isinstance(option, TyperOption) and not option.is_flag:
                option.metavar = option.metavar or value_name(option.opts[0])
        return params

    def invoke(self, ctx: Any) -> Any:  # noqa: ANN401  # of private types
        """Run the command."""
        LAKE.set(Path(ctx.params.get("lake", DEFAULT_LAKE)))  # typer makes a Path of it later
        return super().invoke(ctx)


class CommandRow(NamedTuple):
    """A command in the table of a room; a group of commands is a typer.Typer."""

    run: Callable[..., None]
    cls: type[Command] = Command


LakeOption = Annotated[Path, flag("lake")]
OrganizationOption = Annotated[str, typer.Option("--org", help="organization: 1 to 64 of A-Z a-z 0-9 _ -")]
OnlyOrganizationOption = Annotated[str, typer.Option("--org", help="only this organization; without it, all of them")]
FormatOption = Annotated[str, typer.Option("--format", help="table, json, csv or parquet")]
RawOption = Annotated[bool, typer.Option("--raw", help="csv for programs: do not escape spreadsheet formulas")]


def day_of(flag: str, text: str) -> date:
    """The day given by a flag. Raises BadInput."""
    try:
        if re.fullmatch(r"\d{4}-\d\d-\d\d", text, re.ASCII):
            return date.fromisoformat(text)
    except ValueError:
        pass
    raise BadInput(f"{flag} is {text!r}; write a date like 2026-11-20.")


def is_new(lake: Path) -> bool:
    """Whether this path has no lake yet."""
    return not ((lake / "manifest.sqlite").exists() or (lake / "visits").exists())


def created_lake(lake: Path) -> Lake:
    """Return the lake; create it, with a message, if this path has none yet."""
    announce_new_lake(lake)
    return Lake(lake, create=True)


def announce_new_lake(lake: Path) -> None:
    """Print to stderr that a new lake is about to be created, since the path may be mistyped."""
    if is_new(lake):
        inform(f"No lake at {lake.absolute()} yet: a new one is created.")


def chosen_organizations(lake: Lake, organization: str) -> list[str]:
    """The given organization, or all organizations with visits. Raises BadInput if it does not exist."""
    return [existing_organization(lake, organization)] if organization else lake.manifest.organizations.names()


def existing_organization(lake: Lake, organization: str) -> str:
    """Return an organization with visits, links or an API key in the lake. Raises BadInput with similar names
    otherwise.
    """
    known = lake.manifest.organizations.names()
    if check_organization(organization) in known or lake.links_folder(organization).exists():
        return organization
    from difflib import get_close_matches

    from service.core.control_database import ControlDatabase

    with closing(ControlDatabase(lake)) as control:
        with_keys = control.organizations_with_keys()
    if organization in with_keys:
        return organization
    near = get_close_matches(organization, {*known, *with_keys})
    remedy = f"did you mean {' or '.join(near)}?" if near else "import a log for it first."
    raise BadInput(f"the lake at {lake.root} has no organization {organization!r}; {remedy}")


def open_lake(lake: Path, organization: str, must_write: bool = False) -> Lake:
    """Open the lake, read-only unless `must_write`. Raises BadInput if it has no such organization."""
    opened = Lake(lake, must_write=must_write)
    existing_organization(opened, organization)
    return opened
