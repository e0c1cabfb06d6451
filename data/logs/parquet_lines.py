"""Converts the rows of a Parquet file to JSON lines, in bounded memory."""

from collections.abc import Iterator
from typing import BinaryIO, Final

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from data.errors import BadInput
from data.logs.parquet_pages import column_memory, longest_shared, row_groups

_ROWS: Final = 16_384
_NESTED_ROWS: Final = 256
_LINES_BYTES: Final = 32 << 20
"""Limits for a single read, in this order: number of rows, number of rows with strings in lists or structs, and size of
the rows or JSON lines in bytes."""
MAX_ROW_BYTES: Final = 128 << 20
MAX_ROW_GROUP_BYTES: Final = 2 << 30
MAX_GROUP_BYTES: Final = 512 << 20
"""Maximum memory for a row group while one page of each column is read."""


def rows_as_lines(path: object, file: BinaryIO) -> Iterator[bytes]:
    """Yield the rows of a Parquet file as JSON lines with all columns by name, many lines at a time. The same file
    always yields the same lines.

    Strings that many rows share are expanded for only a few rows at a time. Raises BadInput if the file takes too much
    memory to read, and ArrowInvalid if it is damaged.
    """
    metadata = pq.read_metadata(file)
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    if any(group.total_byte_size > MAX_ROW_GROUP_BYTES for group in groups):
        raise BadInput(f"{path} has a row group of more than 2 GiB; write it with smaller row groups.")
    leaves = [metadata.schema.column(number) for number in range(metadata.num_columns)]
    columns = row_groups(file)
    if any(len(group) != len(leaves) for group in columns):
        raise pa.ArrowInvalid("a row group does not have all columns")
    memory = [
        [column_memory(file, column, leaf.max_repetition_level > 0) for column, leaf in zip(group, leaves, strict=True)]
        for group in columns
    ]
    if (largest := max((sum(part.bytes for part in group) for group in memory), default=0)) > MAX_GROUP_BYTES:
        raise BadInput(f"{path} takes {largest:,} bytes of memory to read; write it with smaller pages and row groups.")
    texts = [
        number
        for number, leaf in enumerate(leaves)
        if leaf.physical_type == "BYTE_ARRAY" and leaf.logical_type.type != "DECIMAL"
    ]
    nested = [number for number in texts if "." in leaves[number].path]  # PyArrow cannot always read dictionaries there
    expanded = [*nested, *(number for number in texts if any(group[number].is_delta for group in memory))]
    longest = max((sum(longest_shared(file, group[number]) for number in expanded) for group in columns), default=0)
    flat = [leaves[number].path for number in texts if number not in expanded]
    average = max((group.total_byte_size // max(group.num_rows, 1) for group in groups), default=0)
    most = min(_NESTED_ROWS if nested else _ROWS, _LINES_BYTES // (average + 1), MAX_ROW_BYTES // (longest + 1))
    read, done = max(1, most), 0
    with duckdb.connect() as engine, pq.ParquetFile(file, metadata=metadata, read_dictionary=flat) as parquet:
        engine.execute("SET TimeZone = 'UTC'")
        engine.execute("SET temp_directory = ''")  # rows contain IP addresses, which must not be spilled to disk
        for batch in parquet.iter_batches(read):
            most = sum(_max_bytes(column) for column in batch.columns)
            if most > MAX_ROW_BYTES:
                raise BadInput(f"{path} may have rows of {most:,} bytes, from row {done + 1:,} on; shorten its values.")
            done += len(batch)
            step = max(1, _LINES_BYTES // (most + 1))
            for start in range(0, len(batch), step):
                engine.register("batch", pa.table({"row": batch.slice(start, step).to_struct_array()}))
                lines = engine.sql("SELECT CAST(to_json(row) AS VARCHAR) AS line FROM batch").to_arrow_table()
                yield "".join(f"{line}\n" for line in lines["line"].to_pylist()).encode()


def _max_bytes(column: pa.Array) -> int:
    """Return the maximum size in bytes of an expanded value in a column; the size of numbers is estimated."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        return _max_bytes(column.dictionary)
    if pa.types.is_struct(kind):
        return sum(_max_bytes(column.field(number)) for number in range(kind.num_fields))
    if pa.types.is_map(kind) or pa.types.is_list(kind) or pa.types.is_large_list(kind):
        longest = pc.max(pc.subtract(column.offsets[1:], column.offsets[:-1])).as_py() or 0
        inner = (column.keys, column.items) if pa.types.is_map(kind) else (column.values,)
        return int(longest) * sum(map(_max_bytes, inner))
    if pa.types.is_fixed_size_list(kind):
        return int(kind.list_size) * _max_bytes(column.values)
    if any(is_text(kind) for is_text in (pa.types.is_string, pa.types.is_binary, pa.types.is_large_string)):
        return pc.max(pc.binary_length(column)).as_py() or 0
    return 32
