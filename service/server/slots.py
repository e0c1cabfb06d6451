"""Who holds how many of the connections that a server has room for."""

from collections import Counter
from typing import Final

from service.http.rate_limit import Sources

MOST_PER_SOURCE: Final = 64
MOST_OPEN: Final = 2_048
FEW: Final = 4
"""The last eighth of all places is for sources with fewer connections: a few sources cannot take them all."""


class Places:
    """The places for connections. A trusted proxy, which brings many clients, takes as many as there are."""

    def __init__(self, sources: Sources, most_open: int = MOST_OPEN) -> None:
        self._sources = sources
        self._most_open = most_open
        self._open = 0
        self._held: Counter[str] = Counter()

    def __len__(self) -> int:
        """How many are taken."""
        return self._open

    def take(self, client: tuple[str, int] | None) -> str | None:
        """Take a place: the name under which to leave it. None when there is none."""
        is_proxy = client is not None and self._sources.is_trusted(client[0])
        source = "" if is_proxy else self._sources.of({"client": client, "headers": []}) or "unknown"
        held = self._held[source] if source else 0
        room = self._most_open - (self._most_open // 8 if held >= FEW else 0)
        if held >= MOST_PER_SOURCE or self._open >= room:
            return None
        self._open += 1
        self._held[source] += 1
        return source

    def leave(self, source: str) -> None:
        """Leave a place."""
        self._open -= 1
        self._held[source] -= 1
        if not self._held[source]:
            del self._held[source]
