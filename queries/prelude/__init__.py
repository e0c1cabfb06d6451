"""The SQL files that define the relations templates read, and their order.

A daily relation with visitors groups by visitor first and counts the groups: in one hash table that is faster and
smaller than counting distinct visitors in every group.
"""

import hashlib
from functools import cache
from importlib import resources
from typing import Final

KINDS: Final = ("daily", "monthly")
"""Of relations: counts of each day, and things that are seen, once for each month."""


def prelude() -> list[str]:
    """The SQL files that define the relations templates read, in the order in which they must run."""
    folder = resources.files("queries")
    return [
        file.read_text("utf-8")
        for part in ("prelude", *KINDS)
        for file in sorted(folder.joinpath(part).iterdir(), key=lambda file: file.name)
        if file.name.endswith(".sql")
    ]


@cache
def text_of(name: str) -> str:
    """A SQL file of this floor, by its path without the ending."""
    return resources.files("queries").joinpath(f"{name}.sql").read_text("utf-8")


def relations(kind: str) -> list[str]:
    """The names of the relations of a kind, without it, in order."""
    files = (file.name for file in resources.files("queries").joinpath(kind).iterdir())
    return sorted(name.removeprefix(f"{kind}_").removesuffix(".sql") for name in files if name.endswith(".sql"))


@cache
def version() -> str:
    """What tells cubes of these definitions from those of others."""
    texts = [*prelude(), *(text_of(f"cube/{name}") for name in ("raw", "held", "daily", "monthly"))]
    return hashlib.sha256("".join(texts).encode()).hexdigest()[:16]
