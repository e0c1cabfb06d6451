"""Programs stay within their memory, whatever they read."""

import pytest

from tests.service.commands.runs import run
from tests.support.memory import measured
from tests.support.visits import land, visit

MUCH = 550
"""Megabytes: the limit of 300 for rows, as much as a program takes anyway, and room for what one batch needs."""


@pytest.fixture
def own_sql(lake, tmp_path):
    """The words that run a SELECT."""
    land(lake, "ant", [visit()])

    def words(sql, *flags):
        (tmp_path / "own.sql").write_text(sql)
        return "query", tmp_path / "own.sql", "--org", "ant", "--lake", lake.root, *flags

    return words


@pytest.mark.parametrize(
    "row",
    [
        "{'a': {'b': {'c': 1}}}",
        "1.1::DECIMAL(3,1), 1.2::DECIMAL(3,1)",
        "map {range: [range]}",
        "[range::VARCHAR, NULL, range::VARCHAR]",
    ],
)
def test_rows_of_own_sql_are_counted_as_python_has_them(own_sql, tmp_path, row):
    ended = measured(tmp_path, *own_sql(f"SELECT {row} FROM range(100000000)", "--format", "json"))
    assert (ended.code, ended.err.count("\n")) == (2, 1)
    assert "its rows take more than 300MB: read fewer columns" in ended.err
    assert ended.megabytes < MUCH


@pytest.mark.usefixtures("forked_own_sql")
def test_a_long_table_has_one_header_and_all_rows_in_line(own_sql):
    header, *lines = run(*own_sql("SELECT range AS number, 'x' AS text FROM range(2500)")).out.splitlines()
    assert header.split() == ["number", "text"]
    assert [int(line.split()[0].replace(",", "")) for line in lines] == [*range(2_500)]
    assert {line.index("x") for line in lines} == {header.index("text")}
