"""Reading a log file as decompressed bytes, plain, gzip or zstd, in bounded memory. What a line means is not here."""

import hashlib
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa

from data.errors import BadInput

CHUNK_BYTES = 1 << 20
BLOCK_BYTES = 32 << 20
LONGEST_LINE = 1 << 16
"""A longer line is no log line; it is refused, and never held whole beyond one block."""

_GZIP, _ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"


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
    """Blocks of about 32 MiB of the bytes `start` to `content.size`, cut between lines.

    Raises BadInput when the file no longer begins with the bytes that `content` identified.
    """
    digest, size, line, kept, skipping = hashlib.sha256(), 0, 1, bytearray(), False
    for chunk in _readable(path, content.size):
        digest.update(chunk)
        fresh = chunk[max(0, start - size) :]
        line += chunk.count(b"\n", 0, len(chunk) - len(fresh))
        size += len(chunk)
        if skipping:
            newline = fresh.find(b"\n")
            fresh, skipping = (fresh[newline:], False) if newline >= 0 else (b"", True)
        kept += fresh
        if len(kept) >= BLOCK_BYTES:
            cut = kept.rfind(b"\n") + 1
            if cut:
                yield Block(line, bytes(kept[:cut]), size - len(kept) + cut, finished=True)
                line += kept.count(b"\n", 0, cut)
                del kept[:cut]
            else:
                skipping = True
                del kept[LONGEST_LINE + 1 :]
    if digest.hexdigest() != content.sha256:
        raise BadInput(f"{path} changed while it was read; import it again.")
    cut = kept.rfind(b"\n") + 1
    if cut:
        yield Block(line, bytes(kept[:cut]), size - len(kept) + cut, finished=True)
        line += kept.count(b"\n", 0, cut)
    if kept[cut:]:
        yield Block(line, bytes(kept[cut:]), size, finished=False)


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
