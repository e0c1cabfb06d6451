"""Reading plain, gzipped, zstd-compressed, Parquet, broken and changing log files."""

import gzip
import hashlib
import zlib
from contextlib import closing
from datetime import datetime
from decimal import Decimal
from itertools import accumulate, pairwise
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from data.errors import BadInput
from data.logs import parquet_lines, source
from data.logs.source import blocks, identify
from tests.support.memory import traced_peak

TEXT = b"".join(b"line %d of the log\n" % number for number in range(1, 2001))
UNEVEN = hashlib.shake_256(b"seed").digest(300_000).replace(b"\n", b"\x0b")  # incompressible


def gz(content: bytes) -> bytes:
    return gzip.compress(content, mtime=0)


def zst(content: bytes) -> bytes:
    return pa.Codec("zstd").compress(content, asbytes=True)


def write(folder: Path, content: bytes, name: str = "access.log") -> Path:
    path = folder / name
    path.write_bytes(content)
    return path


def read(path: Path, start: int = 0) -> bytes:
    return b"".join(block.text for block in blocks(path, identify(path, ()), start))


def zst_after_skipped(content: bytes) -> bytes:
    """Compress as pzstd and others do: each frame follows a skippable frame, here of three bytes."""
    return b"\x5d\x2a\x4d\x18" + (3).to_bytes(4, "little") + b"abc" + zst(content)


def unzipped(content: bytes) -> bytes:
    """Return the standard library's result for a gzip file that may be truncated."""
    member = zlib.decompressobj(wbits=31)
    return member.decompress(content) + member.flush()


@pytest.mark.parametrize("name", ["access.log", "access.log.gz", "access.zst", "no suffix"])
@pytest.mark.parametrize("packed", [bytes, gz, zst, zst_after_skipped], ids=["plain", "gzip", "zstd", "skipped"])
def test_the_first_bytes_determine_the_compression(tmp_path, name, packed):
    path = write(tmp_path, packed(TEXT), name)
    content = identify(path, ())
    assert (content.size, content.sha256) == (len(TEXT), hashlib.sha256(TEXT).hexdigest())
    assert not content.is_truncated
    assert read(path) == TEXT


@pytest.mark.parametrize("packed", [gz, zst, zst_after_skipped], ids=["gzip", "zstd", "skipped"])
@pytest.mark.parametrize("cuts", [(700,), (0, 1, 20_000), (len(TEXT),)])
def test_gzip_members_and_zstd_frames_are_read_as_one_stream(tmp_path, packed, cuts):
    bounds = [0, *cuts, len(TEXT)]
    parts = [packed(TEXT[start:end]) for start, end in pairwise(bounds)]
    path = write(tmp_path, b"".join(parts))
    assert identify(path, ()).sha256 == hashlib.sha256(TEXT).hexdigest()
    assert read(path) == TEXT


def test_zeros_that_pad_a_gzip_file_are_not_content(tmp_path):
    path = write(tmp_path, gz(TEXT) + bytes(1000) + gz(b"more\n") + bytes(1000))
    assert read(path) == TEXT + b"more\n"
    assert not identify(path, ()).is_truncated


def test_zeros_after_a_gzip_member_are_not_kept_in_memory(tmp_path):
    path = write(tmp_path, gz(TEXT) + bytes(16 * source.CHUNK_BYTES))
    assert traced_peak(lambda: identify(path, ())) < 4 * source.CHUNK_BYTES


def test_work_grows_linearly_with_the_number_of_gzip_members(tmp_path, monkeypatch):
    """zlib copies everything after the end of a member."""
    given = []

    class Counting:
        def __init__(self, wbits, new=zlib.decompressobj):
            self._member = new(wbits=wbits)

        def decompress(self, piece, most):
            given.append(len(piece))
            return self._member.decompress(piece, most)

        def __getattr__(self, name):
            return getattr(self._member, name)

    path = write(tmp_path, gz(b"") * 20_000)
    monkeypatch.setattr(zlib, "decompressobj", Counting)
    identify(path, ())
    assert len(given) == 20_000
    assert sum(given) < 10 * path.stat().st_size


@pytest.mark.parametrize("size", [0, 1, source.CHUNK_BYTES, source.CHUNK_BYTES + 1])
@pytest.mark.parametrize("packed", [bytes, gz, zst], ids=["plain", "gzip", "zstd"])
def test_files_around_the_chunk_size_are_read_completely(tmp_path, packed, size):
    content = identify(write(tmp_path, packed(b"\n" * size)), ())
    assert (content.size, content.is_truncated) == (size, False)
    assert read(tmp_path / "access.log") == b"\n" * size


@pytest.mark.parametrize("packed", [bytes, gz, zst], ids=["plain", "gzip", "zstd"])
def test_prefixes_within_the_content_are_hashed(tmp_path, packed):
    lengths = (0, 1, 1, 700, len(TEXT) - 1, len(TEXT), len(TEXT) + 1)
    content = identify(write(tmp_path, packed(TEXT)), lengths)
    assert content.prefixes == {size: hashlib.sha256(TEXT[:size]).hexdigest() for size in lengths[:-1]}
    assert content.sha256 == hashlib.sha256(TEXT).hexdigest()


@given(end=st.integers(2, len(gz(TEXT)) - 1))
@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_truncated_gzip_file_gives_its_readable_part(tmp_path, end):
    cut = gz(TEXT)[:end]
    content = identify(write(tmp_path, cut), ())
    assert content.is_truncated
    assert content.size == len(unzipped(cut))
    assert read(tmp_path / "access.log") == unzipped(cut)


def test_a_truncated_second_gzip_member_is_read_up_to_the_cut(tmp_path):
    path = write(tmp_path, gz(TEXT) + gz(UNEVEN)[:-100])
    content = identify(path, ())
    assert content.is_truncated
    assert content.size > len(TEXT) + len(UNEVEN) - 1000
    assert (TEXT + UNEVEN).startswith(read(path))


@pytest.mark.parametrize("kept", [4, 5, 10, 1000, 299_000])
def test_a_truncated_zstd_file_gives_its_readable_part(tmp_path, kept):
    path = write(tmp_path, zst(UNEVEN) + zst(UNEVEN)[:kept])
    content = identify(path, ())
    assert content.is_truncated
    assert content.size >= len(UNEVEN) - (1 << 16)
    assert (UNEVEN + UNEVEN).startswith(read(path))
    path = write(tmp_path, zst(UNEVEN)[:kept])
    assert identify(path, ()).is_truncated
    assert UNEVEN.startswith(read(path))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (gz(UNEVEN)[:-6] + bytes(6), "damaged"),  # its checksum
        (gz(TEXT) + b"something else", "damaged"),
        (zst(TEXT)[:5] + b"\xff" * 35 + zst(TEXT)[40:], "damaged"),
        (None, r"access\.log cannot be read"),
    ],
    ids=["checksum of gzip", "something after gzip", "zstd", "missing"],
)
def test_damaged_and_missing_files_and_folders_are_rejected(tmp_path, content, message):
    if content:
        write(tmp_path, content)
    with pytest.raises(BadInput, match=message):
        identify(tmp_path / "access.log", ())
    with pytest.raises(BadInput, match="cannot be read"):
        identify(tmp_path, ())


def test_a_last_line_without_newline_is_a_separate_block(tmp_path):
    path = write(tmp_path, b"one\ntwo\nthr")
    for start, first in ((0, (1, b"one\ntwo\n", True)), (4, (2, b"two\n", True))):
        told = [(block.first_line, block.text, block.finished) for block in blocks(path, identify(path, ()), start)]
        assert told == [first, (3, b"thr", False)]


def test_an_overlong_line_does_not_shift_line_numbers(tmp_path, monkeypatch):
    monkeypatch.setattr(source, "BLOCK_BYTES", 1 << 17)
    monkeypatch.setattr(source, "CHUNK_BYTES", 10_000)
    path = write(tmp_path, b"one\n" + b"x" * 1_000_000 + b"\nthree\nfour")
    found = list(blocks(path, identify(path, ())))
    lines = {}
    for block in found:
        lines |= dict(enumerate(block.text.splitlines(), block.first_line))
    assert list(lines) == [1, 2, 3, 4]
    assert (lines[1], lines[3], lines[4]) == (b"one", b"three", b"four")
    assert source.MAX_LINE_BYTES < len(lines[2]) <= 1 << 17


def test_a_file_changed_after_its_identification_is_rejected(tmp_path):
    path = write(tmp_path, b"one\ntwo\n")
    content = identify(path, ())
    for after in (b"one\nTWO\n", b"one\n", b""):
        path.write_bytes(after)
        with pytest.raises(BadInput, match="changed while it was being read"):
            list(blocks(path, content))
    path.write_bytes(b"one\ntwo\nthree\n")
    assert [block.text for block in blocks(path, content)] == [b"one\ntwo\n"]


@given(
    lines=st.lists(st.binary(max_size=20).map(lambda line: line.replace(b"\n", b"")), max_size=30),
    chunk=st.integers(1, 50),
    block=st.integers(22, 100),
    data=st.data(),
)
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_joined_blocks_equal_the_content(tmp_path, lines, chunk, block, data):
    text = b"\n".join(lines)
    assume(not text.startswith((b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"PAR1")))  # a plain log that begins like another
    path = write(tmp_path, data.draw(st.sampled_from([bytes, gz]))(text))
    start = data.draw(st.integers(0, len(text)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(source, "CHUNK_BYTES", chunk)
        patch.setattr(source, "BLOCK_BYTES", block)
        patch.setattr(source, "MAX_LINE_BYTES", 20)
        found = list(blocks(path, identify(path, ()), start))
    assert b"".join(part.text for part in found) == text[start:]
    assert all(part.text.endswith(b"\n") and part.finished for part in found[:-1])
    assert all(part.finished == part.text.endswith(b"\n") for part in found)
    assert [part.end for part in found] == [*accumulate((len(part.text) for part in found), initial=start)][1:]
    assert [part.first_line for part in found] == [
        text.count(b"\n", 0, part.end - len(part.text)) + 1 for part in found
    ]


# Lines before a block


def headings(path, start=0):
    return [(block.text, block.header, block.fields) for block in blocks(path, identify(path, ()), start)]


def test_every_block_has_the_first_line_of_its_file(tmp_path, monkeypatch):
    monkeypatch.setattr(source, "CHUNK_BYTES", 3)
    monkeypatch.setattr(source, "BLOCK_BYTES", 8)
    path = write(tmp_path, b"\xef\xbb\xbfa,b\r\n1,2\r\n3,4\n5,6")
    assert {header for _, header, _ in headings(path)} == {b"a,b"}
    assert headings(path, start=13) == [(b"3,4\n", b"a,b", b""), (b"5,6", b"a,b", b"")]


@pytest.mark.parametrize("chunk", [1, 2, 7, 1000])
@pytest.mark.parametrize("packed", [bytes, gz, zst], ids=["plain", "gzip", "zstd"])
def test_every_block_has_the_last_fields_directive_before_it(tmp_path, monkeypatch, packed, chunk):
    monkeypatch.setattr(source, "CHUNK_BYTES", chunk)
    monkeypatch.setattr(source, "BLOCK_BYTES", 16)
    lines = [b"#Fields: a\n", b"1\n", b"no #Fields: x\n", b"#Fields: b\r\n", b"#Field\n", b"2\n", b"#Fields: c\n", b"3"]
    path = write(tmp_path, packed(b"".join(lines)))
    wanted = [b"", *[b"#Fields: a"] * 3, *[b"#Fields: b"] * 3, b"#Fields: c"]
    for number, fields in enumerate(wanted):
        (text, header, found), *_ = headings(path, start=len(b"".join(lines[:number])))
        assert text.startswith(lines[number])
        assert (header, found) == (b"#Fields: a", fields)


def test_fields_are_found_after_a_bom_and_an_overlong_line(tmp_path, monkeypatch):
    monkeypatch.setattr(source, "CHUNK_BYTES", 10_000)
    monkeypatch.setattr(source, "BLOCK_BYTES", 1 << 17)
    path = write(tmp_path, b"\xef\xbb\xbf#Fields: a\n" + b"x" * 500_000 + b"\n#Fields: b\nlast")
    told = headings(path)
    assert told[0][1:] == (b"#Fields: a", b"")
    assert told[-1] == (b"last", b"#Fields: a", b"#Fields: b")
    assert headings(path, start=14)[0][2] == b"#Fields: a"


# Memory


def test_a_block_of_short_lines_is_cut_at_the_right_offsets(tmp_path, monkeypatch):
    monkeypatch.setattr(source, "MAX_BLOCK_LINES", 3)
    text = b"x" * 100 + b"\n" + b"".join(b"%d\n" % number for number in range(2, 21)) + b"21"
    path = write(tmp_path, text)
    found = list(blocks(path, identify(path, ())))
    assert b"".join(block.text for block in found) == text
    assert all(block.text.count(b"\n") <= 3 for block in found)
    assert [block.first_line for block in found[1:]] == [int(block.text.split(b"\n")[0]) for block in found[1:]]
    assert [block.end for block in found] == [*accumulate(len(block.text) for block in found)]


def test_a_file_may_expand_up_to_the_limit_but_no_more(tmp_path, monkeypatch):
    monkeypatch.setattr(source, "MAX_UNCHECKED_BYTES", 1_000)
    path = write(tmp_path, zst(b"\n" * 15_000))
    monkeypatch.setattr(source, "MAX_EXPANSION", 15_000 // path.stat().st_size + 1)
    assert identify(path, ()).size == 15_000
    monkeypatch.setattr(source, "MAX_EXPANSION", 15_000 // path.stat().st_size)
    with pytest.raises(BadInput, match=r"expands to more than [\d,]+ times its size, which is unusual for a log"):
        identify(path, ())


VALUES = {
    "text": ["a", None, "ü" * 300, ""],
    "bytes": [b"a", b"\xff", None, b""],
    "list": [["a", "b"], [], None, [None]],
    "map": [[("k", "v")], [], None, [("k", None), ("l", "w")]],
    "struct": [{"a": "x", "b": [1]}, None, {"a": None, "b": None}, {"a": "y", "b": []}],
    "decimal": [Decimal("1.50"), None, Decimal(2), Decimal(3)],
    "time": [datetime(2026, 3, 2, 1, 2, 3), None, datetime(2026, 3, 2), datetime(2026, 3, 3)],
}


@pytest.mark.parametrize("uses_dictionary", [True, False])
def test_lines_from_a_parquet_file_do_not_depend_on_batch_sizes(tmp_path, monkeypatch, uses_dictionary):
    kinds = {"map": pa.map_(pa.string(), pa.string())}
    table = pa.table({name: pa.array(values * 50, kinds.get(name)) for name, values in VALUES.items()})
    pq.write_table(table, tmp_path / "log.parquet", use_dictionary=uses_dictionary, row_group_size=70)
    whole = blocks_text(tmp_path / "log.parquet")
    with closing(duckdb.connect()) as engine:  # DuckDB gives the same lines for the same rows
        rows = pa.table({"row": pa.concat_arrays([batch.to_struct_array() for batch in table.to_batches()])})
        engine.register("rows", rows)
        assert whole == [line for (line,) in engine.execute("SELECT to_json(row)::VARCHAR FROM rows").fetchall()]
    monkeypatch.setattr(parquet_lines, "_LINES_BYTES", 2_000)
    assert blocks_text(tmp_path / "log.parquet") == whole


def blocks_text(path):
    """Return the lines of a log, read in blocks."""
    return b"".join(block.text for block in blocks(path, identify(path, ()))).decode().splitlines()


def test_a_parquet_row_that_is_far_too_large_is_rejected(tmp_path, monkeypatch):
    pq.write_table(pa.table({"text": ["a"] * 5 + ["x" * 2_000]}), tmp_path / "log.parquet")
    monkeypatch.setattr(parquet_lines, "MAX_ROW_BYTES", 1_000)
    with pytest.raises(BadInput, match=r"may have rows of 2,000 bytes, from row 1 on; shorten its values\."):
        identify(tmp_path / "log.parquet", ())
