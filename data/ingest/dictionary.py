"""Columns whose values repeat, with every distinct value stored once, as in Arrow's dictionary arrays.

What is slow (a regular expression, a hash, a look-up) is then done once for each distinct value of a block, and the
results are expanded to its rows. A worked example is in pipeline.py.
"""

from collections.abc import Hashable, Sequence
from typing import Final, Generic, NamedTuple, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

MAX_DICTIONARY_SIZE: Final = 100
"""Columns of more distinct values are expanded to plain text: every file would hold the whole dictionary."""

Value = TypeVar("Value", bound=Hashable)


class DictionaryColumn(NamedTuple):
    """A column as its distinct values, and the index of each row's value among them."""

    indices: pa.Array
    dictionary: pa.Array


def dictionary_encoded(column: pa.ChunkedArray) -> DictionaryColumn:
    """Encode a column; null is a value like others."""
    chunks = column.dictionary_encode("encode").chunks or [pa.array([], column.type).dictionary_encode()]
    indices = pa.concat_arrays([chunk.indices for chunk in chunks])
    return DictionaryColumn(indices, chunks[-1].dictionary)  # all chunks have the same one


def expand(values: pa.Array, indices: pa.Array) -> pa.Array:
    """The value of each row. Texts of few distinct values stay dictionary-encoded: that is faster to make and write."""
    if not pa.types.is_string(values.type):
        return values.take(indices)
    encoded = values.dictionary_encode()
    return (encoded if len(encoded.dictionary) <= MAX_DICTIONARY_SIZE else values).take(indices)


class CompositeKey(NamedTuple):
    """Several columns of indices as one: the combination in each row, and what every combination is made of."""

    indices: pa.Array
    parts: list[pa.Array]  # for each column, its index in each distinct combination


def composite_key(*columns: pa.Array) -> CompositeKey:
    """Number the distinct combinations of columns of indices, none of which is null, from 0."""
    sizes = [(pc.max(column).as_py() or 0) + 1 for column in columns]
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


class Interner(Generic[Value]):
    """Gives equal values one index, from 0 in the order in which they come."""

    def __init__(self) -> None:
        self._indices: dict[Value, int] = {}

    def intern(self, values: Sequence[Value]) -> pa.Array:
        """The index of each value; new values get the next ones."""
        known = self._indices
        return pa.array([known.setdefault(value, len(known)) for value in values], pa.int32())

    def values(self) -> list[Value]:
        """Every distinct value, at its index."""
        return list(self._indices)


def text_columns(names: Sequence[str], rows: Sequence[Sequence[str | None]]) -> dict[str, pa.Array]:
    """Rows of text as columns."""
    columns = zip(*rows, strict=True) if rows else [()] * len(names)
    return {name: pa.array(column, pa.string()) for name, column in zip(names, columns, strict=True)}
