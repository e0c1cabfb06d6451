"""Keys and jobs: the small SQLite database of who may ask and what is to be done."""

import hashlib
import secrets
import string
import threading
import zlib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from data import BadInput, Lake, check_organization
from data.store.schema import open_database

MIGRATIONS: Final = (
    """
    CREATE TABLE keys (
        id TEXT PRIMARY KEY,           -- the first characters of the key, to tell keys apart
        sha256 TEXT NOT NULL UNIQUE,   -- of the whole key, which is nowhere kept
        organization TEXT NOT NULL,
        name TEXT NOT NULL,
        created_at TEXT NOT NULL,
        revoked_at TEXT
    );
    CREATE TABLE jobs (
        id TEXT PRIMARY KEY,
        organization TEXT NOT NULL,
        type TEXT NOT NULL,
        status TEXT NOT NULL,
        title TEXT NOT NULL,
        created_at TEXT NOT NULL,      -- UTC, YYYY-MM-DDTHH:MM:SS, as is updated_at
        updated_at TEXT NOT NULL
    );
    CREATE INDEX jobs_newest_first ON jobs (organization, created_at DESC, id DESC);
    """,
    """
    -- the identity provider's name of who made it by HTTP, null for the command line
    ALTER TABLE keys ADD COLUMN created_by TEXT;
    -- to the hour
    ALTER TABLE keys ADD COLUMN last_used_at TEXT;
    """,
)
"""Entry n takes the database from version n to n + 1. Entries are only ever added."""

KEY_PREFIX: Final = "tak_"
_ALPHABET: Final = string.digits + string.ascii_uppercase + string.ascii_lowercase
_SECRET_LENGTH: Final = 30  # of 62 characters each: 178 bits
_CHECK_LENGTH: Final = 6
_KEY_LENGTH: Final = len(KEY_PREFIX) + _SECRET_LENGTH + _CHECK_LENGTH
_ID_LENGTH: Final = 12


@dataclass(frozen=True)
class Key:
    """An API key as it is remembered: all but the key."""

    id: str
    organization: str
    name: str
    created_at: str
    revoked_at: str | None
    created_by: str | None  # the `sub` of who made it by HTTP
    last_used_at: str | None  # to the hour


class ApiKeys:
    """The open database. Safe to use from several threads and processes."""

    def __init__(self, lake: Lake) -> None:
        path: Path = lake.root / "control.sqlite"
        self._lock = threading.Lock()
        self._db = open_database(path, MIGRATIONS)
        self._last_use_hours: dict[str, str] = {}
        self._use_writer = ThreadPoolExecutor(1, thread_name_prefix="keys")
        path.chmod(0o600)

    def create_key(self, organization: str, name: str, created_by: str | None = None) -> str:
        """Make a key of an organization and return it: it cannot be shown again. Raises BadInput for a bad name."""
        check_organization(organization)
        if not 1 <= len(name) <= 100 or not name.isprintable():
            raise BadInput("a key's name has 1 to 100 printable characters.")
        secret = "".join(secrets.choice(_ALPHABET) for _ in range(_SECRET_LENGTH))
        key = f"{KEY_PREFIX}{secret}{_checksum(secret)}"
        now = datetime.now(UTC).isoformat(timespec="seconds")
        self._rows(
            "INSERT INTO keys (id, sha256, organization, name, created_at, created_by) VALUES (?, ?, ?, ?, ?, ?)",
            [key_id_of(key), _sha256(key), organization, name, now, created_by],
        )
        return key

    def all_keys(self) -> list[Key]:
        """Every key, oldest first."""
        return self._keys()

    def keys_of(self, organization: str) -> list[Key]:
        """Every key of an organization, oldest first."""
        return self._keys(organization=organization)

    def key(self, key_id: str) -> Key:
        """The key of an id."""
        (key,) = self._keys(key_id=key_id)
        return key

    def revoke_key(self, key_id: str, organization: str = "") -> None:
        """Stop a key from opening anything. Raises BadInput when there is no active key of that id.

        With an organization only a key of that one is found.
        """
        now = datetime.now(UTC).isoformat(timespec="seconds")
        revoked = self._rows(
            "UPDATE keys SET revoked_at = ? WHERE id = ? AND revoked_at IS NULL AND ? IN ('', organization) "
            "RETURNING id",
            [now, key_id, organization],
        )
        if not revoked:
            raise BadInput(f"there is no active key {key_id!r}; `traffic keys list` shows them.")

    def organization_of(self, key: str) -> str | None:
        """The organization that an active key opens; None for any other text. A mistyped key costs no database read."""
        if not is_well_formed_key(key):
            return None
        rows = self._rows("SELECT organization FROM keys WHERE sha256 = ? AND revoked_at IS NULL", [_sha256(key)])
        return rows[0][0] if rows else None

    def record_use(self, key: str) -> None:
        """Have it written down, meanwhile, that a key was used this hour. Nobody waits for it, nothing rests on it."""
        key_id, hour = key_id_of(key), datetime.now(UTC).replace(minute=0).isoformat(timespec="minutes")
        if self._last_use_hours.get(key_id) != hour:
            self._last_use_hours[key_id] = hour
            self._use_writer.submit(self._rows, "UPDATE keys SET last_used_at = ? WHERE id = ?", [hour, key_id])

    def organizations(self) -> set[str]:
        """Every organization that has ever had a key."""
        return {name for (name,) in self._rows("SELECT DISTINCT organization FROM keys")}

    def jobs(self, organization: str) -> list[dict[str, Any]]:
        """Every job of an organization, newest first."""
        names = ("id", "organization", "type", "status", "title", "created_at", "updated_at")
        rows = self._rows(
            f"SELECT {', '.join(names)} FROM jobs WHERE organization = ? ORDER BY created_at DESC, id DESC",
            [organization],
        )
        return [dict(zip(names, (*row[:5], *map(datetime.fromisoformat, row[5:])), strict=True)) for row in rows]

    def close(self) -> None:
        """Close the database."""
        self._use_writer.shutdown()
        self._db.close()

    def _keys(self, organization: str = "", key_id: str = "") -> list[Key]:
        rows = self._rows(
            "SELECT id, organization, name, created_at, revoked_at, created_by, last_used_at FROM keys "
            "WHERE ? IN ('', organization) AND ? IN ('', id) ORDER BY created_at, id",
            [organization, key_id],
        )
        return [Key(*row) for row in rows]

    def _rows(self, sql: str, parameters: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        with self._lock:
            return self._db.execute(sql, parameters).fetchall()


def key_id_of(key: str) -> str:
    """The first characters of a key, by which it is called once it cannot be shown any more."""
    return key[:_ID_LENGTH]


def is_well_formed_key(text: str) -> bool:
    """Whether text has the form and the checksum of a key."""
    if not text.startswith(KEY_PREFIX) or len(text) != _KEY_LENGTH or not text.isascii():
        return False
    secret = text[len(KEY_PREFIX) : -_CHECK_LENGTH]
    return _checksum(secret) == text[-_CHECK_LENGTH:]


def _checksum(secret: str) -> str:
    """CRC-32 of the secret as six base-62 digits, as GitHub's tokens end: scanners and typos are told at sight."""
    number, digits = zlib.crc32(secret.encode()), ""
    for _ in range(_CHECK_LENGTH):
        number, digit = divmod(number, len(_ALPHABET))
        digits = _ALPHABET[digit] + digits
    return digits


def _sha256(key: str) -> str:
    return hashlib.sha256(key.encode()).hexdigest()
