"""The classifier's answers to many requests, as tables that DuckDB joins to them: each distinct answer once."""

from collections.abc import Sequence
from typing import Any, Final

import pyarrow as pa

from data.rules.classifier import Origin
from data.visits import Classification, columns_filled_by

_KINDS: Final = {"day": pa.date32()} | dict.fromkeys(("request", "identity", "origin", "confirmed"), pa.int64())
_IDENTITIES: Final = ("identity", *Classification._fields, "user_agent")
_ORIGINS: Final = ("origin", *columns_filled_by("referrer", "campaign"))


class Answers:
    """Who each request is from, its identity, and where it came from, its origin."""

    def __init__(self) -> None:
        self._identities: dict[tuple[Classification, str], int] = {}
        self._origins: dict[Origin, int] = {}
        self._answers: list[tuple[int, int, int]] = []

    def add(self, request: int, says: Classification, user_agent: str, origin: Origin) -> None:
        """Note the answer to the request of a number."""
        self._answers.append((request, self.identity(says, user_agent), self.origin(origin)))

    def identity(self, says: Classification, user_agent: str) -> int:
        """The number of a classification of a user agent."""
        return self._identities.setdefault((says, user_agent), len(self._identities))

    def origin(self, origin: Origin) -> int:
        """The number of an origin."""
        return self._origins.setdefault(origin, len(self._origins))

    def identities(self) -> list[tuple[int, Classification, str]]:
        """Every identity with its number and user agent."""
        return [(number, says, user_agent) for (says, user_agent), number in self._identities.items()]

    def tables(self) -> dict[str, pa.Table]:
        """Answers (request, identity, origin), identities and origins."""
        identities = [(number, *says, user_agent or None) for number, says, user_agent in self.identities()]
        origins = [(number, host, kind, *utm) for (host, kind, utm), number in self._origins.items()]
        return {
            "answers": table_of(("request", "identity", "origin"), self._answers),
            "identities": table_of(_IDENTITIES, identities),
            "origins": table_of(_ORIGINS, origins),
        }


def table_of(names: Sequence[str], rows: Sequence[tuple[Any, ...]]) -> pa.Table:
    """Rows of days, numbers and texts as a table; what no answer says is null."""
    columns = list(zip(*rows, strict=True)) or [()] * len(names)
    kinds = [_KINDS.get(name, pa.string()) for name in names]
    return pa.table([pa.array(column, kind) for column, kind in zip(columns, kinds, strict=True)], list(names))
