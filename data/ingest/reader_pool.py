"""Keeps the open readers of blocks of an importer."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from queue import Empty, SimpleQueue

from data.ingest.block_reader import BlockReader


class ReaderPool:
    """Block readers, opened on demand: most logs have one block, and opening a reader takes as long as reading it."""

    def __init__(self, open_reader: Callable[[], BlockReader]) -> None:
        self._open_reader = open_reader
        self._free: SimpleQueue[BlockReader] = SimpleQueue()

    @contextmanager
    def borrow(self) -> Iterator[BlockReader]:
        """A reader for exclusive use inside the context. One that fails is closed, and not used again."""
        try:
            reader = self._free.get_nowait()
        except Empty:
            reader = self._open_reader()
        try:
            yield reader
        except BaseException:
            reader.close()
            raise
        self._free.put(reader)

    def close(self, keep: int = 0) -> None:
        """Close the idle readers, except `keep` of them."""
        while self._free.qsize() > keep:
            self._free.get_nowait().close()
