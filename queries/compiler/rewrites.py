"""Rewrites DuckDB's constructs into constructs that Spark and Sail interpret alike."""

from collections.abc import Callable
from datetime import date
from typing import Final, get_type_hints

import sqlglot
from sqlglot import exp

from queries.compiler.constructs import Unsupported
from queries.compiler.selects import call, flatten_tuples, write_out_group, write_out_having, write_out_unnest
from queries.scope import FILTERS, LISTING, Scope

_SQL_TYPES: Final = {str: "STRING", date: "DATE", bool: "BOOLEAN", int: "INT"}
_PARAMETERS: Final = {
    name: next(sql for kind, sql in _SQL_TYPES.items() if hint in (kind, kind | None))
    for name, hint in get_type_hints(Scope).items()
}
"""The fields of Scope, which are named parameters of a compiled query, with their types in Spark."""
_VARIABLES: Final = {name: _PARAMETERS[name] for name in (*FILTERS, *LISTING)} | {
    "behaviour": "BOOLEAN",
    "aside": "BIGINT",
}
"""Session variables with one value, which are named parameters as well."""

_LISTS: Final = ("high_cardinality_days", "days_without_domains")
"""Session variables that contain days. On a cluster, each is a relation with one column, day."""

_LOG_GAMMA: Final = """({x} - 0.5) * ln({x} + 7) + 7 * ln({x} + 7) - {x} - 7 + 0.9189385332046727
    + 1 / (12 * ({x} + 7)) - 1 / (360 * pow({x} + 7, 3)) + 1 / (1260 * pow({x} + 7, 5))
    - ln({x} * ({x} + 1) * ({x} + 2) * ({x} + 3) * ({x} + 4) * ({x} + 5) * ({x} + 6))"""
"""ln Γ(x) by Stirling's series at x + 7. If x is at least 1, the error is less than 1e-9."""


def rewrite(tree: exp.Expr) -> exp.Expr:
    """Return the tree, rewritten for Spark SQL. Raises Unsupported."""
    flatten_tuples(tree)
    for kind, rewritten in _REWRITES:
        for node in [*tree.find_all(kind)][::-1]:  # inner nodes first
            replacement = rewritten(node)
            if node is tree:
                tree = replacement
            elif replacement is not node:
                node.replace(replacement)
    return tree


def _parameter(node: exp.Dot) -> exp.Expr:
    """Turn a field of the scope into a named parameter."""
    if node.this.name != "getvariable" or node.this.expressions[0].name != "scope":
        return node
    name = node.expression.name
    if name not in _PARAMETERS:
        raise Unsupported(f"{node.sql('duckdb')}: the scope has no such field")
    return exp.cast(exp.Placeholder(this=name), _PARAMETERS[name], dialect="spark")


def _variable(node: exp.Anonymous) -> exp.Expr:
    """Turn a session variable with one value into a named parameter. `explain` becomes NULL: a cluster ignores it."""
    if node.name == "getvariable" and node.expressions[0].name == "explain":
        return exp.cast(exp.null(), "ARRAY<STRING>", dialect="spark")
    kind = _VARIABLES.get(node.expressions[0].name) if node.name == "getvariable" else None
    return exp.cast(exp.Placeholder(this=node.expressions[0].name), kind, dialect="spark") if kind else node


def _cast(node: exp.Cast) -> exp.Expr:
    """Turn HUGEINT into DECIMAL(38, 0), and a variable that contains days into a list of the days in the relation with
    the same name. Drop the second of two casts to the same type.
    """
    if isinstance(node.this, exp.Anonymous) and node.this.name == "getvariable":
        variable = node.this.expressions[0].name
        if variable not in _LISTS:
            raise Unsupported(f"{node.this.sql('duckdb')}: an unsupported variable")
        days = exp.Select(expressions=[call("collect_list", exp.column("day"))]).from_(variable, copy=False)
        return exp.Subquery(this=days)
    if node.to.this == exp.DType.INT128:
        return exp.cast(node.this, "DECIMAL(38, 0)", dialect="spark")
    if isinstance(node.this, exp.Cast) and node.this.to == node.to:
        return node.this
    return node


def _div(node: exp.Div) -> exp.Expr:
    """Divide as DOUBLE, as DuckDB's `/` always does."""
    number = node.this.unnest()
    if not (isinstance(number, exp.Cast) and number.to.this == exp.DType.DOUBLE):
        node.set("this", exp.cast(number, "DOUBLE"))
    return node


def _extract(node: exp.Extract) -> exp.Expr:
    """Compute weekdays from a known Monday, since engines number them differently. Hours, minutes and days stay
    unchanged.
    """
    part = node.name.upper()
    if part == "ISODOW":
        monday = exp.cast(exp.Literal.string("0001-01-01"), "DATE")
        return exp.paren(call("pmod", call("datediff", node.expression, monday), 7) + 1)
    if part not in ("HOUR", "MINUTE", "DAY"):
        raise Unsupported(f"{node.sql('duckdb')}")
    return node


def _days_between(node: exp.DateDiff) -> exp.Expr:
    """Return the number of days between the dates of two times."""
    if node.text("unit").upper() != "DAY":
        raise Unsupported(node.sql("duckdb"))
    days = call("datediff", exp.cast(node.this, "DATE"), exp.cast(node.expression, "DATE"))
    return exp.cast(days, "BIGINT")


def _trunc(node: exp.TimestampTrunc) -> exp.Expr:
    unit = node.args["unit"].name
    if unit not in {"WEEK", "MONTH"}:
        raise Unsupported(node.sql("duckdb"))
    return call("trunc", node.this, unit)


def _series(node: exp.GenerateSeries) -> exp.Expr:
    """Turn a series into a sequence. Spark counts an empty series downwards, so the end of a range must be a literal or
    x + 1.
    """
    start, end, step = node.args["start"], node.args["end"], node.args.get("step")
    if node.args.get("is_end_exclusive"):
        if end.is_int:
            end = exp.Literal.number(int(end.name) - 1)
        elif isinstance(end, exp.Add) and end.expression.name == "1":
            end = end.this
        else:
            raise Unsupported(f"{node.sql('duckdb')}: a range that may be empty")
    return call("sequence", start, end, *([step] if step else []))


def _bracket(node: exp.Bracket) -> exp.Expr:
    """Translate access to an element of a list literal or of a map from a subquery, or to the first elements of
    list_sort(list(DISTINCT x)).
    """
    (index,) = node.expressions
    if isinstance(index, exp.Slice) and isinstance(node.this, exp.ArraySort):
        (value,) = node.this.this.this.expressions
        return call("slice", call("array_sort", call("collect_set", value)), index.this, index.expression)
    if isinstance(node.this, exp.Array) and not index.is_number:
        return call("element_at", call("array", *node.this.expressions), exp.cast(index.unnest(), "INT"))
    inner = node.this.unnest()
    if isinstance(inner, exp.Subquery | exp.Select) and inner.find(exp.ArrayAgg):
        query = inner if isinstance(inner, exp.Subquery) else exp.Subquery(this=inner)
        for entries in [*query.find_all(exp.ArrayAgg)]:
            entries.replace(call("collect_list", call("struct", *entries.this.expressions)))
        return call("element_at", query, index)
    raise Unsupported(node.sql("duckdb"))


def _joined_list(node: exp.ArrayToString) -> exp.Expr:
    """Translate array_to_string(list_sort(list(DISTINCT x) FILTER (…)), ', '), where x is not text. The result is NULL
    if there are no rows.

    The argument of array_to_string may also be a column of lists of strings.
    """
    if isinstance(node.this, exp.Column):
        return call("array_join", node.this, node.expression)
    distinct = node.this.this if isinstance(node.this, exp.ArraySort) else None
    if not (isinstance(distinct, exp.Filter) and isinstance(distinct.this.this, exp.Distinct)):
        raise Unsupported(node.sql("duckdb"))
    (value,) = distinct.this.this.expressions
    distinct.set("this", call("collect_set", value))
    texts = exp.cast(call("array_sort", distinct), "ARRAY<STRING>", dialect="spark")
    return call("nullif", call("array_join", texts, node.expression), "")


def _ordered_list(node: exp.Filter) -> exp.Expr:
    """Translate coalesce(list(x ORDER BY x) FILTER (…), …), where x is never NULL. Without rows, Spark returns an empty
    list.
    """
    if not isinstance(node.this, exp.ArrayAgg):
        return node
    order = node.this.this
    keys = order.expressions if isinstance(order, exp.Order) else []
    if len(keys) != 1 or keys[0].this != order.this or keys[0].args.get("desc"):
        raise Unsupported(f"{node.sql('duckdb')}: a list that is not ordered by its own values")
    if not isinstance(node.parent, exp.Coalesce):
        raise Unsupported(f"{node.sql('duckdb')}: a list that may be NULL")
    node.set("this", call("collect_list", order.this))
    return call("array_sort", node.copy())


def _summed_list(node: exp.Anonymous) -> exp.Expr:
    """Translate list_sum(list_transform(…, lambda k: …)) with DOUBLE terms, and the log-gamma function."""
    if node.name == "lgamma":
        x = exp.cast(node.expressions[0], "DOUBLE").sql("duckdb")
        return exp.paren(sqlglot.parse_one(_LOG_GAMMA.format(x=x), dialect="duckdb"))
    if node.name != "list_sum" or not isinstance(node.expressions[0], exp.Transform):
        return node
    terms = node.expressions[0]
    add = exp.Lambda(
        this=exp.Add(this=exp.to_identifier("total"), expression=exp.to_identifier("term")),
        expressions=[exp.to_identifier("total"), exp.to_identifier("term")],
    )
    zero = exp.cast(exp.Literal.number(0), "DOUBLE")
    return call("aggregate", call("transform", terms.this, terms.expression), zero, add)


def _row_number(node: exp.Window) -> exp.Expr:
    """Cast row_number() to BIGINT, its type in DuckDB; in Spark it is an INT."""
    if not isinstance(node.this, exp.RowNumber):
        return node
    node.set("this", call("row_number"))
    return exp.cast(node.copy(), "BIGINT")


def _join(node: exp.Join) -> exp.Expr:
    if node.kind in ("SEMI", "ANTI"):
        node.set("side", "LEFT")
    return node


_REWRITES: Final[tuple[tuple[type[exp.Expr], Callable[..., exp.Expr]], ...]] = (
    (exp.Select, write_out_group),
    (exp.Select, write_out_having),
    (exp.Dot, _parameter),
    (exp.Anonymous, _variable),
    (exp.Cast, _cast),
    (exp.Div, _div),
    (exp.Extract, _extract),
    (exp.DateDiff, _days_between),
    (exp.TimestampTrunc, _trunc),
    (exp.BitwiseLeftShift, lambda node: call("shiftleft", node.this, exp.cast(node.expression.unnest(), "INT"))),
    (exp.GenerateSeries, _series),
    (exp.Select, write_out_unnest),
    (exp.Bracket, _bracket),
    (exp.ArrayToString, _joined_list),
    (exp.Filter, _ordered_list),
    (exp.Anonymous, _summed_list),
    (exp.Transform, lambda node: call("transform", node.this, node.expression)),
    (exp.RegexpReplace, lambda node: call("regexp_replace", node.this, node.expression, node.args["replacement"])),
    (exp.ArrayContains, lambda node: call("array_contains", node.this, node.expression)),
    (exp.Split, lambda node: call("split", node.this, node.expression)),
    (exp.Window, _row_number),
    (exp.Join, _join),
    (exp.RegexpExtract, lambda node: call("regexp_extract", node.this, node.expression, node.args["group"])),
)
"""The rewrites, in the order in which they run."""
