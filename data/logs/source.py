"""Reads log files in bounded memory, as blocks of whole lines: plain text, gzip, zstd, or Parquet rows as JSON lines.

The lines are parsed in formats.py.
"""

import hashlib
import os
import re
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import BinaryIO, Final, Literal, Protocol

import duckdb
import pyarrow as pa

from data.errors import BadInput
from data.logs.parquet_lines import rows_as_lines
from data.logs.wrappers import whole_lines_end

CHUNK_BYTES = 1 << 20
_FIRST_PIECE_BYTES: Final = 128
BLOCK_BYTES = 16 << 20
MAX_BLOCK_LINES: Final = 1 << 18
"""Maximum number of lines in a block; each takes extra memory. Usually, 16 MiB of a log contain about 100,000 lines."""
MAX_EXPANSION: Final = 1_000
"""Maximum compression ratio of a log: usual ratios are 5 to 100, and gzip's limit is 1,032."""
MAX_UNCHECKED_BYTES: Final = 256 << 20
"""Decompressed size up to which the compression ratio does not matter."""
MAX_LINE_BYTES = 1 << 16
"""Maximum length of a line. Longer lines are rejected, and truncated so that they never fill more than one block."""

BOM: Final = b"\xef\xbb\xbf"
"""The byte order mark that some Windows programs write at the start of a file. It is not part of the text."""

_GZIP, _PARQUET = b"\x1f\x8b", b"PAR1"
_NOT_ZERO: Final = re.compile(rb"[^\0]")
_ZSTD: Final = (b"\x28\xb5\x2f\xfd", *(bytes([number]) + b"\x2a\x4d\x18" for number in range(0x50, 0x60)))
"""Magic numbers of Zstandard frames and of skippable frames (RFC 8878)."""


class Source(Protocol):
    """The source of a log: a path, or an object in a bucket. `str()` returns its name for messages."""

    def open(self, mode: Literal["rb"], /) -> BinaryIO:
        """Open a seekable stream at the beginning."""


class LogUnavailable(BadInput):
    """A log cannot be read at the moment, for example because its disk or network fails."""


class TruncatedLog(Exception):
    """A compressed file is truncated; its readable part has already been yielded."""


@dataclass(frozen=True)
class Content:
    """The identity of a log's content, independent of the file's name and compression."""

    size: int  # decompressed bytes
    sha256: str
    prefixes: dict[int, str]  # n → SHA-256 of the first n bytes
    is_truncated: bool


@dataclass(frozen=True)
class Block:
    """Consecutive lines of a log. Only the last line of a file may be unfinished (without a newline)."""

    first_line: int  # number of its first line in the file, from 1
    text: bytes
    end: int  # offset in the file of the first byte after the block
    finished: bool
    header: bytes = b""  # the file's first line, which in some formats names the columns
    fields: bytes = b""  # the last line before the block that begins with #Fields:


def is_plain(beginning: bytes) -> bool:
    """Return whether a file that begins with these bytes is plain text, neither compressed nor Parquet."""
    return not beginning.startswith((_GZIP, *_ZSTD, _PARQUET))


def identify(path: Source, lengths: Iterable[int]) -> Content:
    """Read a log once and return the hash of its decompressed content, and of its first n bytes for each n in `lengths`
    up to its size. Raises BadInput if it cannot be read.
    """
    marks = sorted(set(lengths), reverse=True)
    digest, size, prefixes, is_truncated = hashlib.sha256(), 0, {}, False
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
    except TruncatedLog:
        is_truncated = True
    return Content(size, digest.hexdigest(), prefixes, is_truncated)


def beginning(path: Source, size: int) -> bytes:
    """Return the first `size` decompressed bytes of a log. Raises BadInput if it cannot be read."""
    return b"".join(_readable(path, size))


def blocks(path: Source, content: Content, start: int = 0) -> Iterator[Block]:
    """Yield the bytes from `start` to `content.size` in blocks of about 16 MiB, split between lines.

    Raises BadInput if the file no longer begins with the content that `content` identifies.
    """
    preamble = Preamble()
    for block in _cut(path, content, start, preamble):
        yield preamble.annotate(block)
        preamble.add(block.text)


class Preamble:
    """The header and the last #Fields directive in the bytes before a block."""

    def __init__(self) -> None:
        self._header: bytes | None = None
        self._fields = b""
        self._rest = b""  # the beginning of an incomplete line

    def add(self, text: bytes) -> None:
        """Scan the next bytes of the file."""
        text = self._rest + text
        end = text.rfind(b"\n") + 1
        self._rest = text[end : end + MAX_LINE_BYTES]
        if not end:
            return
        if self._header is None:
            self._header = _first_line(text)
        has_directives = b"#" in text  # most logs have none, and checking this is faster than finding the last
        at = text.rfind(b"\n#Fields:", 0, end) + 1 if has_directives else 0
        if at or text.startswith((b"#Fields:", BOM + b"#Fields:")):
            self._fields = _first_line(text[at : at + MAX_LINE_BYTES])

    def annotate(self, block: Block) -> Block:
        """Return the block with the file's header and the last #Fields directive before the block."""
        header = _first_line(block.text) if self._header is None else self._header
        return replace(block, header=header, fields=self._fields)


def _first_line(text: bytes) -> bytes:
    return text[:MAX_LINE_BYTES].partition(b"\n")[0].rstrip(b"\r").removeprefix(BOM)


def _cut(path: Source, content: Content, start: int, preamble: Preamble) -> Iterator[Block]:
    digest, size, line, skipping = hashlib.sha256(), 0, 1, False
    pieces, held = list[bytes](), 0  # pieces read since the last block, and their total bytes
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
        pieces.append(fresh)
        held += len(fresh)
        if held >= BLOCK_BYTES:
            text, rest = _whole_lines(pieces)
            if text:
                yield from _whole_line_blocks(line, text, size - len(rest))
                line += text.count(b"\n")
            elif b"\n" not in rest:
                skipping = True
                rest = rest[: MAX_LINE_BYTES + 1]
            pieces, held = [rest], len(rest)
    if digest.hexdigest() != content.sha256:
        raise BadInput(f"{path} changed while it was being read; import it again.")
    text, rest = _whole_lines(pieces)
    if text:
        yield from _whole_line_blocks(line, text, size - len(rest))
        line += text.count(b"\n")
    if rest:
        yield Block(line, rest, size, finished=False)


def _whole_line_blocks(line: int, text: bytes, end: int) -> Iterator[Block]:
    """Split whole lines into blocks. `line` is the number of the first line; `end` is the offset after the last."""
    offset = end - len(text)
    for part in split_after_lines(text):
        offset += len(part)
        yield Block(line, part, offset, finished=True)
        line += part.count(b"\n")


def split_after_lines(text: bytes) -> Iterator[bytes]:
    """Split bytes after newlines into parts of at most MAX_BLOCK_LINES lines."""
    if text.count(b"\n") <= MAX_BLOCK_LINES:
        yield text
        return
    middle = whole_lines_end(text[: len(text) // 2]) or text.find(b"\n") + 1
    yield from split_after_lines(text[:middle])
    yield from split_after_lines(text[middle:])


def _whole_lines(pieces: list[bytes]) -> tuple[bytes, bytes]:
    """Join pieces, and split them after the last whole line. Usually, the bytes are copied only once."""
    *before, last = pieces or [b""]
    cut = whole_lines_end(last)
    if last.rfind(b"\n", 0, max(cut - 1, 0)) >= 0:  # the whole last line is in this piece
        return b"".join((*before, last[:cut])), last[cut:]
    text = b"".join(pieces)
    cut = whole_lines_end(text)
    return text[:cut], text[cut:]


def _readable(path: Source, size: int) -> Iterator[bytes]:
    """Yield the first `size` decompressed bytes, or fewer if the log is truncated, which only `identify` reports."""
    try:
        for chunk in _chunks(path):
            yield chunk[:size]
            size -= len(chunk)
            if size <= 0:
                return
    except TruncatedLog:
        return


def _chunks(path: Source) -> Iterator[bytes]:
    try:
        with path.open("rb") as file:
            magic = file.read(4)
            room = max(MAX_UNCHECKED_BYTES, MAX_EXPANSION * file.seek(0, os.SEEK_END))
            file.seek(0)
            if magic.startswith(_GZIP):
                yield from _limited(room, path, _gunzipped(file))
            elif magic in _ZSTD:
                yield from _limited(room, path, _unzstd(file))
            elif magic == _PARQUET:
                yield from _limited(room, path, rows_as_lines(path, file))
            else:
                yield from iter(lambda: file.read(CHUNK_BYTES), b"")
    except (zlib.error, pa.ArrowException, duckdb.Error, UnicodeDecodeError) as error:
        raise BadInput(f"{path} is damaged ({error}); none of it was imported; import an intact copy.") from error
    except OSError as error:
        if error.errno is None:  # such as for Parquet that cannot be decoded
            raise BadInput(f"{path} is damaged ({error}); none of it was imported; import an intact copy.") from error
        raise LogUnavailable(f"{path} cannot be read: {error.strerror or error}.") from error


def _limited(room: int, path: Source, chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the chunks of a compressed file. Raises BadInput if they exceed `room` bytes."""
    for chunk in chunks:
        room -= len(chunk)
        if room < 0:
            raise BadInput(
                f"{path} expands to more than {MAX_EXPANSION:,} times its size, which is unusual for a log; "
                "if it is a log, import it decompressed (Parquet as JSON lines)."
            )
        yield chunk


def _gunzipped(file: BinaryIO) -> Iterator[bytes]:
    """Decompress all members of a gzip file in chunks, so that nothing before a damaged end is lost.

    zlib copies everything after a member, so each member is fed pieces that begin small and double in size.
    """
    member = None
    while raw := file.read(CHUNK_BYTES):
        at = 0
        while at < len(raw):
            if member is None:
                beginning = _NOT_ZERO.search(raw, at)  # some writers pad with zeros
                if beginning is None:
                    break
                at, member, length = beginning.start(), zlib.decompressobj(wbits=31), _FIRST_PIECE_BYTES
            piece = raw[at : at + length]
            yield member.decompress(piece, CHUNK_BYTES)
            at += len(piece) - len(member.unconsumed_tail) - len(member.unused_data)
            length *= 2
            if member.eof:
                member = None
    if member is not None:
        yield member.flush()
        raise TruncatedLog


def _unzstd(file: BinaryIO) -> Iterator[bytes]:
    with pa.CompressedInputStream(pa.PythonFile(file, "r"), "zstd") as stream:
        while True:
            try:
                chunk = stream.read(1 << 16)  # at a truncated end, less than this is lost
            except OSError as error:
                if "Truncated" in str(error):
                    raise TruncatedLog from error
                raise pa.ArrowInvalid(str(error)) from error
            if not chunk:
                return
            yield chunk
