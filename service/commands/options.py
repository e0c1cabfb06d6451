"""The flags that several commands share, made from the table of settings."""

from pathlib import Path
from typing import Annotated, Any

import typer

from service.settings import setting


def flag(name: str) -> Any:  # noqa: ANN401  # what typer.Option gives
    """The flag of a setting."""
    known = setting(name)
    return typer.Option(f"--{name.replace('_', '-')}", envvar=known.variable, help=known.meaning, show_default=True)


LakeOption = Annotated[Path, flag("lake")]
OrganizationOption = Annotated[str, typer.Option("--org", help="organization: 1 to 64 of A-Z a-z 0-9 _ -")]
DEFAULT_LAKE = Path(setting("lake").default)
