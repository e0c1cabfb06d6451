"""Reads the SQL files of this floor, which are next to the code that runs them."""

from functools import cache
from importlib import resources


@cache
def read_sql(package: str, path: str) -> str:
    """Return the text of `<path>.sql` in a package, such as `read_sql("data.tasks", "sql/merged_visits")`."""
    return resources.files(package).joinpath(f"{path}.sql").read_text("utf-8")
