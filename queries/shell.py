"""A script for DuckDB's own shell that sets the session variables and defines the relations of the prelude."""

from datetime import date
from typing import Final

from queries.prelude import prelude
from queries.snapshot import Snapshot

TYPED: Final = ("scope", "subjects")
"""Variables that are cast to the types that the prelude defines under the same names."""


def script(snapshot: Snapshot, hint: str = "") -> str:
    """Return SQL that shows the hint and makes every template return the same rows as in the Warehouse."""
    variables = snapshot.variables
    files = {name: value for name, value in variables.items() if name not in TYPED}
    settings = [f"SET VARIABLE {name} = {_literal(value)};" for name, value in files.items()]
    typed = [
        f"SET VARIABLE {name} = CAST({_literal(variables[name])} AS {name});" for name in TYPED if name in variables
    ]
    shown = [f"SELECT {_literal(hint)} AS hint;"] if hint else []
    return "\n".join(["SET TimeZone = 'UTC';", *settings, *prelude(), *typed, *shown, ""])


def _literal(value: object) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, list):
        return "[" + ", ".join(map(_literal, value)) + "]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"'{name}': {_literal(part)}" for name, part in value.items()) + "}"
    if isinstance(value, date):
        return f"DATE '{value}'"
    return str(value) if isinstance(value, int) else "'" + str(value).replace("'", "''") + "'"
