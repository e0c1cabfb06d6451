"""A script for DuckDB's own shell that sets the session variables and defines the relations of the prelude."""

from datetime import date
from typing import Any

from queries.prelude import prelude


def script(variables: dict[str, Any]) -> str:
    """SQL text; after running it, any template returns the same rows as the Warehouse does for `variables`."""
    files = {name: value for name, value in variables.items() if name != "scope"}
    settings = [f"SET VARIABLE {name} = {_literal(value)};" for name, value in files.items()]
    scope = f"SET VARIABLE scope = CAST({_literal(variables['scope'])} AS scope);"
    return "\n".join(["SET TimeZone = 'UTC';", *settings, *prelude(), scope, ""])


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
