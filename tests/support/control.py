"""Opens control.sqlite as another program would."""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import Any, TypeVar

from data import Lake
from service.access.api_keys import ApiKeys
from service.core.control_database import ControlDatabase

Store = TypeVar("Store")


@contextmanager
def open_store(store: Callable[..., Store], lake: Lake, *arguments: Any, **options: Any) -> Iterator[Store]:
    """Open a store, such as ApiKeys, over a lake's control database while in this context."""
    with closing(ControlDatabase(lake)) as database:
        yield store(database, *arguments, **options)


def owner(keys: ApiKeys, text: str) -> str | None:
    """Return the organization of an active key; None for any other string."""
    key = keys.find(text)
    return key.organization if key and key.state == "active" else None


def dump_of(lake: Lake) -> str:
    """Return the content of the control database as text."""
    with closing(sqlite3.connect(lake.root / "control.sqlite")) as database:
        return "\n".join(database.iterdump())
