"""The constructs that a compiled query may contain: each has been checked, and all others are errors."""

from typing import Final

from sqlglot import exp


class Unsupported(Exception):
    """A DuckDB construct without a checked counterpart in Spark."""


CHECKED_NODES: Final[frozenset[type[exp.Expr]]] = frozenset({
    # queries
    exp.Select, exp.Star, exp.From, exp.Join, exp.Where, exp.Group, exp.Having, exp.Order, exp.Ordered, exp.Limit,
    exp.Offset,
    exp.Union, exp.Subquery, exp.With, exp.CTE, exp.Table, exp.TableAlias, exp.Values, exp.Tuple, exp.Distinct,
    # names, values and types
    exp.Alias, exp.Column, exp.Identifier, exp.Literal, exp.Boolean, exp.Null, exp.Placeholder, exp.Cast, exp.DataType,
    exp.DataTypeParam, exp.Interval, exp.Var, exp.Array,
    # operators
    exp.Add, exp.Sub, exp.Mul, exp.Div, exp.IntDiv, exp.Mod, exp.DPipe, exp.Paren, exp.And, exp.Or, exp.Not, exp.EQ,
    exp.NEQ, exp.NullSafeEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.Between, exp.In, exp.Is, exp.Like, exp.Case, exp.If,
    exp.BitwiseAnd,
    # functions
    exp.Anonymous, exp.Lambda, exp.Coalesce, exp.Extract, exp.Exp, exp.Ln, exp.Pow, exp.Round, exp.MapFromEntries,
    exp.Count, exp.Sum, exp.Min, exp.Max, exp.LogicalOr, exp.BitwiseOrAgg, exp.Filter, exp.Window, exp.Contains,
    exp.Lower, exp.Substring,
})  # fmt: skip
"""Syntax tree nodes that DuckDB, Spark and Sail interpret alike, as tests/cluster/test_answers.py shows."""

FUNCTIONS: Final = frozenset({
    "aggregate", "array", "array_contains", "array_join", "array_sort", "collect_list", "collect_set", "datediff",
    "element_at", "explode", "nullif", "pmod", "regexp_extract", "regexp_replace", "row_number", "sequence",
    "shiftleft", "slice", "split", "struct", "transform", "trunc",
})  # fmt: skip
"""Spark and Sail functions that rewrites call by these names."""

JOINS: Final = frozenset({("", ""), ("LEFT", ""), ("LEFT", "SEMI"), ("LEFT", "ANTI"), ("FULL", "")})
"""The supported joins by side and kind, each with ON."""


def check_constructs(query: exp.Query) -> None:
    """Raise Unsupported for the first construct that has not been checked."""
    for node in query.walk():
        reason = f" ({type(node).__name__})" if type(node) not in CHECKED_NODES else _problem(node)
        if reason:
            raise Unsupported(f"{node.sql('duckdb')[:200]}{reason}")


def _problem(node: exp.Expr) -> str:
    """Return the reason why a node of a checked type is unsupported nevertheless; "" if it is supported."""
    match node:
        case exp.Anonymous():
            return "" if node.name in FUNCTIONS else ": an unchecked function"
        case exp.In() if node.args.get("query") and not _decides_about_rows(node):
            return ": IN with a subquery, outside a condition on rows or under NOT"
        case exp.Ordered() if node.args.get("nulls_first"):
            return ": an ORDER BY with NULLS FIRST"
        case exp.Join() if (node.side, node.kind) not in JOINS or node.method or not node.args.get("on"):
            return ": an unchecked kind of join"
        case exp.Union() if node.args.get("distinct") or node.args.get("by_name"):
            return ": a UNION without ALL"
    return ""


def _decides_about_rows(node: exp.In) -> bool:
    """Return whether a NULL result of an IN means the same as FALSE here; elsewhere engines differ."""
    place: exp.Expr | None = node
    while isinstance(place, exp.In | exp.And | exp.Or | exp.Paren):
        place = place.parent
    return isinstance(place, exp.Where | exp.Having)
