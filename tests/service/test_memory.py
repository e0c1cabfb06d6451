"""Programs stay within their memory limits, whatever they read."""

import gzip

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.support.memory import measured
from tests.support.runs import run
from tests.support.visits import land, visit

MUCH = 550
"""Megabytes: the limit of 300 for rows, what a program uses anyway, and room for one batch."""


@pytest.fixture
def own_sql(lake, tmp_path):
    """Return a function that makes the arguments that run a SELECT."""
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
def test_rows_from_own_sql_are_measured_as_python_objects(own_sql, tmp_path, row):
    ended = measured(tmp_path, *own_sql(f"SELECT {row} FROM range(100000000)", "--format", "json"))
    assert ended.err.count("\n") == 1
    told = "its rows take more than 300MB: read fewer columns" if ended.code == 2 else "longer than 10 seconds"
    assert told in ended.err  # a slow machine does not get this far
    assert ended.megabytes < MUCH


def test_a_long_table_has_one_header_and_aligned_rows(own_sql):
    header, *lines = run(*own_sql("SELECT range AS number, 'x' AS text FROM range(2500)")).out.splitlines()
    assert header.split() == ["number", "text"]
    assert [int(line.split()[0].replace(",", "")) for line in lines] == [*range(2_500)]
    assert {line.index("x") for line in lines} == {header.index("text")}


LOG_LINE = '203.0.113.7 - - [02/Mar/2026:10:00:00 +0000] "GET /x HTTP/1.1" 302 0 "-" "curl/8"\n'
LARGE = 700
"""Megabytes that the import of a log with distinct lines takes, which any other import must stay below."""


def repeated(path, text, rows, kind=lambda column: column):
    """Write a Parquet log that stores one string once, for many rows."""
    column = pa.DictionaryArray.from_arrays(pa.array([0] * rows, pa.int32()), pa.array([text]))
    times = pa.array(["2026-03-02T10:00:00Z"] * rows)
    urls = pa.array(["https://go.example.com/x"] * rows)
    pq.write_table(pa.table({"time": times, "url": urls, "user_agent": kind(column)}), path, compression="zstd")


def lists_of(column):
    return pa.ListArray.from_arrays(pa.arange(0, len(column) + 1).cast(pa.int32()), column)


BOMBS = {
    "texts.parquet": lambda path: repeated(path, "x" * 1_000_000, 20_000),
    "lists.parquet": lambda path: repeated(path, "x" * 1_000_000, 20_000, lists_of),
    "lines.zst": lambda path: path.write_bytes(pa.Codec("zstd").compress(b"\n" * 400_000_000).to_pybytes()),
    "lines.gz": lambda path: path.write_bytes(gzip.compress(b"\n" * 400_000_000)),
}


@pytest.mark.parametrize("name", BOMBS)
def test_an_implausibly_compressed_file_is_rejected(tmp_path, name):
    BOMBS[name](tmp_path / name)
    assert (tmp_path / name).stat().st_size < 1_000_000
    ended = measured(tmp_path, "import", tmp_path / name, "--org", "ant", "--lake", tmp_path / "lake")
    assert ended.code == 2
    assert (
        f"{name} expands to more than 1,000 times its size, which is unusual for a log; if it is a log, import it"
        in ended.err
    )
    assert ended.megabytes < LARGE


LOGS = {
    "newlines.log": lambda: (LOG_LINE, "\n" * 30_000_000),
    "rejects.log": lambda: (LOG_LINE, "x\n" * 3_000_000),
    "long.log": lambda: (LOG_LINE, "x" * 100_000_000, "\n"),
    "nested.log": lambda: ('{"time":"2026-03-02T10:00:00Z","url":"https://go.example.com/x"}\n', "[" * 7_000_000, "\n",
                           '{"a":[', "{}," * 4_000_000, "0]}\n"),
}  # fmt: skip


@pytest.mark.parametrize("name", LOGS)
def test_lines_without_visits_take_little_memory(tmp_path, name):
    (tmp_path / name).write_text("".join(LOGS[name]()))
    ended = measured(
        tmp_path, "import", tmp_path / name, "--org", "ant", "--domain", "a.example", "--lake", tmp_path / "lake"
    )
    assert ended.code == 0, ended.err
    assert "1 visit imported" in ended.err
    assert ended.megabytes < LARGE
