"""What a test asks of a warehouse: reports of a lake, and SQL over the relations with the variables that it wants."""

from collections.abc import Iterable
from contextlib import closing
from typing import Any

import orjson

from data import Lake
from queries import ENTRIES, Scope, Warehouse
from queries.variables import Variables
from service.encoding import encode


def rows(warehouse: Warehouse, sql: str, variables: Variables) -> list[tuple]:
    """The rows of `sql` on the engine of a warehouse."""
    with warehouse._engine.cursor(variables) as cursor:
        return cursor.execute(sql).fetchall()


def answers(lake: Lake, scope: Scope, names: Iterable[str]) -> dict[str, Any]:
    """The answers of some reports, as they are in JSON."""
    with closing(Warehouse(lake)) as warehouse:
        variables = warehouse.variables(scope)
        return {name: orjson.loads(encode(warehouse.answer(ENTRIES[name], variables))) for name in names}
