"""Compiles whole statements: templates, detectors, measures, and the rows of rollup relations."""

import logging
from typing import Final

import sqlglot
from sqlglot import exp

from queries.compiler.constructs import Unsupported, check_constructs
from queries.compiler.names import Describe, write_out_names
from queries.compiler.rewrites import rewrite
from queries.compiler.selects import parenthesized, without_needless_parens
from queries.prelude import prelude, relation_names, sql_text

INPUTS: Final = (
    "visits", "links", "link_changes", "high_cardinality_days", "days_without_domains", "traffic_values", "subject",
)  # fmt: skip
"""The relations that a session must have before it runs a compiled statement."""

_STORED: Final = ("stored_rows", "rollup_rows", "stored_before")
"""Table macros that read rollups. A cluster has no rollups, so the parts of unions that call these macros are dropped.
"""

_TABLE_MACROS: Final = (
    "read_visits_with_aside", "read_visits", "read_scope_of_every_group", "read_scope_with_aside",
    "read_visits_in_scope", "read_scope_for_links", "visits_to_count",
)  # fmt: skip
"""Table macros that become relations with the same names, since their arguments only select files to read."""

logging.getLogger("sqlglot").setLevel(logging.ERROR)  # sqlglot warns about CREATE TYPE, which is not compiled


class Compiler:
    """Compiles statements that read the relations of the prelude."""

    def __init__(self, describe: Describe) -> None:
        """Parse the prelude. `describe` returns the columns of a DuckDB query with their types."""
        self._describe = describe
        self._macros: dict[str, exp.Create] = {}
        self._relations: dict[str, exp.Query] = {}
        for create in (tree for text in prelude() for tree in sqlglot.parse(text, dialect="duckdb")):
            if isinstance(create, exp.Create):
                name = create.this.this.name if isinstance(create.this, exp.UserDefinedFunction) else create.this.name
                if create.args["kind"] == "MACRO":
                    self._macros[name] = create
                elif name not in INPUTS:
                    self._relations[name] = create.expression
        for name in relation_names():  # without rollups, all rows are in this part
            self._relations[name] = self._relations.pop(f"{name}_counted")
            del self._relations[f"{name}_stored"]
        for name in _TABLE_MACROS:
            relation = self._relations[name] = self._body(name)
            for parameter in [*relation.find_all(exp.Column)]:  # DuckDB must be able to describe it
                if parameter.name == "visit_files":
                    parameter.replace(sqlglot.parse_one("getvariable('files')", dialect="duckdb"))

    def compiled(self, name: str) -> str:
        """Return the Spark SQL for a template, a detector or measure (`jobs/…`), or the rows of a new rollup
        (`rollups/…`). Raises Unsupported.
        """
        folder, _, relation = name.rpartition("/")
        if folder == "rollups":
            body = self._body("counted_" + relation.partition("_")[0])
            for table in body.find_all(exp.Table):
                if _function(table) == "query_table":
                    table.replace(exp.to_table(relation))
            return self.compile(body, f"relations/{relation}", "visits_by_domain")
        origin = name if folder else f"templates/{name}"
        return self.compile(sqlglot.parse_one(sql_text(origin), dialect="duckdb"), origin, "all_visits")

    def compile(self, tree: exp.Expr, origin: str, source: str) -> str:
        """Return the Spark SQL for one DuckDB statement. `origin` is its file, without .sql; `source` is the view that
        contains the visits.

        Raises Unsupported for a construct without a checked counterpart.
        """
        needed: dict[str, exp.Query] = {}
        try:
            statement = self._to_spark(tree, source)
            self._add_relations(statement, source, needed)
            own = [(cte.alias, cte.this) for cte in statement.ctes]
            statement.set("with_", None)
            for name, query in [*needed.items(), *own]:  # the relations that it reads come before its own CTEs
                statement.with_(name, as_=query, dialect="spark", copy=False)
            names = [cte.alias for cte in statement.find_all(exp.CTE)]
            if len(set(names)) < len(names):  # the generator for Spark moves them all to the top
                raise Unsupported(f"two of these CTEs have the same name: {', '.join(sorted(names))}")
        except Unsupported as error:
            raise Unsupported(f"queries/{origin}.sql: {error}") from error
        return statement.sql("spark", pretty=True, comments=False)

    def _add_relations(self, tree: exp.Query, source: str, needed: dict[str, exp.Query]) -> None:
        """Add the translated relations that a tree reads to `needed`, each after its own dependencies."""
        own = {cte.alias for cte in tree.find_all(exp.CTE)}
        if taken := own & self._relations.keys():
            raise Unsupported(f"the name of the relation {min(taken)} is used for a CTE")
        for name in [table.name for table in tree.find_all(exp.Table)]:
            if name in self._relations and name not in needed:
                try:
                    query = self._to_spark(self._relations[name], source)
                except Unsupported as error:
                    raise Unsupported(f"the relation {name}: {error}") from error
                self._add_relations(query, source, needed)
                needed[name] = query
            elif name not in self._relations and name not in INPUTS and name not in own:
                raise Unsupported(f"the relation {name} is not known")

    def _to_spark(self, tree: exp.Expr, source: str) -> exp.Query:
        """Return a query translated into Spark SQL, in which relations are read by their names."""
        tree = _without_stored_rows(tree.copy())
        if not isinstance(tree, exp.Query):
            raise Unsupported(f"{tree.sql('duckdb')[:200]}: not a query")
        write_out_names(tree, self._describe)
        _name_tables(tree, source)
        self._expand_macros(tree)  # in place: a query is not a macro call
        without_needless_parens(tree)
        rewrite(tree)
        check_constructs(tree)
        return tree

    def _body(self, macro: str) -> exp.Query:
        body: exp.Query = self._macros[macro].expression.copy()
        return body

    def _expand_macros(self, tree: exp.Expr) -> exp.Expr:
        """Return the tree with each call of a scalar macro replaced by the macro's body."""
        calls = [call for call in tree.find_all(exp.Anonymous) if call.name in self._macros]
        for call in reversed(calls):  # find_all yields outer nodes before inner nodes
            body = parenthesized(self._expand_macros(self._macro_body(call)))
            if call is tree:
                return body
            call.replace(body)
        return tree

    def _macro_body(self, call: exp.Anonymous) -> exp.Expr:
        """Return the body of a macro with the arguments of a call in place of its parameters."""
        macro = self._macros[call.name]
        arguments = dict(zip((name.name for name in macro.this.expressions), call.expressions, strict=True))
        body = exp.paren(macro.expression.copy(), copy=False)
        for column in [*body.find_all(exp.Column)]:
            if not column.table and column.name in arguments:
                if column.find_ancestor(exp.Select):  # the subquery may have a column with the same name as an argument
                    raise Unsupported(f"the macro {call.name} uses its parameter {column.name} in a subquery")
                column.replace(parenthesized(arguments[column.name].copy()))
        inner: exp.Expr = body.this
        return inner


def _without_stored_rows(tree: exp.Expr) -> exp.Expr:
    """Return the tree without the parts of unions that read rollups."""
    for union in [*tree.find_all(exp.Union)][::-1]:
        kept = [side for side in (union.this, union.expression) if not _reads_rollups(side)]
        if len(kept) == 1:
            side = kept[0]
            if ctes := union.args.get("with_"):
                side.set("with_", ctes)
            if union is tree:
                side.parent = None
                tree = side
            else:
                union.replace(side)
    return tree


def _reads_rollups(query: exp.Expr) -> bool:
    if isinstance(query, exp.Union):
        return _reads_rollups(query.this) and _reads_rollups(query.expression)
    source = query.args.get("from_")
    return source is not None and _function(source.this) in _STORED


def _function(table: exp.Expr) -> str:
    """Return the name of the table macro that a FROM item calls; "" for a plain name."""
    return table.this.name if isinstance(table.this, exp.Anonymous) else ""


def _name_tables(tree: exp.Expr, source: str) -> None:
    """Replace calls of table macros, and reads of Parquet files, with the names of relations."""
    names = {
        "visits_to_count_with_answers": "visits_with_known_answers",
        "visits_to_count_with_aside": f"aside_and_{source}",
        "detected_visits": "visits_with_aside",
        "query_table": source,
    }
    for table in [*tree.find_all(exp.Table)]:
        function = _function(table) or ("read_parquet" if isinstance(table.this, exp.ReadParquet) else "")
        if function in names:
            name = names[function]
        elif function == "visits_to_count_from":
            name = table.this.expressions[1].name
        elif function == "shared":
            name = table.this.expressions[0].name
        elif function == "read_parquet":
            text = table.sql("duckdb").lower()
            name = next((one for one in ("links", "link_changes") if f"getvariable('{one}')" in text), "visits")
        elif function:
            name = function if function in _TABLE_MACROS else ""
        else:
            continue
        if not name:
            raise Unsupported(f"the table function {function} is not supported")
        table.set("this", exp.to_identifier(name))
