"""The short way of an answer that is held: known caller, known question, bytes. Whatever else goes the long way."""

from collections.abc import Callable, Mapping
from datetime import date
from typing import Final, NamedTuple

from data.store.links import Targets
from queries import Entry
from service.http.answers import Answers
from service.http.authentication import Gate
from service.http.cache import TTL_SECONDS
from service.http.epochs import Epochs
from service.http.errors import BadParameter
from service.http.parameters import read_query, scope_of

MOST_QUESTIONS: Final = 4_096
LONGEST_QUESTION: Final = 512
MOST_JOINED_BYTES: Final = 16 << 20
"""Of remembered answers that are put together of several; what the others hold, the cache holds anyway."""
_LONG_WAY: Final = frozenset({b"content-length", b"transfer-encoding", b"origin"})
"""Headers of requests that the application has more to do with: bodies, and pages of other sites."""

Headers = list[tuple[bytes, bytes]]


class Found(NamedTuple):
    """An answer that is held, to a question that was understood."""

    body: bytes
    entry: Entry
    path: str
    organization: str
    epoch: int
    until: float


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
        self._cache = answers.cache
        self._epochs = Epochs(answers.epoch)
        self._targets = targets
        self._today = today
        self._found: dict[tuple[bytes, str], Found] = {}
        """What was found since an answer was stored, by address and organization: until then it stays where it is."""
        self._joined_bytes = 0
        self._stored = 0
        self._day = today()

    def find(self, address: bytes, headers: Headers, is_prompt: bool) -> Found | None:
        """The answer to a GET, or None when it has to be computed or refused.

        `is_prompt` says that the request was there when the event loop last looked for what came.
        """
        caller = self._gate.known(headers)
        if caller is None or not _LONG_WAY.isdisjoint([name for name, _ in headers]):
            return None
        self._forget_what_may_have_changed()
        found = self._found.get((address, caller.organization))
        epoch = (self._epochs.of_turn if is_prompt else self._epochs.now)(caller.organization)
        if found is not None and found.epoch == epoch and self._cache.clock() < found.until:
            return found
        return self._searched(address, caller.organization, epoch)

    def count(self, found: Found) -> None:
        """Count that what was found is given to who asked."""
        self._answers.count_hit(found.entry, found.organization)

    def _forget_what_may_have_changed(self) -> None:
        today = self._today()
        if today != self._day or self._stored != self._cache.stored:
            self._day, self._stored = today, self._cache.stored
            self._forget()

    def _forget(self) -> None:
        self._found.clear()
        self._joined_bytes = 0

    def _searched(self, address: bytes, organization: str, epoch: int) -> Found | None:
        path, _, query = address.partition(b"?")
        entry = self._entries.get(path.decode("latin-1"))
        if entry is None or b"#" in query:
            return None
        try:
            asked = read_query(query, entry)
            scope = scope_of(asked, organization, self._day, self._targets)
        except BadParameter:
            return None
        held = self._answers.held(entry, scope, epoch)
        if held is None:
            return None
        found = Found(held.body, entry, path.decode(), organization, epoch, held.stored_at + TTL_SECONDS)
        if len(address) <= LONGEST_QUESTION and "target_url" not in asked:  # links may change
            self._remember(address, found)
        return found

    def _remember(self, address: bytes, found: Found) -> None:
        joined_bytes = len(found.body) if found.entry.shape == "parts" else 0
        if len(self._found) >= MOST_QUESTIONS or self._joined_bytes + joined_bytes > MOST_JOINED_BYTES:
            self._forget()
        self._joined_bytes += joined_bytes
        self._found[address, found.organization] = found
