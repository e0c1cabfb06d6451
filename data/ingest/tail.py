"""The end of a log that grows: how far the open file was read, and whether it is still the file it was.

When it is read, and what becomes of its lines, is in follower.py. What of it landed stands in the manifest: a tail
that is opened anew finds its place there by the bytes that the file begins with.
"""

import copy
import hashlib
import os
import stat
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from data.errors import BadInput
from data.logs.source import BLOCK_BYTES, CHUNK_BYTES, MAX_LINE_BYTES, Block, Content, Preamble, is_plain
from data.store.manifest import Batch

HEAD_BYTES: Final = 4096
"""So many first bytes tell a file from the one that took its place: they hold times."""


class ReadPosition:
    """A place between two bytes of a file, and all that must be known of the bytes before it."""

    def __init__(self) -> None:
        self.offset = 0
        self.lines = 0
        self.head = b""
        self._digest = hashlib.sha256()
        self._preamble = Preamble()

    @property
    def sha256(self) -> str:
        """Of all bytes before."""
        return self._digest.hexdigest()

    def copy(self) -> "ReadPosition":
        """The same place once more; the two go on by themselves."""
        other = copy.copy(self)
        other._digest, other._preamble = self._digest.copy(), copy.copy(self._preamble)  # noqa: SLF001  # its own class
        return other

    def add(self, text: bytes) -> None:
        """Go on behind the next bytes."""
        self.offset += len(text)
        self.lines += text.count(b"\n")
        self.head += text[: HEAD_BYTES - len(self.head)]
        self._digest.update(text)
        self._preamble.add(text)

    def block(self, text: bytes, end: int, finished: bool) -> Block:
        """The next bytes as a block to read."""
        return self._preamble.annotate(Block(self.lines + 1, text, end, finished))


class Tail:
    """An open log. It stays open when the log is renamed or deleted: whoever writes to it may not know yet."""

    def __init__(self, path: Path) -> None:
        """Open a log. Raises BadInput for what cannot grow, OSError for what cannot be opened now."""
        if not stat.S_ISREG(path.stat().st_mode):  # to open a pipe would wait for its writer
            raise BadInput(f"{path} is not a regular file; give the path of the log itself.")
        self.path = path
        self.position = ReadPosition()
        self.batch: Batch | None = None
        """The import of this log's beginning: how far it counts."""
        self.deadline: float | None = None
        """When a renamed log is given up."""
        self.checked_size = -1
        """How many bytes there were the last time all of them were looked at."""
        self.log_format = "auto"
        """As its last lines were read."""
        self.rejects_file: Path | None = None
        self._head = b""  # of what has landed
        self._handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        if not is_plain(os.pread(self._handle, 4, 0)):
            os.close(self._handle)
            raise BadInput(f"{path} is compressed, so it cannot be followed; import it with `traffic import`.")
        found = os.fstat(self._handle)
        self.file = found.st_dev, found.st_ino
        """Which file it is, whatever its name."""

    @property
    def size(self) -> int:
        """How many bytes there are by now."""
        return os.fstat(self._handle).st_size

    @property
    def landed_bytes(self) -> int:
        """How many of them have landed, the last line included where it had no newline."""
        return self.batch.size if self.batch else 0

    def was_truncated(self) -> bool:
        """Whether bytes that landed no longer stand where they stood."""
        return self.size < self.landed_bytes or os.pread(self._handle, len(self._head), 0) != self._head

    def reset(self) -> None:
        """Take it for a log of which nothing is known."""
        self.position, self.batch, self._head = ReadPosition(), None, b""
        self.checked_size, self.log_format, self.rejects_file = -1, "auto", None

    def resume(self, known: Sequence[Batch]) -> None:
        """Go on behind the longest content that has landed and that the file begins with."""
        is_known = self.batch is None or _identity(self.batch) in map(_identity, known)
        if not self._resume_at(known) and not is_known:  # somebody has put an older manifest back
            self.reset()
            self._resume_at(known)

    def read(self, end: int, is_over: bool) -> tuple[Block, ReadPosition] | None:
        """The next finished lines before byte `end`, a block of them at most, and the place behind them.

        Once the log is over, its last line comes too, newline or not.
        """
        position, is_over = self.position.copy(), is_over and end > self.landed_bytes
        text = os.pread(self._handle, max(0, min(BLOCK_BYTES, end - position.offset)), position.offset)
        cut = text.rfind(b"\n") + 1
        if len(text) == BLOCK_BYTES and not cut:
            return self._read_long_line(text, position, end, is_over)
        if not cut and not (is_over and text):
            return None
        position.add(text[:cut] if cut else text)
        return self.position.block(text[:cut] if cut else text, position.offset, cut > 0), position

    def accept(self, block: Block, position: ReadPosition, batch: Batch) -> None:
        """Go on behind a block that has landed; a line without its newline is to be read once more."""
        self.position = position if block.finished else self.position
        self.batch, self._head = batch, position.head

    def begins_with(self, content: Content) -> bool:
        """Whether all of another log's content stands at the beginning of this one."""
        position = ReadPosition()
        self._read_to(position, content.size)
        return position.offset == content.size and position.sha256 == content.sha256

    def sync(self) -> None:
        """Wait until the log is on the disk: of one that a loss of power cut, nothing would be known any more."""
        with suppress(OSError):  # some file systems cannot
            os.fsync(self._handle)

    def close(self) -> None:
        """Close the file."""
        os.close(self._handle)

    def _resume_at(self, known: Sequence[Batch]) -> bool:
        """Whether more of the file has landed than was known here; then go on from there."""
        size, position, positions = self.size, self.position.copy(), {}
        longer = [row for row in known if self.landed_bytes < row.size <= size and row.whole_size >= position.offset]
        for mark in sorted({mark for row in longer for mark in (row.whole_size, row.size)}):
            self._read_to(position, mark)
            positions[mark] = position.copy()
        same = [row for row in longer if positions[row.size].sha256 == row.sha256]
        if same:
            self.batch = max(same, key=lambda row: row.size)
            self.position, self._head = positions[self.batch.whole_size], positions[self.batch.size].head
        return bool(same)

    def _read_to(self, position: ReadPosition, mark: int) -> None:
        """Go on to a byte, or as far as the file reaches."""
        while text := os.pread(self._handle, min(CHUNK_BYTES, mark - position.offset), position.offset):
            position.add(text)

    def _read_long_line(
        self, text: bytes, position: ReadPosition, end: int, is_over: bool
    ) -> tuple[Block, ReadPosition] | None:
        """A line that no block can hold: of its text only as much is kept as shows that it is too long."""
        start = text[: MAX_LINE_BYTES + 1]
        while text:
            newline = text.find(b"\n") + 1
            position.add(text[:newline] if newline else text)
            if newline:
                return self.position.block(start + b"\n", position.offset, finished=True), position
            text = os.pread(self._handle, min(CHUNK_BYTES, end - position.offset), position.offset)
        return (self.position.block(start, position.offset, finished=False), position) if is_over else None


def _identity(batch: Batch) -> tuple[int | None, str, int]:
    return batch.id, batch.sha256, batch.size
