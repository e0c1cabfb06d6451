"""The SQL steps from the requests of a log to visits, and from visits to reclassified visits: one file each."""

from functools import cache
from importlib import resources


@cache
def step(name: str) -> str:
    """The SQL text of one step."""
    return resources.files(__name__).joinpath(f"{name}.sql").read_text("utf-8")
