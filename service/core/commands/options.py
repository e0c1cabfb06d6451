"""Flags and arguments shared by several commands, and functions that open a command's lake."""

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
    """Return the metavar that the help shows for a flag or parameter: the last word of its name, in capitals."""
    return name.replace("_", "-").rpartition("-")[2].upper()


def flag(name: str) -> Any:  # noqa: ANN401  # as typer.Option
    """Return the typer option for a setting, with its flag and its environment variable."""
    one = setting(name)
    return typer.Option(
        one.flag, envvar=one.variable, help=one.meaning, metavar=value_name(one.flag), show_default=True
    )


class Command(TyperCommand):
    """A command with help that shows the last word of each flag as its metavar, as in `--short-code CODE`.

    The commands that its messages recommend are printed with --lake, unless its lake is the default.
    """

    def get_params(self, ctx: Any) -> list[Any]:  # noqa: ANN401  # of private types
        """Return all arguments and options, with `--help` last."""
        params = super().get_params(ctx)
        for option in params:
            if isinstance(option, TyperOption) and not option.is_flag:
                option.metavar = option.metavar or value_name(option.opts[0])
        return params

    def invoke(self, ctx: Any) -> Any:  # noqa: ANN401  # of private types
        """Run the command, with LAKE set to its lake."""
        LAKE.set(Path(ctx.params.get("lake", DEFAULT_LAKE)))  # typer converts it to a Path later
        return super().invoke(ctx)


class CommandRow(NamedTuple):
    """A command in a room's table of commands; a group of commands is a typer.Typer instead."""

    run: Callable[..., None]
    cls: type[Command] = Command


LakeOption = Annotated[Path, flag("lake")]
OrganizationOption = Annotated[str, typer.Option("--org", help="organization: 1 to 64 of A-Z a-z 0-9 _ -")]
OnlyOrganizationOption = Annotated[str, typer.Option("--org", help="only this organization (default: all)")]
FormatOption = Annotated[str, typer.Option("--format", help="table, json, csv or parquet")]
RawOption = Annotated[bool, typer.Option("--raw", help="csv for programs: do not escape spreadsheet formulas")]


def day_of(flag: str, text: str) -> date:
    """Return the day given by a flag. Raises BadInput unless it is written like 2026-11-20."""
    try:
        if re.fullmatch(r"\d{4}-\d\d-\d\d", text, re.ASCII):
            return date.fromisoformat(text)
    except ValueError:
        pass
    raise BadInput(f"{flag} is {text!r}; write a date like 2026-11-20.")


def is_new(lake: Path) -> bool:
    """Return whether this path has no lake yet."""
    return not ((lake / "manifest.sqlite").exists() or (lake / "visits").exists())


def created_lake(lake: Path) -> Lake:
    """Return the lake at this path; if there is none yet, announce and create it."""
    announce_new_lake(lake)
    return Lake(lake, create=True)


def announce_new_lake(lake: Path) -> None:
    """If there is no lake at this path, print to stderr that one will be created, since the path may be mistyped."""
    if is_new(lake):
        inform(f"No lake at {lake.absolute()} yet: creating a new one.")


def chosen_organizations(lake: Lake, organization: str) -> list[str]:
    """Return the given organization or, if it is empty, all organizations that have had visits. Raises BadInput if the
    given organization does not exist.
    """
    return [existing_organization(lake, organization)] if organization else lake.manifest.organizations.names()


def existing_organization(lake: Lake, organization: str) -> str:
    """Return the organization if it has visits, links or an API key in the lake; otherwise raise BadInput with similar
    names.
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
    """Open the lake, read-only unless `must_write`. Raises BadInput if the lake has no such organization."""
    opened = Lake(lake, must_write=must_write)
    existing_organization(opened, organization)
    return opened
