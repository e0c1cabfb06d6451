"""Block readers whose engines are used again in a process: to open one takes as long as to read a small log."""

from typing import ClassVar

import pytest

import data.ingest.importer
from data.ingest.block_reader import BlockReader
from data.ingest.pipeline import VisitBuilder
from data.logs.formats import LineReader


class Reused(BlockReader):
    """Leaves its engine to the next reader when it is closed, or when nothing refers to it any more."""

    free: ClassVar[list[LineReader]] = []

    def __init__(self, rules, now):
        try:
            self._line_reader = self.free.pop()
        except IndexError:
            super().__init__(rules, now)
            return
        self._now, self._clients, self._engine = now, rules.clients, self._line_reader._engine
        self._visit_builder = VisitBuilder(self._engine, rules)

    def close(self):
        if line_reader := self.__dict__.pop("_line_reader", None):
            self.free.append(line_reader)

    __del__ = close


def reuse_engines(patch: pytest.MonkeyPatch) -> None:
    """Let all importers of this process share the engines of their readers, one importer after the other."""
    patch.setattr(data.ingest.importer, "BlockReader", Reused)
