"""What repeats among many rows is looked at once: here it is numbered, and the numbers become columns again."""

from collections.abc import Hashable, Sequence
from typing import Final, Generic, NamedTuple, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

FEW: Final = 100
"""So many distinct values at most stay numbered: every file that rows are spread over holds all of them."""

Thing = TypeVar("Thing", bound=Hashable)


class Words(NamedTuple):
    """A column by numbers: which word each row holds, and the distinct words."""

    numbers: pa.Array
    words: pa.Array


def words_of(column: pa.ChunkedArray) -> Words:
    """Number the distinct values of a column, from 0; null is one of them."""
    chunks = column.dictionary_encode("encode").chunks or [pa.array([], column.type).dictionary_encode()]
    return Words(pa.concat_arrays([chunk.indices for chunk in chunks]), chunks[-1].dictionary)  # all have the same one


def rows_of(values: pa.Array, numbers: pa.Array) -> pa.Array:
    """The values of rows by their numbers: few distinct texts as a dictionary, which is made and written faster."""
    if not pa.types.is_string(values.type):
        return values.take(numbers)
    numbered = values.dictionary_encode()
    return (numbered if len(numbered.dictionary) <= FEW else values).take(numbers)


class Combined(NamedTuple):
    """Several columns of numbers as one, and what each of its numbers stands for in every column."""

    numbers: pa.Array
    parts: list[pa.Array]


def combined(*columns: pa.Array) -> Combined:
    """Number the distinct combinations of columns of numbers, none of which is null, from 0."""
    sizes = [(pc.max(column).as_py() or 0) + 1 for column in columns]
    key = columns[0].cast(pa.int64())
    for column, size in zip(columns[1:], sizes[1:], strict=True):
        key = pc.add(pc.multiply(key, size), column)
    encoded = key.dictionary_encode()
    parts, rest = [], encoded.dictionary
    for size in reversed(sizes):
        above = pc.divide(rest, size)
        parts.append(pc.subtract(rest, pc.multiply(above, size)))
        rest = above
    return Combined(encoded.indices, parts[::-1])


class Numbers(Generic[Thing]):
    """Numbers of distinct things, from 0 in the order they come."""

    def __init__(self) -> None:
        self._numbers: dict[Thing, int] = {}

    def of(self, things: Sequence[Thing]) -> pa.Array:
        """The numbers of things."""
        known = self._numbers
        return pa.array([known.setdefault(thing, len(known)) for thing in things], pa.int32())

    def things(self) -> list[Thing]:
        """Every thing that has a number, in their order."""
        return list(self._numbers)


def texts_of(names: Sequence[str], rows: Sequence[Sequence[str | None]]) -> dict[str, pa.Array]:
    """Rows of text as columns."""
    columns = zip(*rows, strict=True) if rows else [()] * len(names)
    return {name: pa.array(column, pa.string()) for name, column in zip(names, columns, strict=True)}
