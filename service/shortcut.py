"""The short way of an answer that is held: known caller, known question, bytes. Whatever else goes the long way."""

from collections.abc import Callable, Mapping
from datetime import date
from typing import Final

from starlette.types import Scope as Connection

from data.links import Targets
from queries import Entry, Scope
from service.access import Gate
from service.answers import Answers
from service.errors import BadParameter
from service.parameters import read_query, scope_of

MOST_QUESTIONS: Final = 4_096
LONGEST_QUESTION: Final = 512
_LONG_WAY: Final = frozenset({b"content-length", b"transfer-encoding", b"origin"})
"""Headers of requests that the application has more to do with: bodies, and pages of other sites."""


class Shortcut:
    """Finds answers that are held. Belongs to one event loop."""

    def __init__(
        self,
        entries: Mapping[str, Entry],
        gate: Gate,
        answers: Answers,
        targets: Targets,
        today: Callable[[], date],
    ) -> None:
        """`entries` are the answers by their paths."""
        self._entries = entries
        self._gate = gate
        self._answers = answers
        self._targets = targets
        self._today = today
        self._questions: dict[tuple[str, str, bytes], Scope] = {}
        self._day = today()

    def __call__(self, connection: Connection) -> bytes | None:
        """The answer, or None when it has to be computed or refused."""
        entry = self._entries.get(connection["path"])
        if entry is None or connection["method"] != "GET":
            return None
        headers = connection["headers"]
        caller = self._gate.known(headers)
        if caller is None or not _LONG_WAY.isdisjoint([name for name, _ in headers]):
            return None
        connection["caller"] = caller
        scope = self._scope(entry, caller.organization, connection["query_string"])
        return self._answers.held(entry, scope) if scope else None

    def _scope(self, entry: Entry, organization: str, query: bytes) -> Scope | None:
        """What is asked for, remembered for this day; None when it cannot be understood."""
        today = self._today()
        if today != self._day or len(self._questions) >= MOST_QUESTIONS:
            self._questions.clear()
            self._day = today
        question = entry.name, organization, query
        scope = self._questions.get(question)
        if scope is None:
            try:
                scope = scope_of(read_query(query, entry), organization, today, self._targets)
            except BadParameter:
                return None
            if len(query) <= LONGEST_QUESTION and b"target" not in query:  # links may change
                self._questions[question] = scope
        return scope
