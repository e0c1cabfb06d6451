"""Rewrites whole SELECTs: their tuples, GROUP BY, HAVING and UNNEST."""

from collections.abc import Sequence

from sqlglot import exp

from queries.compiler.constructs import Unsupported


def call(name: str, *arguments: exp.Expr | str | int) -> exp.Anonymous:
    """Return a call to a Spark function with exactly this name; strings and numbers become literals."""
    return exp.Anonymous(this=name, expressions=[exp.convert(argument) for argument in arguments])


def parenthesized(node: exp.Expr) -> exp.Expr:
    """Return the node, in parentheses if the precedence of its operators could be ambiguous."""
    mixes = isinstance(node, exp.Binary | exp.Not | exp.Neg | exp.In | exp.Between) and not isinstance(node, exp.Dot)
    return exp.paren(node, copy=False) if mixes else node


def without_needless_parens(tree: exp.Expr) -> exp.Expr:
    """Return the tree without parentheses that do not change the meaning."""
    for paren in [*tree.find_all(exp.Paren)][::-1]:
        inner, outer = paren.this, paren.parent
        if isinstance(outer, exp.And | exp.Or):
            is_needed = isinstance(inner, exp.And | exp.Or) and not isinstance(inner, type(outer))
        else:
            is_needed = isinstance(outer, exp.Binary | exp.Unary | exp.In | exp.Between | exp.Bracket)
        if paren is not tree and not is_needed:
            paren.replace(inner)
    return tree


def flatten_tuples(tree: exp.Expr) -> None:
    """Replace a tuple (a, b) AS c in a SELECT list with columns c_1 and c_2, and compare tuples column by column."""
    for select in [*tree.find_all(exp.Select)]:
        items: list[exp.Expr] = []
        for item in select.expressions:
            parts = item.unalias()
            if not isinstance(parts, exp.Tuple):
                items.append(item)
            elif item.alias:
                items += [
                    exp.alias_(part, f"{item.alias}_{number}", copy=False)
                    for number, part in enumerate(parts.expressions, start=1)
                ]
            else:  # of (a, b) IN (SELECT (c, d) FROM …)
                items += parts.expressions
        select.set("expressions", items)
    for equal in [*tree.find_all(exp.EQ, exp.NullSafeEQ)]:
        left, right = equal.this, equal.expression
        if not isinstance(right, exp.Tuple):
            continue
        if isinstance(equal, exp.EQ) and not isinstance(left, exp.Column):
            raise Unsupported(f"{equal.sql('duckdb')}: a comparison of tuples that may contain NULL")
        pairs = (
            zip(left.expressions, right.expressions, strict=True)
            if isinstance(left, exp.Tuple)
            else [
                (exp.column(f"{left.name}_{number}", left.table or None), part)
                for number, part in enumerate(right.expressions, start=1)
            ]
        )
        parts = [exp.NullSafeEQ(this=one.copy(), expression=other.copy()) for one, other in pairs]
        equal.replace(parenthesized(exp.and_(*parts, copy=False)))


def write_out_group(node: exp.Select) -> exp.Expr:
    """Spell out GROUP BY ALL and GROUP BY 1."""
    group = node.args.get("group")
    if group is None:
        return node
    items = [item.unalias() for item in node.expressions]
    if group.args.get("all"):
        if any(item.find(exp.Window) or item.is_star for item in items):
            raise Unsupported("GROUP BY ALL with a window or a star")
        keys: Sequence[exp.Expr] = [item for item in items if item.find(exp.Column) and not item.find(exp.AggFunc)]
    else:
        keys = [items[int(key.name) - 1] if key.is_int else key for key in group.expressions]
    node.set("group", exp.Group(expressions=[key.copy() for key in keys]))
    _compute_before_grouping(node, [key for key in keys if key.find(exp.Subquery)])
    return node


def _compute_before_grouping(node: exp.Select, keys: Sequence[exp.Expr]) -> None:
    """Move grouping keys that contain a subquery into an inner query, since Sail cannot group by the result of a
    subquery.
    """
    if not keys:
        return
    if node.args.get("joins") or node.args.get("where"):
        raise Unsupported("GROUP BY a subquery with a join or WHERE")
    names = {key.sql(): f"key_{number}" for number, key in enumerate(keys, start=1)}
    computed = [exp.alias_(key.copy(), names[key.sql()], copy=False) for key in keys]
    inner = exp.Select(expressions=[exp.Star(), *computed], from_=node.args["from_"])
    node.set("from_", exp.From(this=exp.Subquery(this=inner)))
    for part in [*node.expressions, *node.args["group"].expressions]:
        value = part.unalias()
        if value.sql() in names:
            value.replace(exp.column(names[value.sql()]))


def write_out_having(node: exp.Select) -> exp.Expr:
    """Turn HAVING into the WHERE of an outer query if an alias has the name of a column that HAVING aggregates, since
    Sail would use the alias.
    """
    having = node.args.get("having")
    if having is None:
        return node
    aliases = {item.alias for item in node.expressions if isinstance(item, exp.Alias)}
    counted = {column.name for function in having.find_all(exp.AggFunc) for column in function.find_all(exp.Column)}
    if aliases & counted:
        if having.find(exp.Subquery):
            raise Unsupported(f"HAVING with a subquery, over {min(aliases & counted)}, which is also an alias")
        names = [item.alias_or_name for item in node.expressions]
        nest(node, names, exp.alias_(having.this.copy(), "is_kept"), exp.column("is_kept"))
    return node


def nest(select: exp.Select, names: Sequence[str], computed: exp.Expr, condition: exp.Expr) -> None:
    """Wrap a SELECT, in place, in an outer query that keeps the rows where `condition` holds.

    The outer query gets the ORDER BY and the LIMIT. `names` are its columns. The condition refers to
    `computed`, an additional column of the inner query.
    """
    if computed.alias in names:
        raise Unsupported(f"a column named {computed.alias}")
    for column in order.find_all(exp.Column) if (order := select.args.get("order")) else ():
        if column.table or column.name not in names:
            raise Unsupported(f"ORDER BY {column.sql('duckdb')}, which is not selected, with QUALIFY or HAVING")
    inner = select.copy()
    for key in ("having", "qualify", "order", "limit", "with_"):
        inner.set(key, None)
    inner.set("expressions", [*inner.expressions, computed])
    select.set("expressions", [exp.column(name) for name in names])
    select.set("from_", exp.From(this=exp.Subquery(this=inner)))
    select.set("where", exp.Where(this=condition))
    for key in ("joins", "group", "having", "qualify", "distinct"):
        select.set(key, None)


def write_out_unnest(node: exp.Select) -> exp.Expr:
    """Move the unnest of a query without FROM into a subquery. In a query with FROM, an unnest stays in place; it must
    be the only one and a whole column. Raises Unsupported for other uses.
    """
    explodes = [*node.find_all(exp.Explode)]
    if not explodes or explodes[0].parent_select is not node:
        return node
    if node.args.get("from_") and len(explodes) == 1 and explodes[0].parent in node.expressions:
        explodes[0].replace(call("explode", explodes[0].this))
        return node
    if len(node.expressions) > 1 or node.args.get("from_"):
        raise Unsupported(f"{node.sql('duckdb')}: unnest with another column or with FROM")
    name = node.expressions[0].alias
    inner = exp.Select(expressions=[exp.alias_(call("explode", explodes[0].this), name, copy=False)])
    explodes[0].replace(exp.column(name))
    node.set("from_", exp.From(this=exp.Subquery(this=inner)))
    return node
