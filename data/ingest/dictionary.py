"""Dictionary-encoded columns: every distinct value is stored once, as in Arrow's dictionary arrays.

Slow operations (regular expressions, hashes, look-ups) then run once for each distinct value in a block, and their
results are expanded to the rows. See the example in pipeline.py.
"""

from collections.abc import Callable, Hashable, Sequence
from typing import Any, Final, Generic, NamedTuple, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

MAX_DICTIONARY_SIZE: Final = 100
"""Maximum number of distinct strings in a dictionary-encoded column. Columns with more are expanded to plain strings,
because the slice for each file would keep the whole dictionary."""

Value = TypeVar("Value", bound=Hashable)


class DictionaryColumn(NamedTuple):
    """A column as its distinct values (`dictionary`) and the index of each row's value among them."""

    indices: pa.Array
    dictionary: pa.Array

    def map_texts(self, function: Callable[[str], str | None]) -> "DictionaryColumn":
        """Return the column with the function applied to each distinct string."""
        return dictionary_column(pa.array(map(function, self.dictionary.to_pylist()), pa.string()), self.indices)

    def where(self, mask: pa.Array) -> "DictionaryColumn":
        """Return the column with null in the rows where the mask is false."""
        null = len(self.dictionary)
        dictionary = pa.concat_arrays([self.dictionary, pa.nulls(1, self.dictionary.type)])
        return DictionaryColumn(pc.if_else(mask, self.indices, pa.scalar(null, self.indices.type)), dictionary)

    @property
    def size(self) -> int:
        """The number of distinct values."""
        return len(self.dictionary)

    def values_at(self, indices: pa.Array) -> list[Any]:
        """Return the values at these indices."""
        values: list[Any] = self.dictionary.take(indices).to_pylist()
        return values


class DistinctColumn(NamedTuple, Generic[Value]):
    """A column of Python values: the distinct values, and the index of each row's value among them."""

    indices: pa.Array
    values: Sequence[Value]

    @property
    def size(self) -> int:
        """The number of distinct values."""
        return len(self.values)

    def values_at(self, indices: pa.Array) -> list[Value]:
        """Return the values at these indices."""
        return [self.values[index] for index in indices.to_pylist()]


def dictionary_column(values: pa.Array, indices: pa.Array) -> DictionaryColumn:
    """Dictionary-encode the column `values.take(indices)`; `values` may contain duplicates."""
    encoded = values.dictionary_encode("encode")
    return DictionaryColumn(encoded.indices.take(indices), encoded.dictionary)


def dictionary_encoded(column: pa.ChunkedArray) -> DictionaryColumn:
    """Dictionary-encode a column. Null is encoded like any other value."""
    chunks = column.dictionary_encode("encode").chunks or [pa.array([], column.type).dictionary_encode()]
    indices = pa.concat_arrays([chunk.indices for chunk in chunks])
    return DictionaryColumn(indices, chunks[-1].dictionary)  # all chunks have the same dictionary


def or_null(texts: pa.Array) -> pa.Array:
    """Return `texts` with empty strings replaced by null."""
    return pc.if_else(pc.equal(texts, pa.scalar("", pa.string())), pa.scalar(None, pa.string()), texts)


def expand(values: pa.Array, indices: pa.Array) -> pa.Array:
    """Return the value of each row. A column with few distinct strings is dictionary-encoded, because it is then
    written faster.
    """
    if not pa.types.is_string(values.type):
        return values.take(indices)
    encoded = values.dictionary_encode()
    return (encoded if len(encoded.dictionary) <= MAX_DICTIONARY_SIZE else values).take(indices)


class CompositeKey(NamedTuple):
    """Several index columns, combined into one column of indices into their distinct combinations."""

    indices: pa.Array  # the combination in each row
    parts: list[pa.Array]  # for each column, its index in each distinct combination


def composite_key(*columns: pa.Array) -> CompositeKey:
    """Combine columns of indices (without nulls). Distinct combinations are numbered from 0."""
    sizes = [pa.scalar((pc.max(column).as_py() or 0) + 1, pa.int64()) for column in columns]  # untyped: 30 times slower
    key = columns[0].cast(pa.int64())
    for column, size in zip(columns[1:], sizes[1:], strict=True):
        key = pc.add(pc.multiply(key, size), column)
    encoded = key.dictionary_encode()
    parts, rest = [], encoded.dictionary
    for size in reversed(sizes):
        quotient = pc.divide(rest, size)
        parts.append(pc.subtract(rest, pc.multiply(quotient, size)))
        rest = quotient
    return CompositeKey(encoded.indices, parts[::-1])


def map_distinct(
    function: Callable[..., Value], *columns: DictionaryColumn | DistinctColumn[Any]
) -> DistinctColumn[Value]:
    """Return a function's result for each row. The function is called once for each distinct combination of values."""
    if len(columns) == 1:
        rows, parts = columns[0].indices, [pa.arange(0, columns[0].size)]
    else:
        rows, parts = composite_key(*(column.indices for column in columns))
    arguments = [column.values_at(part) for column, part in zip(columns, parts, strict=True)]
    numbers: dict[Value, int] = {}
    results = intern_values(numbers, [*map(function, *arguments)])
    return DistinctColumn(results.take(rows), [*numbers])


def intern_values(numbers: dict[Value, int], values: Sequence[Value]) -> pa.Array:
    """Return each value's number in `numbers`. New values are added to `numbers` with the next numbers, from 0."""
    return pa.array([numbers.setdefault(value, len(numbers)) for value in values], pa.int32())


def text_columns(names: Sequence[str], rows: Sequence[Sequence[str | None]]) -> dict[str, pa.Array]:
    """Transpose rows of strings into named columns."""
    columns = zip(*rows, strict=True) if rows else [()] * len(names)
    return {name: pa.array(column, pa.string()) for name, column in zip(names, columns, strict=True)}
