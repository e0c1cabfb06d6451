"""Computes the memory needed for a Parquet file's pages from their headers, because PyArrow allocates it unchecked.

https://github.com/apache/parquet-format/blob/master/src/main/thrift/parquet.thrift defines the headers, and
https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md their encoding.
"""

import os
from collections.abc import Iterator
from typing import BinaryIO, Final, NamedTuple

import pyarrow as pa

_DETAILS: Final = {0: 5, 2: 7, 3: 8}
"""The header field that describes the page, by page type: data, dictionary, data version 2."""
_DICTIONARY, _DATA_V2 = 2, 3
_DELTA_BYTE_ARRAY: Final = 7
_DELTA_TEXTS: Final = {6, _DELTA_BYTE_ARRAY}
_WITH_LENGTHS: Final = {5, *_DELTA_TEXTS}  # encodings for which a number for each value is decoded in advance
_MAX_TEXTS: Final = 1 << 20  # maximum number of dictionary entries that are measured
_COPIES: Final = 2  # copies of a page in memory: decompressed bytes and values
_CODECS: Final = {0: "", 1: "snappy", 2: "gzip", 4: "brotli", 6: "zstd", 7: "lz4_raw"}
_FIRST_BYTES: Final = 1 << 12  # first read of a header, before its length is known
_MAX_BYTES: Final = 1 << 24  # maximum size of a header or of the footer; PyArrow's own limit
_PADDING: Final = 100  # bytes that PyArrow may read after a column, since old writers did not count them
_LISTED_BYTES: Final = 16  # size of each number in a list, with its levels; all numbers may be in one row


class ColumnChunk(NamedTuple):
    """The location of the pages of one column in a row group, from the footer."""

    start: int
    bytes: int
    values: int
    codec: int


class ColumnMemory(NamedTuple):
    """The memory for reading one column of a row group, from its headers."""

    bytes: int  # memory needed to read it
    is_delta: bool  # whether texts are delta-encoded, so that PyArrow cannot read them as dictionaries


class _PageHeader(NamedTuple):
    size: int  # size of its decompressed content
    values: int
    encoding: int
    is_dictionary: bool
    start: int  # offset of its content in the file
    compressed: int


def row_groups(file: BinaryIO) -> list[list[ColumnChunk]]:
    """Return the columns of each row group. Raises ArrowInvalid if the footer cannot be read.

    PyArrow is not used for this, since it would abort the process on a column with contradictory metadata.
    """
    file.seek(-8, os.SEEK_END)
    length = int.from_bytes(file.read(4), "little")
    if length > _MAX_BYTES:
        raise pa.ArrowInvalid(f"its footer has {length:,} bytes, more than {_MAX_BYTES:,}")
    file.seek(-8 - length, os.SEEK_END)
    try:
        footer = _CompactReader(file.read(length)).struct()
    except (IndexError, RecursionError) as error:
        raise pa.ArrowInvalid("its footer cannot be read") from error
    return [[_column(chunk) for chunk in group.structs.get(1, ())] for group in footer.structs.get(4, ())]


def _column(chunk: "_Fields") -> ColumnChunk:
    (numbers, _), *_ = chunk.structs.get(3, [_NO_FIELDS])
    start, dictionary = numbers.get(9, 0), numbers.get(11, 0)
    start = dictionary if 0 < dictionary < start else start
    if start < 0:
        raise pa.ArrowInvalid("a column begins before the start of the file")
    return ColumnChunk(start, numbers.get(7, 0), numbers.get(5, 0), numbers.get(4, 0))


def column_memory(file: BinaryIO, column: ColumnChunk, is_listed: bool) -> ColumnMemory:
    """Return the memory needed to read a column of a row group. With `is_listed`, a row may contain many values.

    Raises ArrowInvalid if a header cannot be read.
    """
    largest = values = 0
    is_delta = False
    for page in _pages(file, column):
        largest = max(largest, _COPIES * page.size + (4 * page.values if page.encoding in _WITH_LENGTHS else 0))
        is_delta |= page.encoding in _DELTA_TEXTS
        values += 0 if page.is_dictionary else page.values
    return ColumnMemory(largest + (_LISTED_BYTES * values if is_listed else 0), is_delta)


def longest_shared(file: BinaryIO, column: ColumnChunk) -> int:
    """Return the maximum size in bytes of a string that many rows share because it, or a part of it, is stored only
    once.
    """
    longest = 0
    for page in _pages(file, column):
        if page.is_dictionary:
            longest = max(longest, _longest_text(file, page, _CODECS.get(column.codec)))
        elif page.encoding == _DELTA_BYTE_ARRAY:
            longest = max(longest, page.size)
    return longest


def _longest_text(file: BinaryIO, page: _PageHeader, codec: str | None) -> int:
    """Return the length of the longest string in a dictionary page, or the page's size if that length is unknown."""
    if page.values > _MAX_TEXTS or codec is None:
        return page.size
    file.seek(page.start)
    content = file.read(page.compressed)
    try:
        content = pa.decompress(content, page.size, codec, asbytes=True) if codec else content
    except (pa.ArrowException, OSError):
        return page.size
    at = longest = 0
    for _ in range(page.values):  # ignore any further values in the page
        length = int.from_bytes(content[at : at + 4], "little")
        longest = max(longest, length)
        at += 4 + length
    return min(longest, page.size)


def _pages(file: BinaryIO, column: ColumnChunk) -> Iterator[_PageHeader]:
    at, end, left = column.start, column.start + column.bytes + _PADDING, column.values
    while left > 0 and at < end:
        header, length = _header(file, at)
        kind, size, compressed = (header.numbers.get(number, 0) for number in (1, 2, 3))
        (details, _), *_ = header.structs.get(_DETAILS.get(kind, 0), [_NO_FIELDS])
        encoding = details.get(4 if kind == _DATA_V2 else 2, 0)
        page = _PageHeader(size, details.get(1, 0), encoding, kind == _DICTIONARY, at + length, compressed)
        if min(size, compressed, page.values) < 0:
            raise pa.ArrowInvalid("a page header has a negative size")
        yield page
        left -= 0 if page.is_dictionary else page.values
        at = page.start + compressed


def _header(file: BinaryIO, at: int) -> tuple["_Fields", int]:
    """Return the fields of the header at an offset in the file, and its length."""
    wanted = _FIRST_BYTES
    while True:
        file.seek(at)
        content = file.read(wanted)
        try:
            reader = _CompactReader(content)
            return reader.struct(), reader.at
        except (IndexError, RecursionError) as error:
            if len(content) < wanted or wanted >= _MAX_BYTES or isinstance(error, RecursionError):
                raise pa.ArrowInvalid("a page header cannot be read") from error
        wanted *= 4


class _Fields(NamedTuple):
    """The integers and structs in a Thrift struct, by field number. Values of other types are skipped."""

    numbers: dict[int, int]
    structs: dict[int, list["_Fields"]]  # all structs of a list, or a single struct


_NO_FIELDS: Final = _Fields({}, {})


class _CompactReader:
    """Reads values in Thrift's compact protocol. Raises IndexError at the end of the content."""

    def __init__(self, content: bytes) -> None:
        self._content = content
        self.at = 0

    def struct(self) -> _Fields:
        """Read the fields of a struct. Raises ArrowInvalid if a field is duplicate or invalid."""
        fields, seen, number = _Fields({}, {}), set[int](), 0
        while head := self._byte():
            number = number + (head >> 4) if head >> 4 else self._integer()
            if number in seen or not 0 < number < 1 << 15:
                raise pa.ArrowInvalid("a page header or the footer has a duplicate or invalid field")
            seen.add(number)
            match head & 15:
                case 1 | 2:  # true or false, without a value
                    pass
                case 4 | 5 | 6:
                    fields.numbers[number] = self._integer()
                case 9:
                    fields.structs[number] = self._structs()
                case 12:
                    fields.structs[number] = [self.struct()]
                case kind:
                    self._pass(kind)
        return fields

    def _pass(self, kind: int) -> None:
        match kind:
            case 1 | 2 | 3:
                self._skip(1)
            case 4 | 5 | 6:
                self._unsigned()
            case 7:
                self._skip(8)
            case 8:
                self._skip(self._unsigned())
            case 9 | 10:
                self._structs()
            case 11:
                self._pass_map()
            case 12:
                self.struct()
            case _:
                raise pa.ArrowInvalid(f"a page header or the footer has a value of the unknown type {kind}")

    def _structs(self) -> list[_Fields]:
        """Read the structs of a list; return [] if the list has other values."""
        head = self._byte()
        count, kind = head >> 4, head & 15
        count = self._unsigned() if count == 15 else count
        if kind == 12:
            return [self.struct() for _ in range(count)]
        for _ in range(count):
            self._pass(kind)
        return []

    def _pass_map(self) -> None:
        if count := self._unsigned():
            kinds = self._byte()
            for _ in range(count):
                self._pass(kinds >> 4)
                self._pass(kinds & 15)

    def _byte(self) -> int:
        self.at += 1
        return self._content[self.at - 1]

    def _skip(self, count: int) -> None:
        self.at += count
        if self.at > len(self._content):
            raise IndexError

    def _unsigned(self) -> int:
        value = shift = 0
        while (byte := self._byte()) & 0x80 and shift < 64:
            value |= (byte & 0x7F) << shift
            shift += 7
        return value | (byte & 0x7F) << shift

    def _integer(self) -> int:
        value = self._unsigned()
        return value >> 1 ^ -(value & 1)
