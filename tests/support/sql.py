"""SQL of a test over the relations, with the variables that the test wants."""

from queries import Warehouse
from queries.variables import Variables


def rows(warehouse: Warehouse, sql: str, variables: Variables) -> list[tuple]:
    """The rows of `sql` on the engine of a warehouse."""
    with warehouse._engine.cursor(variables) as cursor:
        return cursor.execute(sql).fetchall()
