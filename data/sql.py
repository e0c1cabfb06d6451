"""The SQL files of this floor, each next to the code that runs it."""

from functools import cache
from importlib import resources


@cache
def read_sql(package: str, path: str) -> str:
    """The text of `<path>.sql` inside a package, such as `read_sql("data.tasks", "sql/merged_visits")`."""
    return resources.files(package).joinpath(f"{path}.sql").read_text("utf-8")
