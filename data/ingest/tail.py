"""Reads a growing log: keeps the position up to which the open file was read, and detects truncation.

follower.py decides when to read and what to do with the lines. A new tail finds its position by comparing the file's
content with the imports in the manifest.
"""

import copy
import hashlib
import os
import stat
from contextlib import suppress
from pathlib import Path
from typing import Final

from data.errors import BadInput
from data.logs.source import (
    BLOCK_BYTES,
    CHUNK_BYTES,
    MAX_LINE_BYTES,
    Block,
    Content,
    Preamble,
    is_plain,
    split_after_lines,
)
from data.logs.wrappers import whole_lines_end
from data.manifest.logs import Batch, continued_batch
from data.manifest.manifest import Manifest

HEAD_BYTES: Final = 4096
"""Number of bytes at the beginning that show whether a file was overwritten: they contain times, so they would differ.
"""


class ReadPosition:
    """An offset in a file, with the hash, line count, head and preamble of the bytes before it."""

    def __init__(self) -> None:
        self.offset = 0
        self.lines = 0
        self.head = b""
        self._digest = hashlib.sha256()
        self._preamble = Preamble()

    @property
    def sha256(self) -> str:
        """The SHA-256 of all bytes before the offset, in hexadecimal digits."""
        return self._digest.hexdigest()

    def copy(self) -> "ReadPosition":
        """Return an independent copy of this position."""
        other = copy.copy(self)
        other._digest, other._preamble = self._digest.copy(), copy.copy(self._preamble)  # noqa: SLF001  # its own class
        return other

    def add(self, text: bytes) -> None:
        """Advance over the next bytes."""
        self.offset += len(text)
        self.lines += text.count(b"\n")
        self.head += text[: HEAD_BYTES - len(self.head)]
        self._digest.update(text)
        self._preamble.add(text)

    def block(self, text: bytes, end: int, finished: bool) -> Block:
        """Return the next bytes of the file as a block."""
        return self._preamble.annotate(Block(self.lines + 1, text, end, finished))


class Tail:
    """An open log. It stays open when the log is renamed or deleted, because servers may still write to it."""

    def __init__(self, path: Path) -> None:
        """Open a log. Raises BadInput unless it is an uncompressed regular file, and OSError if it cannot be opened."""
        if not stat.S_ISREG(path.stat().st_mode):  # opening a pipe would block
            raise BadInput(f"{path} is not a regular file; give the path of the log itself.")
        self.path = path
        self.position = ReadPosition()
        self.batch: Batch | None = None  # the import of this log's beginning, if there is one
        self.deadline: float | None = None  # the time when a renamed log is closed, by the follower's clock
        self.checked_size = -1  # the size of the file when it was last read to its end
        self.log_format = "auto"  # the format of the last lines that were read
        self.rejects_file: Path | None = None
        self._head = b""  # the first landed bytes
        self._handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        if not is_plain(os.pread(self._handle, 4, 0)):
            os.close(self._handle)
            raise BadInput(f"{path} is compressed, so it cannot be followed; import it with `traffic import`.")
        status = os.fstat(self._handle)
        self.file = status.st_dev, status.st_ino  # device and inode, which renaming does not change

    @property
    def size(self) -> int:
        """The current size of the file in bytes."""
        return os.fstat(self._handle).st_size

    @property
    def landed_bytes(self) -> int:
        """The number of bytes that have landed or contain no visits, including an unfinished last line."""
        return self.batch.size if self.batch else self.position.offset

    def was_truncated(self) -> bool:
        """Return whether the file is shorter than its landed part, or begins with other bytes."""
        return self.size < self.landed_bytes or os.pread(self._handle, len(self._head), 0) != self._head

    def reset(self) -> None:
        """Start over, as with a new log."""
        self.position, self.batch, self._head = ReadPosition(), None, b""
        self.checked_size, self.log_format, self.rejects_file = -1, "auto", None

    def resume(self, manifest: Manifest, organization: str, domain: str) -> None:
        """Continue after the longest import of a prefix of the file, as chosen by `continued_batch`."""
        is_known = self.batch is None or manifest.logs.is_registered(self.batch)
        if not self._resume_at(manifest, organization, domain) and not is_known:  # an older manifest was restored
            self.reset()
            self._resume_at(manifest, organization, domain)

    def read(self, end: int, is_over: bool) -> tuple[Block, ReadPosition] | None:
        """Return the next block of finished lines before byte `end`, and the position after it; None if there is none.

        With `is_over`, the last line is included even if it is unfinished.
        """
        position, is_over = self.position.copy(), is_over and end > self.landed_bytes
        text = os.pread(self._handle, max(0, min(BLOCK_BYTES, end - position.offset)), position.offset)
        text = next(split_after_lines(text))
        cut = whole_lines_end(text)
        if len(text) == BLOCK_BYTES:
            cut = cut or text.rfind(b"\n") + 1
        if len(text) == BLOCK_BYTES and not cut:  # truncate a line longer than a block; it is still rejected
            start = text[: MAX_LINE_BYTES + 1]
            while text:
                newline = text.find(b"\n") + 1
                position.add(text[:newline] if newline else text)
                if newline:
                    return self.position.block(start + b"\n", position.offset, finished=True), position
                text = os.pread(self._handle, min(CHUNK_BYTES, end - position.offset), position.offset)
            return (self.position.block(start, position.offset, finished=False), position) if is_over else None
        if not cut and not (is_over and text):
            return None
        position.add(text[:cut] if cut else text)
        return self.position.block(text[:cut] if cut else text, position.offset, cut > 0), position

    def accept(self, block: Block, position: ReadPosition, batch: Batch | None) -> None:
        """Advance past a block that has landed or contained no visits. An unfinished line will be read again."""
        self.position = position if block.finished else self.position
        self.batch, self._head = batch, position.head

    def begins_with(self, content: Content) -> bool:
        """Return whether this log begins with all of another log's content."""
        position = ReadPosition()
        self._read_to(position, content.size)
        return position.offset == content.size and position.sha256 == content.sha256

    def sync(self) -> None:
        """Sync the log to disk: if a power failure truncated it, its content would no longer match its import."""
        with suppress(OSError):  # some file systems do not support it
            os.fsync(self._handle)

    def close(self) -> None:
        """Close the file."""
        os.close(self._handle)

    def _resume_at(self, manifest: Manifest, organization: str, domain: str) -> bool:
        """Continue after the longest import beyond the current position; return whether there is such an import."""
        size, position, positions = self.size, self.position.copy(), {}
        longer = manifest.logs.longer(organization, self.landed_bytes, size, position.offset)
        for mark in sorted({mark for row in longer for mark in (row.whole_size, row.size)}):
            self._read_to(position, mark)
            positions[mark] = position.copy()
        same = [row for row in longer if positions[row.size].sha256 == row.sha256]
        found = continued_batch([*same, *([self.batch] if self.batch else [])], size, domain) if same else None
        if found:
            self.batch = found
            self.position, self._head = positions[found.whole_size], positions[found.size].head
        return found is not None

    def _read_to(self, position: ReadPosition, mark: int) -> None:
        """Advance `position` to the offset `mark`, or to the end of the file."""
        while text := os.pread(self._handle, min(CHUNK_BYTES, mark - position.offset), position.offset):
            position.add(text)
