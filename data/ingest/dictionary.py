"""Dictionary-encoded columns: every distinct value is stored once, as in Arrow's dictionary arrays.

Slow operations (regular expressions, hashes, look-ups) then run once for each distinct value of a block, and their
results are expanded to the rows. See the example in pipeline.py.
"""

from collections.abc import Callable, Hashable, Sequence
from typing import Final, NamedTuple, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

MAX_DICTIONARY_SIZE: Final = 100
"""Columns with more distinct values are expanded to plain strings: every file would contain the whole dictionary."""

Value = TypeVar("Value", bound=Hashable)


class DictionaryColumn(NamedTuple):
    """A column as its distinct values (`dictionary`) and the index of each row's value among them."""

    indices: pa.Array
    dictionary: pa.Array

    def mapped(self, function: Callable[[str], str | None]) -> "DictionaryColumn":
        """The column with each distinct text replaced. The dictionary may then contain a value more than once."""
        texts = map(function, self.dictionary.to_pylist())
        return DictionaryColumn(self.indices, pa.array(texts, pa.string()))


def dictionary_encoded(column: pa.ChunkedArray) -> DictionaryColumn:
    """Encode a column. Null is encoded like any other value."""
    chunks = column.dictionary_encode("encode").chunks or [pa.array([], column.type).dictionary_encode()]
    indices = pa.concat_arrays([chunk.indices for chunk in chunks])
    return DictionaryColumn(indices, chunks[-1].dictionary)  # all chunks have the same one


def or_null(texts: pa.Array) -> pa.Array:
    """`texts` with empty strings replaced by null."""
    return pc.if_else(pc.equal(texts, pa.scalar("", pa.string())), pa.scalar(None, pa.string()), texts)


def expand(values: pa.Array, indices: pa.Array) -> pa.Array:
    """The value of each row. Strings of few distinct values stay dictionary-encoded, which is faster to write."""
    if not pa.types.is_string(values.type):
        return values.take(indices)
    encoded = values.dictionary_encode()
    return (encoded if len(encoded.dictionary) <= MAX_DICTIONARY_SIZE else values).take(indices)


class CompositeKey(NamedTuple):
    """Several columns of indices combined into one column of indices of their distinct combinations."""

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


def interned(numbers: dict[Value, int], values: Sequence[Value]) -> pa.Array:
    """The number of each value in `numbers`, which counts from 0 in order of first use; new values are added to it."""
    return pa.array([numbers.setdefault(value, len(numbers)) for value in values], pa.int32())


def text_columns(names: Sequence[str], rows: Sequence[Sequence[str | None]]) -> dict[str, pa.Array]:
    """Transpose rows of text into named columns."""
    columns = zip(*rows, strict=True) if rows else [()] * len(names)
    return {name: pa.array(column, pa.string()) for name, column in zip(names, columns, strict=True)}
