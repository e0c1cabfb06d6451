"""Compiled queries read only allowed relations, and the compiler rejects constructs that it cannot translate."""

import re
from contextlib import closing

import pytest
import sqlglot

from queries import Warehouse
from queries.compiler import INPUTS, Compiler, Unsupported
from queries.prelude import relation_names
from queries.scope import Scope
from tests.support.sql import TEXTS
from tests.support.tables import examples_at_once


@pytest.fixture(scope="module")
def compiler(shared_lake):
    with closing(Warehouse(shared_lake)) as warehouse:
        yield Compiler(warehouse.describe)


@pytest.mark.parametrize("name", [*TEXTS, *(f"rollups/{name}" for name in relation_names())])
def test_compiled_templates_always_filter_by_organization(compiler, name):
    text = compiler.compiled(name)
    (statement,) = sqlglot.parse(text, dialect="spark")
    ctes = {cte.alias for cte in statement.find_all(sqlglot.exp.CTE)}
    assert {table.name for table in statement.find_all(sqlglot.exp.Table)} <= ctes | set(INPUTS)
    parameters = set(re.findall(r"(?<!:):([a-z_]+)", text))
    assert parameters <= {"behaviour", "aside", *Scope.__dataclass_fields__}
    for relation in {"visits", "links"} - ({"links"} & ctes):
        for table in statement.find_all(sqlglot.exp.Table):
            if table.name == relation:
                where = table.parent_select.args["where"].sql("spark")
                assert "organization = CAST(:organization AS STRING)" in where


@examples_at_once("sql", "construct")
def test_the_error_names_an_unsupported_construct_and_its_file(compiler, sql, construct):
    tree = sqlglot.parse_one(sql, dialect="duckdb")
    with pytest.raises(Unsupported, match=r"queries/templates/own\.sql: ") as found:
        compiler.compile(tree, "templates/own", "all_visits")
    assert construct in str(found.value)


def test_a_macro_accepts_columns_and_expressions_as_arguments(compiler):
    tree = sqlglot.parse_one(
        "SELECT is_link(daily_links.domain, daily_links.short_code, FALSE) AS x FROM daily_links", dialect="duckdb"
    )
    with pytest.raises(Unsupported):  # outside of WHERE
        compiler.compile(tree, "own", "all_visits")
    tree = sqlglot.parse_one("SELECT share(a - b, a OR b) AS x FROM (SELECT 1 AS a, 2 AS b)", dialect="duckdb")
    text = " ".join(compiler.compile(tree, "own", "all_visits").split())
    assert "CAST(a - b AS DECIMAL(38, 0))" in text
    assert "CASE WHEN ( a OR b ) > 0" in text
