"""Memory is estimated from the page headers of Parquet files, even if the headers are wrong or damaged."""

import io
from contextlib import suppress

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from data.errors import BadInput
from data.logs import parquet_lines, parquet_pages
from data.logs.parquet_pages import column_memory, longest_shared, row_groups
from data.logs.source import identify

TEXT, LISTED = "x" * 100_000, pa.array([[1] * 100_000])
ROWS = [f"text {number % 9_999}" for number in range(100_000)]


def written(column, **how):
    """Return a file with one column."""
    file = io.BytesIO()
    pq.write_table(pa.table({"text": column}), file, **how)
    return file


def memory(file, *, is_listed=False):
    return column_memory(file, row_groups(file)[0][0], is_listed)


@pytest.fixture
def complaint(tmp_path, monkeypatch):
    """Return why a file is rejected if a row group may take one megabyte."""
    monkeypatch.setattr(parquet_lines, "MAX_GROUP_BYTES", 1_000_000)

    def complaint(content):
        path = tmp_path / "log.parquet"
        path.write_bytes(content)
        with pytest.raises(BadInput, match="write it with smaller pages and row groups") as caught:
            identify(path, ())
        return str(caught.value)

    return complaint


def test_a_page_that_claims_a_large_size_is_rejected(complaint):
    """The footer still has the real size."""
    content = written([TEXT], compression="zstd", use_dictionary=False).getvalue()
    true, said = (b"\x15" + bytes((number & 127 | 128, number >> 7 & 127 | 128, number >> 14)) for number in (
        2 * (len(TEXT) + 10), 2 * 1_000_000))  # fmt: skip
    assert content.count(true, 0, 20) == 1
    assert "2,000,0" in complaint(content.replace(true, said, 1))


def test_a_row_with_very_many_values_is_rejected(complaint):
    content = written(LISTED).getvalue()
    assert len(content) < 2_000
    assert "1,600," in complaint(content)


@pytest.mark.parametrize(
    "column",
    [
        pa.array([["x" * 600] * 20]),
        pa.array([["x" * 600] * 20], pa.large_list(pa.string())),
        pa.array([["x" * 600] * 20], pa.list_(pa.string(), 20)),
        pa.array([[("x" * 300, "y" * 300)] * 20], pa.map_(pa.string(), pa.string())),
        pa.array([{"a": "x" * 6_000, "b": "y" * 6_000}]),
    ],
    ids=lambda column: str(column.type).partition("<")[0],
)
def test_a_row_with_long_nested_values_is_rejected(column, tmp_path, monkeypatch):
    monkeypatch.setattr(parquet_lines, "MAX_ROW_BYTES", 11_000)
    path = tmp_path / "log.parquet"
    path.write_bytes(written(column).getvalue())
    with pytest.raises(BadInput, match=r"may have rows of 12,\d{3} bytes, from row 1 on"):
        identify(path, ())


@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("codec", ["none", "snappy", "gzip", "zstd", "lz4", "brotli"])
def test_all_pages_of_a_column_are_found(codec, version):
    file = written(ROWS, compression=codec, data_page_version=version, data_page_size=10_000, use_dictionary=["text"])
    assert memory(file, is_listed=True).bytes - memory(file).bytes == 16 * len(ROWS)
    assert longest_shared(file, row_groups(file)[0][0]) == len("text 9998")


@pytest.mark.parametrize("encoding", ["DELTA_LENGTH_BYTE_ARRAY", "DELTA_BYTE_ARRAY"])
def test_strings_stored_after_their_lengths_are_read(tmp_path, encoding):
    lines = []
    for how in ({"column_encoding": {"text": encoding}}, {}):
        path = tmp_path / "log.parquet"
        path.write_bytes(written(ROWS, use_dictionary=False, **how).getvalue())
        lines.append(identify(path, ()).sha256)
    assert lines[0] == lines[1]


def test_rows_that_share_a_long_string_are_read_a_few_at_a_time(tmp_path, monkeypatch):
    asked, read = [], pq.ParquetFile.iter_batches
    monkeypatch.setattr(pq.ParquetFile, "iter_batches", lambda file, rows: asked.append(rows) or read(file, rows))
    path = tmp_path / "log.parquet"
    path.write_bytes(written(pa.array([{"a": "x" * 10_000_000}, {"a": "y"}] * 20)).getvalue())
    identify(path, ())
    assert asked == [parquet_lines.MAX_ROW_BYTES // 10_000_001]


@pytest.mark.parametrize("byte", [0x00, 0x0C, 0x19, 0x7F, 0xFF])
def test_damaged_bytes_give_an_estimate_or_an_error(byte):
    content = written(ROWS[:100], data_page_version="2.0").getvalue()
    column = row_groups(io.BytesIO(content))[0][0]
    for place in range(4, len(content)):
        damaged = io.BytesIO(content[:place] + bytes([byte]) + content[place + 1 :])
        with suppress(pa.ArrowInvalid):
            assert column_memory(damaged, column, is_listed=False).bytes >= 0
            assert longest_shared(damaged, column) >= 0


@pytest.mark.parametrize(
    "header",
    [b"", b"\x15",
     b"\xff" * 100, b"\x15\x00\x05\x02\x00", b"\x1c" * 100_000, b"\x19\xfc" + b"\xff" * 20, b"\x15\x00\x15\x01"],
    ids=["nothing", "the beginning", "numbers", "a field twice", "deep", "a long list", "negative"],
)  # fmt: skip
def test_an_impossible_header_is_rejected(header):
    file = written(ROWS[:1])
    column = row_groups(file)[0][0]
    with pytest.raises(pa.ArrowInvalid, match="a page header"):
        column_memory(io.BytesIO(b"PAR1" + header), column, is_listed=False)


def test_a_header_longer_than_the_first_read_is_read_whole(monkeypatch):
    file = written(ROWS[:100])
    known = memory(file)
    monkeypatch.setattr(parquet_pages, "_FIRST_BYTES", 8)
    assert memory(file) == known


def test_a_column_name_that_is_not_utf_8_counts_as_damage(tmp_path):
    path = tmp_path / "log.parquet"
    path.write_bytes(written(ROWS[:1], store_schema=False).getvalue().replace(b"text", b"te\xa2t"))
    with pytest.raises(BadInput, match="is damaged"):
        identify(path, ())


def test_strings_beyond_the_dictionary_count_are_ignored():
    content = b"".join(len(text).to_bytes(4, "little") + text for text in (b"abc", b"x" * 100))
    page = parquet_pages._PageHeader(len(content), 1, 0, is_dictionary=True, start=0, compressed=len(content))
    assert parquet_pages._longest_text(io.BytesIO(content), page, "") == 3
