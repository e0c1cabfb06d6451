"""Shares: secret addresses of pages that show numbers under fixed filters and need no sign-in. Only hashes of the
secrets are stored.

Shares are rows of control.sqlite. All functions block, so they run in threads, never on the event loop.
"""

import re
import secrets
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Final
from urllib.parse import parse_qsl, quote, urlencode

from data import BadInput
from queries import DEFAULT_RANGE, RANGES
from service.core.clock import Clock, hour_text, to_text, utc_now
from service.core.control_database import ControlDatabase, sha256
from service.core.setting_values import parse_origin
from service.reports.filters import in_words

FILTERS: Final = ("range", "start_date", "end_date", "domain", "short_code")
"""API parameters that a share can fix."""
MAX_SHARE_DAYS: Final = 3_660
MAX_EMBEDDERS: Final = 20
_SELECT: Final = (
    "SELECT id, organization, name, filters, embedders, created_at, created_by, last_used_at, expires_at, "
    "CASE WHEN revoked_at IS NOT NULL THEN 'revoked' WHEN expires_at <= ? THEN 'expired' ELSE 'active' END AS state "
    "FROM shares "
)


@dataclass(frozen=True)
class Share:
    """The stored record of a share, which does not contain its secret."""

    id: str
    organization: str
    name: str
    filters: str  # the fixed API parameters, as a query string
    embedders: str  # origins of pages that may embed it, separated by spaces
    created_at: str
    created_by: str
    last_used_at: str | None  # to the hour
    expires_at: str | None  # None: never
    state: str  # active, expired or revoked

    def described(self) -> Iterator[tuple[str, str]]:
        """Yield the label and the value of each fixed filter."""
        parameters = dict(parse_qsl(self.filters))
        if "range" in parameters:
            yield "Days", f"the last {RANGES[parameters['range']]}"
        else:
            yield "Days", f"{parameters['start_date']} to {parameters['end_date']}"
        yield from in_words(parameters)


class ShareStore:
    """The shares of one lake. Its methods block; safe to use from several threads."""

    def __init__(self, database: ControlDatabase, clock: Clock = utc_now) -> None:
        self.database = database
        self._clock = clock

    def create(self, organization: str, created_by: str, fields: Mapping[str, str]) -> str:
        """Create a share from the fields of a form and return its secret, which is not stored. Raises BadInput.

        In addition to the fields that `fixed_filters` reads, the form has `name`, `days` (number of days until it
        expires; empty: never) and `embedders` (origins, separated by spaces or commas).
        """
        name, filters, days = fields.get("name", "").strip(), fixed_filters(fields), fields.get("days", "").strip()
        if not 1 <= len(name) <= 100 or not name.isprintable():
            raise BadInput("a share's name must be 1 to 100 printable characters.")
        if days and (not re.fullmatch(r"[1-9]\d{0,3}", days, re.ASCII) or int(days) > MAX_SHARE_DAYS):
            raise BadInput(f"the number of days is {days!r}; it must be from 1 to {MAX_SHARE_DAYS}, or empty.")
        embedders = fields.get("embedders", "").lower().replace(",", " ").split()
        origins = list(dict.fromkeys(map(parse_origin, embedders)))
        if len(origins) > MAX_EMBEDDERS:
            raise BadInput(f"there are {len(origins)} origins; the maximum is {MAX_EMBEDDERS}.")
        now, secret = self._clock(), secrets.token_urlsafe(32)
        self.database.rows(
            "INSERT INTO shares (id, sha256, organization, name, filters, embedders, created_at, created_by, "
            "expires_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            [secrets.token_hex(8), sha256(secret), organization, name, filters, " ".join(origins), to_text(now),
             created_by, to_text(now + timedelta(days=int(days))) if days else None],
        )  # fmt: skip
        return secret

    def share(self, secret: str) -> Share | None:
        """Return the active share with this secret; None for any other text, or if the share is revoked or expired."""
        parameters = [to_text(self._clock()), sha256(secret)]
        rows = self.database.rows(_SELECT + "WHERE sha256 = ? AND state = 'active'", parameters)
        return Share(*rows[0]) if rows else None

    def shares_of(self, organization: str) -> list[Share]:
        """Return all shares of an organization, newest first."""
        parameters = [to_text(self._clock()), organization]
        rows = self.database.rows(_SELECT + "WHERE organization = ? ORDER BY created_at DESC, id", parameters)
        return [Share(*row) for row in rows]

    def record_use(self, share: Share) -> None:
        """Store when a share was last used, to the hour. For information only."""
        hour = hour_text(self._clock())
        if share.last_used_at != hour:
            self.database.rows("UPDATE shares SET last_used_at = ? WHERE id = ?", [hour, share.id])

    def revoke(self, share_id: str, organization: str) -> bool:
        """Revoke a share of an organization. Returns False if there is none with this id, or it was already revoked."""
        rows = self.database.rows(
            "UPDATE shares SET revoked_at = ? WHERE id = ? AND organization = ? AND revoked_at IS NULL RETURNING id",
            [to_text(self._clock()), share_id, organization],
        )
        return bool(rows)


def fixed_filters(fields: Mapping[str, str]) -> str:
    """Return the fixed filters in the fields of a form, as a query string. Raises BadInput if only one day is given.

    The values are not checked here; `Filters` checks them.
    """
    given = {name: fields.get(name, "").strip() for name in FILTERS}
    if bool(given["start_date"]) != bool(given["end_date"]):
        raise BadInput("give both the first and the last day, or neither.")
    given["range"] = "" if given["start_date"] else given["range"] or DEFAULT_RANGE
    return urlencode({name: value for name, value in given.items() if value}, quote_via=quote)
