"""Dictionary encoding can be reversed for any values and any repetitions."""

import datetime as dt

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from data.ingest.dictionary import (
    MAX_DICTIONARY_SIZE,
    DistinctColumn,
    composite_key,
    dictionary_column,
    dictionary_encoded,
    expand,
    intern_values,
    map_distinct,
    text_columns,
)

SMALL = st.integers(0, 4)


@given(chunks=st.lists(st.lists(st.sampled_from(["", "a", "b", "ü", None])), max_size=4))
def test_values_in_many_chunks_are_restored(chunks):
    column = pa.chunked_array(chunks, pa.string())
    numbers, words = dictionary_encoded(column)
    assert words.take(numbers).to_pylist() == column.to_pylist()
    assert len(set(words.to_pylist())) == len(words)


def test_days_can_be_encoded():
    days = [dt.date(2026, 3, 2), dt.date(2026, 3, 1), dt.date(2026, 3, 2)]
    numbers, words = dictionary_encoded(pa.chunked_array([pa.array(days, pa.date32())]))
    assert (numbers.to_pylist(), words.to_pylist()) == ([0, 1, 0], days[:2])


@pytest.mark.parametrize(
    ("distinct", "is_numbered"), [(0, True), (MAX_DICTIONARY_SIZE, True), (MAX_DICTIONARY_SIZE + 1, False)]
)
def test_rows_keep_values_and_large_dictionaries_are_expanded(distinct, is_numbered):
    """Otherwise, the whole dictionary would be written to every file, although each file has only part of the rows."""
    values = pa.array([*map(str, range(distinct)), None, *map(str, range(distinct))], pa.string())
    numbers = pa.array([*range(len(values)), 0, 0][::-1], pa.int32())
    rows = expand(values, numbers)
    assert rows.to_pylist() == [values[number].as_py() for number in numbers.to_pylist()]
    assert pa.types.is_dictionary(rows.type) == is_numbered
    assert expand(pa.array([True, None]), pa.array([1, 0])).equals(pa.array([None, True]))


@given(rows=st.lists(st.tuples(SMALL, SMALL, SMALL)), width=st.integers(1, 3))
def test_combinations_are_decoded_into_every_column(rows, width):
    columns = [pa.array([row[place] for row in rows], pa.int32()) for place in range(width)]
    numbers, parts = composite_key(*columns)
    assert [part.take(numbers).to_pylist() for part in parts] == [column.to_pylist() for column in columns]
    assert len(parts[0]) == len({row[:width] for row in rows})


def test_the_most_combinations_a_block_can_have_stay_distinct():
    most = 800_000  # for readable lines of at least twenty bytes
    columns = [pa.array([0, most, most], pa.int32()), pa.array([most, 0, most], pa.int32()), pa.array([0, most, most])]
    numbers, parts = composite_key(*columns)
    assert [part.take(numbers).to_pylist() for part in parts] == [column.to_pylist() for column in columns]


@given(rows=st.lists(st.tuples(st.sampled_from("abc"), SMALL)))
def test_rows_get_the_results_for_their_own_values(rows):
    texts = dictionary_column(
        pa.array(["c", "b", "a", "a"]), pa.array(["cba".index(text) for text, _ in rows], pa.int32())
    )
    numbers = DistinctColumn(pa.array([number for _, number in rows], pa.int32()), range(5))
    results = map_distinct(lambda text, number: text * number, texts, numbers)
    assert results.values_at(results.indices) == [text * number for text, number in rows]
    assert map_distinct(str.upper, texts).values_at(texts.indices) == [text.upper() for text, _ in rows]


def test_a_function_is_called_once_for_each_combination():
    calls = []
    column = DistinctColumn(pa.array([0, 1, 0, 1], pa.int32()), ["a", "b"])
    map_distinct(lambda *values: calls.append(values), column, column)
    assert calls == [("a", "a"), ("b", "b")]


def test_rows_masked_as_false_become_null():
    column = dictionary_column(pa.array(["a", "b"]), pa.array([0, 1, 0])).where(pa.array([True, True, False]))
    assert column.values_at(column.indices) == ["a", "b", None]


def test_equal_values_get_the_same_number():
    numbers = {}
    assert intern_values(numbers, ["x", "y", "x"]).to_pylist() == [0, 1, 0]
    assert intern_values(numbers, ["z", "y"]).to_pylist() == [2, 1]
    assert [*numbers] == ["x", "y", "z"]


@pytest.mark.parametrize("rows", [[], [("x", None), ("y", "z")]])
def test_rows_of_strings_become_columns(rows):
    columns = text_columns(("one", "two"), rows)
    assert list(zip(*(column.to_pylist() for column in columns.values()), strict=True)) == rows
    assert {column.type for column in columns.values()} == {pa.string()}
