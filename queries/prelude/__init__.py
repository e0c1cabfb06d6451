"""The SQL files that define the relations templates read, and their order.

A daily relation with visitors groups by visitor first and counts the groups: in one hash table that is faster and
smaller than counting distinct visitors in every group.
"""

from importlib import resources


def prelude() -> list[str]:
    """The SQL files that define the relations templates read, in the order in which they must run."""
    folder = resources.files("queries")
    return [
        file.read_text("utf-8")
        for part in ("prelude", "daily")
        for file in sorted(folder.joinpath(part).iterdir(), key=lambda file: file.name)
        if file.name.endswith(".sql")
    ]
