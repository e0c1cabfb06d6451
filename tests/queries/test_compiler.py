"""The texts in queries/spark/ are those that the compiler writes, and it refuses what it cannot carry."""

import re
from pathlib import Path

import pytest
import sqlglot

from queries import DETECTORS, ENTRIES, template_entries
from queries.compiler.__main__ import OUTPUT
from queries.compiler.constructs import NotCarried
from queries.compiler.statements import INPUTS, compiled_files, compiling
from queries.prelude import relation_names
from queries.scope import Scope
from tests.tables import examples

TEXTS = {str(path.relative_to(OUTPUT).with_suffix("")): path.read_text("utf-8") for path in OUTPUT.rglob("*.sql")}


@pytest.fixture(scope="module")
def compiler():
    with compiling() as compiler:
        yield compiler


def test_the_compiled_texts_are_up_to_date():
    stale = "out of date: run `uv run python -m queries.compiler`"
    assert dict(compiled_files()) == TEXTS, stale


def test_there_is_a_text_for_every_report_detector_measure_and_rollup_relation():
    entries = [leaf for entry in ENTRIES.values() for leaf in template_entries(entry)]
    entries += [entry for detector in DETECTORS.values() for entry in (detector.entry, detector.measure)]
    assert {entry.name for entry in entries} | {f"rollups/{name}" for name in relation_names()} == TEXTS.keys()


@pytest.mark.parametrize("name", sorted(TEXTS))
def test_a_text_reads_nothing_but_its_inputs_and_parameters_and_always_filters_by_organization(name):
    (statement,) = [tree for tree in sqlglot.parse(TEXTS[name], dialect="spark") if tree]
    ctes = {cte.alias for cte in statement.find_all(sqlglot.exp.CTE)}
    assert {table.name for table in statement.find_all(sqlglot.exp.Table)} <= ctes | set(INPUTS)
    parameters = set(re.findall(r"(?<!:):([a-z_]+)", TEXTS[name].split("\n", 2)[2]))
    assert parameters <= set(Scope.__dataclass_fields__)
    for relation in {"visits", "links"} - ({"links"} & ctes):
        for table in statement.find_all(sqlglot.exp.Table):
            if table.name == relation:
                where = table.parent_select.args["where"].sql("spark")
                assert "organization = CAST(:organization AS STRING)" in where


@examples("sql", "construct")
def test_a_construct_that_is_not_carried_is_an_error_that_names_file_and_construct(compiler, sql, construct):
    tree = sqlglot.parse_one(sql, dialect="duckdb")
    with pytest.raises(NotCarried, match=r"queries/templates/own\.sql: ") as found:
        compiler.compile(tree, "templates/own", "all_visits")
    assert construct in str(found.value)


def test_a_parameter_of_a_macro_takes_a_column_of_the_caller_and_leaves_those_of_the_macro_alone(compiler):
    tree = sqlglot.parse_one(
        "SELECT is_link(daily_links.domain, daily_links.short_code, FALSE) AS x FROM daily_links", dialect="duckdb"
    )
    with pytest.raises(NotCarried):  # outside of WHERE
        compiler.compile(tree, "own", "all_visits")
    tree = sqlglot.parse_one("SELECT share(a - b, a OR b) AS x FROM (SELECT 1 AS a, 2 AS b)", dialect="duckdb")
    text = " ".join(compiler.compile(tree, "own", "all_visits").split())
    assert "CAST(a - b AS DECIMAL(38, 0))" in text
    assert "CASE WHEN ( a OR b ) > 0" in text


def test_nothing_imports_the_compiler_at_run_time():
    root = Path(__file__).parent.parent.parent
    importing = [
        str(path.relative_to(root))
        for floor in ("data", "queries", "service")
        for path in (root / floor).rglob("*.py")
        if "queries.compiler" in path.read_text("utf-8") and path.parent.name != "compiler"
    ]
    assert importing == []
