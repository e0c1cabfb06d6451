"""How long-running operations report their progress."""

from collections.abc import Callable
from typing import TypeAlias

Progress: TypeAlias = Callable[[int, int], None]
"""Called with the amount done so far and the total, in the operation's own unit, such as bytes or partitions."""


def ignore_progress(_done: int, _total: int) -> None:
    """Do nothing: the default for operations that show no progress."""
