"""API keys: creation, listing, revocation and lookup. Only hashes of keys are stored."""

import re
import secrets
import string
import zlib
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from data import BadInput, check_organization
from service.core.clock import Clock, hour_text, to_text, utc_now
from service.core.control_database import ControlDatabase, sha256

KEY_PREFIX: Final = "tak_"
MAX_NAME_LENGTH: Final = 100
_ALPHABET: Final = string.digits + string.ascii_uppercase + string.ascii_lowercase
_SECRET_LENGTH: Final = 30  # base-62 characters: 178 bits
_CHECK_LENGTH: Final = 6
_KEY_LENGTH: Final = len(KEY_PREFIX) + _SECRET_LENGTH + _CHECK_LENGTH
_ID_LENGTH: Final = 12
_DAY: Final = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_SELECT: Final = (
    "SELECT id, organization, name, created_at, revoked_at, created_by, max(created_at, last_used_at), expires_at, "
    "CASE WHEN revoked_at IS NOT NULL THEN 'revoked' WHEN expires_at <= ? THEN 'expired' ELSE 'active' END FROM keys "
)


@dataclass(frozen=True)
class Key:
    """The stored record of an API key, which does not contain the key itself."""

    id: str
    organization: str
    name: str
    created_at: str
    revoked_at: str | None
    created_by: str | None  # user (`sub`) or browser session that created it over HTTP; None: the command line
    last_used_at: str | None  # to the hour, but not before created_at
    expires_at: str | None  # None: never
    state: str  # active, expired or revoked


class ApiKeys:
    """The API keys of one lake, safe to use from several threads and processes.

    All methods except record_use block, so an event loop calls them through the database's `read` and `write`.
    """

    def __init__(self, database: ControlDatabase, clock: Clock = utc_now) -> None:
        self.database = database
        self._clock = clock
        self._last_use_hours: dict[str, str] = {}

    def create_key(
        self, organization: str, name: str, created_by: str | None = None, expires_at: str | None = None
    ) -> str:
        """Create a key for an organization and return it. Only its hash is stored. Raises BadInput for an invalid
        argument.

        `expires_at` is a time with an offset, or the last day (in UTC) on which the key is valid. Without `expires_at`,
        the key never expires.
        """
        check_organization(organization)
        if not 1 <= len(name) <= MAX_NAME_LENGTH or not name.isprintable():
            raise BadInput(f"a key's name must be 1 to {MAX_NAME_LENGTH} printable characters.")
        secret = "".join(secrets.choice(_ALPHABET) for _ in range(_SECRET_LENGTH))
        key = f"{KEY_PREFIX}{secret}{_checksum(secret)}"
        now = to_text(self._clock())
        expiry = _expiry(expires_at, now) if expires_at else None
        self.database.rows(
            "INSERT INTO keys (id, sha256, organization, name, created_at, created_by, expires_at) "
            "VALUES (?, ?, ?, ?, ?, ?, ?)",
            [key_id_of(key), sha256(key), organization, name, now, created_by, expiry],
        )
        return key

    def all_keys(self, organization: str = "", key_id: str = "") -> list[Key]:
        """Return all keys, oldest first, or only an organization's keys, or only the key with this id."""
        rows = self.database.rows(
            _SELECT + "WHERE ? IN ('', organization) AND ? IN ('', id) ORDER BY created_at, id",
            [to_text(self._clock()), organization, key_id],
        )
        return [Key(*row) for row in rows]

    def key(self, key_id: str) -> Key:
        """Return the record of the key with this id, which must exist."""
        (key,) = self.all_keys(key_id=key_id)
        return key

    def revoke_key(self, key_id: str, organization: str = "") -> None:
        """Revoke a key. Raises BadInput unless an unrevoked key has this id.

        If `organization` is given, only a key of that organization is revoked.
        """
        if not self.database.rows(
            "UPDATE keys SET revoked_at = ? WHERE id = ? AND revoked_at IS NULL AND ? IN ('', organization) "
            "RETURNING id",
            [to_text(self._clock()), key_id, organization],
        ):
            raise BadInput(f"no active key has the id {key_id!r}; `traffic keys list` shows all keys.")

    def find(self, key: str) -> Key | None:
        """Return the record of a key, even if it is revoked or expired; None if the key is unknown or mistyped."""
        if not is_well_formed_key(key):
            return None
        rows = self.database.rows(_SELECT + "WHERE sha256 = ?", [to_text(self._clock()), sha256(key)])
        return Key(*rows[0]) if rows else None

    def record_use(self, key: str) -> None:
        """Store, in a background thread, that a key was used in this hour. For information only."""
        key_id, hour = key_id_of(key), hour_text(self._clock())
        if self._last_use_hours.get(key_id) != hour:
            self._last_use_hours[key_id] = hour
            self.database.write_later(
                self.database.rows, "UPDATE keys SET last_used_at = ? WHERE id = ?", [hour, key_id]
            )


def key_id_of(key: str) -> str:
    """Return a key's id: its first characters."""
    return key[:_ID_LENGTH]


def is_well_formed_key(text: str) -> bool:
    """Return whether a string has the form and the checksum of a key."""
    if not text.startswith(KEY_PREFIX) or len(text) != _KEY_LENGTH or not text.isascii():
        return False
    secret = text[len(KEY_PREFIX) : -_CHECK_LENGTH]
    return _checksum(secret) == text[-_CHECK_LENGTH:]


def _expiry(text: str, now: str) -> str:
    """Convert a user's expiry to the stored format. Raises BadInput unless it is a future day or time (with offset)."""
    try:
        at = datetime.fromisoformat(text)
        if _DAY.fullmatch(text):
            at = at.replace(hour=23, minute=59, second=59, tzinfo=UTC)
        if at.tzinfo and (expiry := to_text(at)) > now:
            return expiry
    except (ValueError, OverflowError):
        pass
    examples = "2027-01-31 or, with an offset, 2027-01-31T09:00:00Z"
    raise BadInput(f"a key's expires_at is {text!r}; it must be a day or time in the future, like {examples}.")


def _checksum(secret: str) -> str:
    """Return the secret's CRC-32 in base 62, as in GitHub's tokens: it reveals typos, and helps secret scanners."""
    number, digits = zlib.crc32(secret.encode()), ""
    for _ in range(_CHECK_LENGTH):
        number, digit = divmod(number, len(_ALPHABET))
        digits = _ALPHABET[digit] + digits
    return digits
