"""Writes out the names and types in a query's syntax tree that only DuckDB can resolve."""

from collections.abc import Callable

from sqlglot import exp

from queries.compiler.constructs import Unsupported
from queries.compiler.selects import flatten_tuples, nest

Describe = Callable[[str], dict[str, str]]
"""A function that returns the columns of a DuckDB query in order, with their types."""


def write_out_names(tree: exp.Expr, describe: Describe) -> None:
    """Expand stars, joins with USING, unions by name and QUALIFY in the tree, which stays in DuckDB's dialect."""
    flatten_tuples(tree)
    for select in [*tree.find_all(exp.Select)]:
        _write_out_stars(select, describe)
        _write_out_using(select)
    for union in [*tree.find_all(exp.Union)][::-1]:
        if union.args.get("by_name"):
            _write_out_by_name(union, describe)
    for select in [*tree.find_all(exp.Select)]:
        if select.args.get("qualify"):
            _write_out_qualify(select, describe)


def _schema_of(query: exp.Expr, place: exp.Expr, describe: Describe) -> dict[str, str]:
    """Return the columns of a query with their types. The query may read the CTEs that are visible at `place`."""
    ctes: list[str] = []
    node = place
    while parent := node.parent:
        if isinstance(parent, exp.With):
            before = parent.expressions[: node.index]
        else:
            around = parent.args.get("with_")
            before = around.expressions if around and around is not node else []
        ctes = [cte.sql("duckdb") for cte in before] + ctes
        node = parent
    inner = f"SELECT * FROM ({query.sql('duckdb')})"
    return describe(f"WITH {', '.join(ctes)} {inner}" if ctes else inner)


def _write_out_stars(select: exp.Select, describe: Describe) -> None:
    """Replace stars with their columns, except a plain `*` in a SELECT without USING, which all engines read alike."""
    has_using = any(join.args.get("using") for join in select.args.get("joins") or [])
    items: list[exp.Expr] = []
    for item in select.expressions:
        star = item.this if isinstance(item, exp.Column) else item
        qualifier = item.args.get("table")
        left_out = {column.name for column in star.args.get("except_") or []}
        replaced = {alias.alias: alias for alias in star.args.get("replace") or []}
        if not isinstance(star, exp.Star) or not (qualifier or left_out or replaced or has_using):
            items.append(item)
            continue
        probe = select.copy()
        for key in probe.args.keys() - {"from_", "joins", "with_"}:
            probe.set(key, None)
        probe.set("expressions", [exp.Column(this=exp.Star(), table=qualifier.copy()) if qualifier else exp.Star()])
        items += [
            replaced.get(name) or exp.column(name, qualifier.copy() if qualifier else None)
            for name in _schema_of(probe, select, describe)
            if name not in left_out
        ]
    select.set("expressions", items)


def _write_out_using(select: exp.Select) -> None:
    """Replace USING with ON; the shared columns then come from the left side."""
    joins = select.args.get("joins") or []
    shared: set[str] = set()
    left = select.args["from_"].this.alias_or_name if select.args.get("from_") else ""
    for join in joins:
        names = [name.name for name in join.args.get("using") or []]
        if not names:
            continue
        if len(joins) > 1 or not left or join.side not in ("", "LEFT"):
            raise Unsupported(f"{join.sql('duckdb')}: USING with another join, or with the right side's rows")
        right = join.this.alias_or_name
        equal = [exp.EQ(this=exp.column(name, left), expression=exp.column(name, right)) for name in names]
        join.set("using", None)
        join.set("on", exp.and_(*equal, copy=False))
        shared.update(names)
    if shared:
        parts = [
            *select.expressions,
            *(select.args[key] for key in ("where", "group", "having") if select.args.get(key)),
        ]
        for column in [column for part in parts for column in part.find_all(exp.Column)]:
            if not column.table and column.name in shared and column.parent_select is select:
                column.set("table", exp.to_identifier(left))


def _write_out_by_name(union: exp.Union, describe: Describe) -> None:
    """Make both sides select all columns in the same order. A missing column becomes NULL; NULLs and literals are cast
    to the type of their column in the union.
    """
    types = _schema_of(union, union, describe)
    for side in (union.this, union.expression):
        if not isinstance(side, exp.Select):
            raise Unsupported("UNION ALL BY NAME of more than two queries")
        if side.is_star:
            side.set("expressions", [exp.column(name) for name in _schema_of(side, side, describe)])
        items = {item.alias_or_name: item for item in side.expressions}
        side.set("expressions", [_with_type(items.get(name), name, kind) for name, kind in types.items()])
    union.set("by_name", False)


def _with_type(item: exp.Expr | None, name: str, kind: str) -> exp.Expr:
    value = exp.null() if item is None else item.unalias()
    if isinstance(value, exp.Null | exp.Literal):
        return exp.alias_(exp.cast(value, kind, dialect="duckdb"), name, copy=False)
    return item if item is not None else value


def _write_out_qualify(select: exp.Select, describe: Describe) -> None:
    """Turn QUALIFY into the WHERE of an outer query, which also gets the ORDER BY and LIMIT."""
    names = _schema_of(select, select, describe)
    if select.args.get("having"):
        raise Unsupported("QUALIFY with HAVING")
    condition = select.args["qualify"].this.copy()
    windows = [*condition.find_all(exp.Window)]
    if len(windows) != 1:
        raise Unsupported("QUALIFY without exactly one window")
    place = windows[0].copy()
    windows[0].replace(exp.column("place"))
    nest(select, list(names), exp.alias_(place, "place"), condition)
