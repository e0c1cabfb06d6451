"""Reading a log file as decompressed bytes, in bounded memory: plain, gzip or zstd, or the rows of a Parquet file.

What a line means is not here.
"""

import hashlib
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO, Final

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from data.errors import BadInput

CHUNK_BYTES = 1 << 20
BLOCK_BYTES = 16 << 20
MAX_LINE_BYTES = 1 << 16
"""A longer line is no log line; it is refused, and never held whole beyond one block."""

BOM: Final = b"\xef\xbb\xbf"
"""The byte order mark that some programs of Windows write at a file's start; it is no text."""

_GZIP, _ZSTD, _PARQUET = b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"PAR1"
_ROWS: Final = 16_384
"""Rows of a Parquet file that are turned into lines at once."""


class CutShort(Exception):
    """A compressed file ended before its end. All that could be read was given out before."""


@dataclass(frozen=True)
class Content:
    """What a log file holds, whatever its name and compression."""

    size: int  # decompressed bytes
    sha256: str
    prefixes: dict[int, str]  # length in bytes → SHA-256 of that many first bytes
    cut_short: bool


@dataclass(frozen=True)
class Block:
    """Some whole lines of a log. The last one may be unfinished when the file does not end in a newline."""

    first_line: int  # number of its first line in the file, from 1
    text: bytes
    end: int  # the byte of the file after it
    finished: bool
    header: bytes = b""  # the file's first line, which in some formats names the columns
    fields: bytes = b""  # the last line before the block that begins with #Fields:


def is_plain(beginning: bytes) -> bool:
    """Whether a file that begins with these bytes holds its lines as they are, neither packed nor as Parquet."""
    return not beginning.startswith((_GZIP, _ZSTD, _PARQUET))


def identify(path: Path, lengths: Iterable[int]) -> Content:
    """Read the file once; hash it whole and its first n bytes for every n in `lengths` that it reaches."""
    marks = sorted(set(lengths), reverse=True)
    digest, size, prefixes, cut_short = hashlib.sha256(), 0, {}, False
    try:
        for chunk in _chunks(path):
            rest = memoryview(chunk)
            while marks and marks[-1] <= size + len(rest):
                step = marks[-1] - size
                digest.update(rest[:step])
                rest, size = rest[step:], size + step
                prefixes[marks.pop()] = digest.hexdigest()
            digest.update(rest)
            size += len(rest)
    except CutShort:
        cut_short = True
    return Content(size, digest.hexdigest(), prefixes, cut_short)


def blocks(path: Path, content: Content, start: int = 0) -> Iterator[Block]:
    """Blocks of about 16 MiB of the bytes `start` to `content.size`, cut between lines.

    Raises BadInput when the file no longer begins with the bytes that `content` identified.
    """
    preamble = Preamble()
    for block in _cut(path, content, start, preamble):
        yield preamble.annotate(block)
        preamble.add(block.text)


class Preamble:
    """What the bytes before a block say about its lines."""

    def __init__(self) -> None:
        self._header: bytes | None = None
        self._fields = b""
        self._rest = b""  # of a line whose end is still to come

    def add(self, text: bytes) -> None:
        """Pass by the next bytes of the file."""
        text = self._rest + text
        end = text.rfind(b"\n") + 1
        self._rest = text[end : end + MAX_LINE_BYTES]
        if not end:
            return
        if self._header is None:
            self._header = _first_line(text)
        at = text.rfind(b"\n#Fields:", 0, end) + 1
        if at or text.startswith((b"#Fields:", BOM + b"#Fields:")):
            self._fields = _first_line(text[at : at + MAX_LINE_BYTES])

    def annotate(self, block: Block) -> Block:
        """A block, told what stood before it."""
        header = _first_line(block.text) if self._header is None else self._header
        return replace(block, header=header, fields=self._fields)


def _first_line(text: bytes) -> bytes:
    return text[:MAX_LINE_BYTES].partition(b"\n")[0].rstrip(b"\r").removeprefix(BOM)


def _cut(path: Path, content: Content, start: int, preamble: Preamble) -> Iterator[Block]:
    digest, size, line, buffer, skipping = hashlib.sha256(), 0, 1, bytearray(), False
    for chunk in _readable(path, content.size):
        digest.update(chunk)
        old, fresh = chunk[: max(0, start - size)], chunk[max(0, start - size) :]
        if old:
            preamble.add(old)
        line += old.count(b"\n")
        size += len(chunk)
        if skipping:
            newline = fresh.find(b"\n")
            fresh, skipping = (fresh[newline:], False) if newline >= 0 else (b"", True)
        buffer += fresh
        if len(buffer) >= BLOCK_BYTES:
            cut = buffer.rfind(b"\n") + 1
            if cut:
                yield Block(line, _beginning(buffer, cut), size - len(buffer) + cut, finished=True)
                line += buffer.count(b"\n", 0, cut)
                del buffer[:cut]
            else:
                skipping = True
                del buffer[MAX_LINE_BYTES + 1 :]
    if digest.hexdigest() != content.sha256:
        raise BadInput(f"{path} changed while it was being read; import it again.")
    cut = buffer.rfind(b"\n") + 1
    if cut:
        yield Block(line, _beginning(buffer, cut), size - len(buffer) + cut, finished=True)
        line += buffer.count(b"\n", 0, cut)
    if buffer[cut:]:
        yield Block(line, bytes(buffer[cut:]), size, finished=False)


def _beginning(buffer: bytearray, end: int) -> bytes:
    with memoryview(buffer) as view:  # a slice of the bytes themselves would be a second copy
        return bytes(view[:end])


def _readable(path: Path, size: int) -> Iterator[bytes]:
    """The first `size` decompressed bytes; a file cut short ends quietly, as `identify` has told already."""
    try:
        for chunk in _chunks(path):
            yield chunk[:size]
            size -= len(chunk)
            if size <= 0:
                return
    except CutShort:
        return


def _chunks(path: Path) -> Iterator[bytes]:
    try:
        with path.open("rb") as file:
            magic = file.read(4)
            file.seek(0)
            if magic.startswith(_GZIP):
                yield from _gunzipped(file)
            elif magic == _ZSTD:
                yield from _unzstd(path)
            elif magic == _PARQUET:
                yield from _rows_as_lines(path)
            else:
                yield from iter(lambda: file.read(CHUNK_BYTES), b"")
    except OSError as error:
        raise BadInput(f"{path} cannot be read: {error.strerror or error}.") from error


def _gunzipped(file: BinaryIO) -> Iterator[bytes]:
    """Every member of a gzip file, chunk by chunk, so that a broken end loses nothing before it."""
    member = zlib.decompressobj(wbits=31)
    while raw := file.read(CHUNK_BYTES):
        while raw:
            try:
                yield member.decompress(raw, CHUNK_BYTES)
            except zlib.error as error:
                raise BadInput(f"{file.name} is damaged ({error}); nothing of it was imported.") from error
            raw = member.unconsumed_tail
            if member.eof:
                raw = member.unused_data.lstrip(b"\0")  # some writers pad with zeros
                member = zlib.decompressobj(wbits=31) if raw else member
    if not member.eof:
        yield member.flush()
        raise CutShort


def _unzstd(path: Path) -> Iterator[bytes]:
    with pa.CompressedInputStream(pa.OSFile(str(path)), "zstd") as stream:
        while True:
            try:
                chunk = stream.read(1 << 16)  # what a cut end loses is less than one such piece
            except OSError as error:
                if "Truncated" in str(error):
                    raise CutShort from error
                raise BadInput(f"{path} is damaged ({error}); nothing of it was imported.") from error
            if not chunk:
                return
            yield chunk


def _rows_as_lines(path: Path) -> Iterator[bytes]:
    """One line of JSON for each row of a Parquet file, all its columns by name; the same file gives the same lines."""
    try:
        with duckdb.connect() as engine, pq.ParquetFile(path) as file:
            engine.execute("SET TimeZone = 'UTC'")
            engine.execute("SET temp_directory = ''")  # rows hold addresses: nothing of them may spill to disk
            for batch in file.iter_batches(_ROWS):
                engine.register("batch", pa.table({"row": batch.to_struct_array()}))
                lines = engine.sql("SELECT CAST(to_json(row) AS VARCHAR) AS line FROM batch").to_arrow_table()
                yield "".join(f"{line}\n" for line in lines["line"].to_pylist()).encode()
    except (pa.ArrowException, duckdb.Error) as error:
        raise BadInput(f"{path} is damaged ({error}); nothing of it was imported.") from error
