"""Sessions of signed-in browsers, started by one-time links, API keys or sign-ins at the identity provider.

They are stored in control.sqlite, with hashes in place of secrets.
"""

import secrets
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Final, NamedTuple

from cachetools import TTLCache

from data import BadInput, check_organization
from service.access.api_keys import Key
from service.core.clock import Clock, from_text, hour_text, to_text, utc_now
from service.core.control_database import ControlDatabase, sha256
from service.core.http.caller import Caller
from service.core.settings import Settings

ROLES: Final = ("editor", "viewer")
LINK_LIFETIME: Final = timedelta(minutes=10)
KEY_SESSION_DAYS: Final = 30
MAX_SESSIONS_OF_A_KEY: Final = 20
MAX_SESSION_DAYS: Final = 366
CACHE_SECONDS: Final = 2
"""How long a session is cached, and therefore how long a session that another process revoked may still be accepted."""
MAX_CACHED: Final = 4_096
MAX_KEPT: Final = 10_000
"""Number of most recent sessions that are kept even after they expire, in case the clock was temporarily wrong."""
SIGN_IN_LIFETIME: Final = timedelta(minutes=10)
_FIELDS: Final = "id, organization, role, kind, key_id, subject, created_at, last_seen_at, expires_at"
_SELECT_VALID: Final = (
    f"SELECT {_FIELDS} FROM sessions WHERE revoked_at IS NULL AND expires_at > ? "
    "AND (key_id IS NULL OR key_id IN (SELECT id FROM keys WHERE revoked_at IS NULL)) "
)
_ANY_ADDRESS: Final = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104  # they are replaced, not bound to


def enter_url(settings: Settings, code: str) -> str:
    """Return the sign-in link with a code, under the address at which browsers reach the server."""
    host = _ANY_ADDRESS.get(settings.host, settings.host)
    name = f"[{host}]" if ":" in host else host
    origin = settings.public_url or f"http://{name}:{settings.port}"
    return f"{origin}{settings.base_path}/app/enter?code={code}"


@dataclass(frozen=True)
class Session:
    """A signed-in browser."""

    id: str
    organization: str
    role: str
    kind: str  # link, key, or oidc
    key_id: str | None  # id of the key that started it
    subject: str | None  # `sub` of the identity provider's user
    created_at: str
    last_seen_at: str  # to the hour
    expires_at: str

    @property
    def caller(self) -> Caller:
        """The browser as a caller. A session started with a key may do what the key may."""
        name = self.key_id or self.subject or f"session {self.id}"
        return Caller(self.organization, self.role, name, self.key_id is not None)


class OpenedSession(NamedTuple):
    """A new session: the secret for the browser's cookie, and the lifetime of the cookie."""

    secret: str
    cookie_lifetime: timedelta


class SessionStore:
    """The sessions and sign-in links of one lake. Its methods block, and are safe to call from several threads."""

    def __init__(self, database: ControlDatabase, clock: Clock = utc_now) -> None:
        self.database = database
        self._clock = clock

    def create_link(self, organization: str, role: str = "editor", days: int = 30, is_reusable: bool = False) -> str:
        """Create a sign-in link; return its code. Raises BadInput for an invalid argument.

        The code works once, within LINK_LIFETIME, and starts a session that lasts `days` days. A reusable code, for the
        demo, works any number of times for a day.
        """
        check_organization(organization)
        if role not in ROLES:
            raise BadInput(f"{role!r} is not a role; use {' or '.join(ROLES)}.")
        if not 1 <= days <= MAX_SESSION_DAYS:
            raise BadInput(f"--days is {days}; it must be a number from 1 to {MAX_SESSION_DAYS}.")
        code, now = secrets.token_urlsafe(32), self._clock()
        lifetime = timedelta(days=1) if is_reusable else LINK_LIFETIME
        self.database.rows("DELETE FROM sign_in_links WHERE expires_at < ?", [to_text(now)])
        self.database.rows(
            "INSERT INTO sign_in_links (sha256, organization, role, days, is_reusable, created_at, expires_at) "
            "VALUES (?, ?, ?, ?, ?, ?, ?)",
            [sha256(code), organization, role, days, is_reusable, to_text(now), to_text(now + lifetime)],
        )
        return code

    def organization_of_link(self, code: str) -> str | None:
        """Return the organization that a link signs in to, or None if the link is unknown, used or expired."""
        rows = self.database.rows(
            "SELECT organization FROM sign_in_links WHERE sha256 = ? AND expires_at >= ? "
            "AND (used_at IS NULL OR is_reusable)",
            [sha256(code), to_text(self._clock())],
        )
        return rows[0][0] if rows else None

    def open_by_link(self, code: str) -> OpenedSession | None:
        """Use up a link and open a session. Returns None if the link is unknown, used or expired."""
        now = to_text(self._clock())
        rows = self.database.rows(
            "UPDATE sign_in_links SET used_at = ? WHERE sha256 = ? AND expires_at >= ? "
            "AND (used_at IS NULL OR is_reusable) RETURNING organization, role, days",
            [now, sha256(code), now],
        )
        if not rows:
            return None
        organization, role, days = rows[0]
        return self._open(organization, role, "link", timedelta(days=days))

    def open_by_key(self, key: Key) -> OpenedSession:
        """Open a session for an active API key. The session ends after KEY_SESSION_DAYS, or when the key expires or is
        revoked.

        If a key has more than MAX_SESSIONS_OF_A_KEY sessions, its oldest sessions end.
        """
        lifetime, expires_at, now = timedelta(days=KEY_SESSION_DAYS), from_text(key.expires_at), to_text(self._clock())
        lifetime = min(lifetime, expires_at - self._clock()) if expires_at else lifetime
        opened = self._open(key.organization, "editor", "key", lifetime, key_id=key.id)
        self.database.rows(
            "UPDATE sessions SET revoked_at = ? WHERE id IN (SELECT id FROM sessions WHERE key_id = ? AND revoked_at "
            "IS NULL AND expires_at > ? ORDER BY created_at DESC, rowid DESC LIMIT -1 OFFSET ?)",
            [now, key.id, now, MAX_SESSIONS_OF_A_KEY],
        )
        return opened

    def begin_sign_in(self, secret: str, target: str) -> None:
        """Record the start of a sign-in at the identity provider: its secret, and the page to open afterwards."""
        now = self._clock()
        self.database.rows("DELETE FROM sign_ins WHERE expires_at < ?", [to_text(now)])
        self.database.rows(
            "INSERT INTO sign_ins (sha256, target, expires_at) VALUES (?, ?, ?)",
            [sha256(secret), target, to_text(now + SIGN_IN_LIFETIME)],
        )

    def end_sign_in(self, secret: str) -> str | None:
        """Consume a returning browser's secret; return the page to open, or None if the secret is not valid."""
        now = to_text(self._clock())
        rows = self.database.rows(
            "DELETE FROM sign_ins WHERE sha256 = ? AND expires_at >= ? RETURNING target", [sha256(secret), now]
        )
        return rows[0][0] if rows else None

    def open_by_provider(self, user: Caller, hours: int) -> OpenedSession:
        """Open a session of this many hours for a user of the identity provider."""
        return self._open(user.organization, user.role, "oidc", timedelta(hours=hours), subject=user.name)

    def session(self, secret: str) -> Session | None:
        """Return the valid session with this secret, or None if there is none."""
        rows = self.database.rows(_SELECT_VALID + "AND sha256 = ?", [to_text(self._clock()), sha256(secret)])
        return Session(*rows[0]) if rows else None

    def record_use(self, session: Session) -> None:
        """Store when a session was last used, to the hour."""
        hour = hour_text(self._clock())
        if session.last_seen_at != hour:
            self.database.rows("UPDATE sessions SET last_seen_at = ? WHERE id = ?", [hour, session.id])

    def sessions_of(self, organization: str) -> list[Session]:
        """Return an organization's valid sessions, newest first."""
        parameters = [to_text(self._clock()), organization]
        rows = self.database.rows(_SELECT_VALID + "AND organization = ? ORDER BY created_at DESC, id", parameters)
        return [Session(*row) for row in rows]

    def revoke(self, session_id: str, organization: str) -> bool:
        """End a session of an organization. Returns False if no unrevoked session has this id."""
        rows = self.database.rows(
            "UPDATE sessions SET revoked_at = ? WHERE id = ? AND organization = ? AND revoked_at IS NULL RETURNING id",
            [to_text(self._clock()), session_id, organization],
        )
        return bool(rows)

    def revoke_others(self, own: Session) -> None:
        """End all sessions of the organization except `own`."""
        self.database.rows(
            "UPDATE sessions SET revoked_at = ? WHERE organization = ? AND id <> ? AND revoked_at IS NULL",
            [to_text(self._clock()), own.organization, own.id],
        )

    def _open(
        self,
        organization: str,
        role: str,
        kind: str,
        lifetime: timedelta,
        *,
        key_id: str | None = None,
        subject: str | None = None,
    ) -> OpenedSession:
        secret, now = secrets.token_urlsafe(32), self._clock()
        self.database.rows(
            "DELETE FROM sessions WHERE expires_at < ? AND rowid IN "
            "(SELECT rowid FROM sessions ORDER BY rowid DESC LIMIT -1 OFFSET ?)",
            [to_text(now), MAX_KEPT],
        )
        self.database.rows(
            f"INSERT INTO sessions (sha256, {_FIELDS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            [sha256(secret), secrets.token_hex(8), organization, role, kind, key_id, subject, to_text(now),
             hour_text(now), to_text(now + lifetime)],
        )  # fmt: skip
        return OpenedSession(secret, lifetime)


class Sessions:
    """The sessions of a running server: the store with a small cache. Belongs to one event loop."""

    def __init__(self, store: SessionStore) -> None:
        self.store = store
        self._cached: TTLCache[str, Session] = TTLCache(MAX_CACHED, CACHE_SECONDS)
        self._forgotten = 0
        """Number of cache invalidations; a session is not cached if this number changed while it was read."""

    async def session(self, secret: str) -> Session | None:
        """Return the valid session with this secret, cached for CACHE_SECONDS, or None if there is none."""
        digest = sha256(secret)
        session = self._cached.get(digest)
        if session is None:
            forgotten = self._forgotten
            session = await self.store.database.read(self.store.session, secret)
            if session:
                if forgotten == self._forgotten:
                    self._cached[digest] = session
                self.store.database.write_later(self.store.record_use, session)
        return session

    async def revoke(self, session_id: str, organization: str) -> bool:
        """End a session of an organization, immediately on this server. Returns False if no unrevoked session has
        this id.
        """
        is_revoked = await self.store.database.write(self.store.revoke, session_id, organization)
        self._forget(lambda session: session.id == session_id)  # after the write, or a request would cache it again
        return is_revoked

    async def revoke_others(self, own: Session) -> None:
        """End all sessions of the organization except `own`, immediately on this server."""
        await self.store.database.write(self.store.revoke_others, own)
        self._forget(lambda session: session.organization == own.organization and session.id != own.id)

    def forget_key(self, key_id: str) -> None:
        """Drop the sessions started with a revoked key from the cache."""
        self._forget(lambda session: session.key_id == key_id)

    def _forget(self, is_meant: Callable[[Session], bool]) -> None:
        self._forgotten += 1
        for digest in list(self._cached):
            session = self._cached.get(digest)  # None: just expired
            if session and is_meant(session):
                self._cached.pop(digest, None)
