"""Recognizes browsers that send `Sec-Fetch-*` with page requests over TLS, and `Accept-Language` with page requests.

The facts are in engines.toml. On iPhones and iPads, they depend on the system, not on the app.
"""

import re2

from data.rules.patterns import pattern_set
from data.rules.tables import HeaderSupport, load


class BrowserEngines:
    """The rows of engines.toml, compiled once."""

    def __init__(self) -> None:
        self._engines = load(HeaderSupport, "engines")
        self._patterns = [re2.compile(row.pattern) for row in self._engines]
        self._any_engine = pattern_set(row.pattern for row in self._engines)

    def sends_headers(self, user_agent: str) -> bool:
        """Return whether a browser with this user agent sends both headers; False if unknown."""
        text = user_agent.lower()
        numbers: list[int] = self._any_engine.Match(text) or []
        if not numbers:
            return False
        row, match = self._engines[min(numbers)], self._patterns[min(numbers)].search(text)
        return bool(row.since) and tuple(map(int, match.groups())) >= row.since
