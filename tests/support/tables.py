"""Tables of examples as data: `test_x.json` has the examples for `test_x.py`."""

import inspect
import json
from collections.abc import Callable
from functools import cache, wraps
from pathlib import Path
from typing import Any

import pytest


def examples(*names: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Run a test once for each row of the table named after it; a row has a value for each of these parameters."""

    def parametrized(test: Callable[..., None]) -> Callable[..., None]:
        rows = tables(test.__code__.co_filename)[test.__name__]
        mark = pytest.mark.parametrize(names if len(names) > 1 else names[0], rows)
        marked: Callable[..., None] = mark(test)
        return marked

    return parametrized


def examples_at_once(*names: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Run a test once for all rows of the table named after it; a failure names its row.

    This is for tests that take less time than starting a test does: their fixtures are not recreated for each row.
    """

    def tried(test: Callable[..., None]) -> Callable[..., None]:
        rows = tables(test.__code__.co_filename)[test.__name__]
        signature = inspect.signature(test)
        fixtures = [one for name, one in signature.parameters.items() if name not in names]

        @wraps(test)
        def with_all_rows(**found: Any) -> None:
            for row in rows:
                try:
                    test(**found, **dict(zip(names, row if len(names) > 1 else [row], strict=True)))
                except BaseException as error:
                    error.add_note(f"of the row {row!r}")
                    raise

        with_all_rows.__signature__ = signature.replace(parameters=fixtures)  # type: ignore[attr-defined]
        return with_all_rows

    return tried


@cache
def tables(file: str) -> dict[str, Any]:
    """Return the tables in the JSON file next to a test file, by name. Rows are tuples, like a test's parameters."""
    content = json.loads(Path(file).with_suffix(".json").read_text("utf-8"))
    return {name: _as_tuples(rows) for name, rows in content.items()}


def _as_tuples(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(map(_as_tuples, value))
    return {name: _as_tuples(member) for name, member in value.items()} if isinstance(value, dict) else value
