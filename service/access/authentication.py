"""Authentication: turns a request's Authorization header into its Caller, or raises Unauthorized."""

import time
from collections import OrderedDict
from collections.abc import Callable
from datetime import datetime
from math import inf
from typing import Any, Final

import jwt
from starlette.types import ASGIApp, Receive, Scope, Send

from data import is_organization
from service.access.api_keys import KEY_PREFIX, ApiKeys
from service.access.jwks import JwksClient
from service.core.http.caller import Caller
from service.core.http.errors import ProviderUnavailable, Unauthorized
from service.core.http.responses import render
from service.core.settings import Settings

MAX_TOKEN_LENGTH: Final = 8_192
LEEWAY_SECONDS: Final = 30
REQUIRED_CLAIMS: Final = ("exp", "iat", "iss", "aud", "sub")
TOKEN_TYPES: Final = ("jwt", "at+jwt", "application/at+jwt")
MAX_CLAIM_LENGTH: Final = 255
"""Maximum number of characters in the claims that are stored: subject and role."""
MAX_TIMESTAMP: Final = 253_402_300_799
"""The last second of the year 9999."""
TOKEN_CACHE_SECONDS: Final = 60
"""How long a verified identity token is cached, since verifying it takes longer than sending a cached answer."""
API_KEY_CACHE_SECONDS: Final = 2
"""How long a verified API key is cached, and therefore how long a revoked key may still be accepted."""
MAX_REMEMBERED: Final = 4_096
"""Maximum number of Authorization headers in the cache."""


class Authenticator:
    """An authenticator that returns the caller for an Authorization header. Belongs to one event loop."""

    def __init__(
        self,
        settings: Settings,
        api_keys: ApiKeys,
        jwks: JwksClient | None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._settings = settings
        self._api_keys = api_keys
        self._jwks = jwks
        self._clock = clock
        self._callers: OrderedDict[bytes, tuple[Caller, float, float, int]] = OrderedDict()
        """For each header: the caller, the expiry of the entry (self._clock), the expiry of the token (time.time()),
        and the key set's generation."""

    def cached(self, headers: list[tuple[bytes, bytes]]) -> Caller | None:
        """Return the caller of a recently verified Authorization header; None if `authenticate` must verify it."""
        header = _authorization_header(headers)
        entry = self._callers.get(header) if header else None
        if entry is None:
            return None
        caller, until, expires_at, generation = entry
        if self._clock() >= until or time.time() >= expires_at or generation != self._jwks_generation():
            return None
        return caller

    async def authenticate(self, headers: list[tuple[bytes, bytes]]) -> Caller:
        """Return the caller of a request. Raises Unauthorized unless it has exactly one Authorization header, with a
        valid Bearer token.
        """
        cached = self.cached(headers)
        if cached is not None:
            return cached
        header = _authorization_header(headers)
        if header is None:
            raise Unauthorized
        scheme, _, rest = header.partition(b" ")
        bearer = rest.lstrip(b" ")  # after one or more spaces (RFC 9110, 11.4)
        is_token = 0 < len(bearer) <= MAX_TOKEN_LENGTH and b" " not in bearer and bearer.isascii()
        if scheme.lower() != b"bearer" or not is_token:
            raise Unauthorized
        token = bearer.decode("ascii")
        if token.startswith(KEY_PREFIX):
            key = await self._api_keys.database.read(self._api_keys.find, token)
            if key is None or key.state == "revoked":
                raise Unauthorized
            if key.state == "expired":
                command = f"`traffic keys create --org {key.organization} --name NAME`"
                fix = f"Create another one under Settings > API keys, or with {command} on the server."
                raise Unauthorized(f"The API key {key.id} expired at {key.expires_at}.", fix)
            self._api_keys.record_use(token)
            caller = Caller(key.organization, "editor", key.id, is_key=True)
            expires_at = datetime.fromisoformat(key.expires_at).timestamp() if key.expires_at else inf
            seconds, generation = API_KEY_CACHE_SECONDS, self._jwks_generation()
        else:
            claims, generation = await self._verify(token, self._settings.jwt_audience)
            caller = self._caller_from(claims)
            expires_at, seconds = float(claims["exp"]), TOKEN_CACHE_SECONDS
        self._add_to_cache(header, caller, seconds, expires_at, generation)
        return caller

    def _add_to_cache(self, header: bytes, caller: Caller, seconds: float, expires_at: float, generation: int) -> None:
        now = self._clock()
        self._callers.pop(header, None)
        while self._callers and (len(self._callers) >= MAX_REMEMBERED or next(iter(self._callers.values()))[1] <= now):
            self._callers.popitem(last=False)
        self._callers[header] = caller, now + seconds, expires_at, generation

    def _jwks_generation(self) -> int:
        return self._jwks.generation if self._jwks else 0

    async def authenticate_id_token(self, token: str, client_id: str, nonce: str) -> Caller:
        """Return the user of an ID token issued to this client and for this nonce.

        Raises Unauthorized if the token is invalid, or ProviderUnavailable if there are no usable keys to verify it.
        """
        try:
            claims, _ = await self._verify(token, client_id)
        except Unauthorized:
            if self._jwks and not self._jwks.is_usable():
                raise ProviderUnavailable from None
            raise
        audience = claims["aud"]
        authorized = claims.get("azp", audience[0] if isinstance(audience, list) and len(audience) == 1 else audience)
        if authorized != client_id or claims.get("nonce") != nonce:
            raise Unauthorized
        return self._caller_from(claims)

    async def _verify(self, token: str, audience: str) -> tuple[dict[str, Any], int]:
        """Return a token's claims, verified as in RFC 8725, and the key set's generation. Raises Unauthorized."""
        if self._jwks is None:
            raise Unauthorized
        try:
            key, generation = await self._jwks.key(jwt.get_unverified_header(token).get("kid"))
            allowed = [name for name in self._settings.jwt_algorithms if name == key.algorithm_name]
            verified = jwt.decode_complete(
                token, key.key, algorithms=allowed, audience=audience, issuer=self._settings.jwt_issuer,
                leeway=LEEWAY_SECONDS, options={"require": list(REQUIRED_CLAIMS)},
            )  # fmt: skip
            claims: dict[str, Any] = verified["payload"]
            if str(verified["header"].get("typ", "JWT")).lower() not in TOKEN_TYPES:
                raise ValueError("the token's typ is not allowed")
            if not all(_is_valid_time(claims[name]) for name in ("exp", "iat", "nbf") if name in claims):
                raise ValueError("a time claim is not a valid time")
            if not 0 < claims["exp"] - claims["iat"] <= self._settings.jwt_lifetime * 3_600:
                raise ValueError("the token's lifetime is too long")
        except (jwt.PyJWTError, ValueError, TypeError, OverflowError) as error:
            raise Unauthorized from error
        return claims, generation

    def _caller_from(self, claims: dict[str, Any]) -> Caller:
        organization = claims.get(self._settings.jwt_organization_claim, self._settings.jwt_organization)
        role = claims.get(self._settings.jwt_role_claim)
        role = role if isinstance(role, str) and role else "viewer"
        if not isinstance(organization, str) or not is_organization(organization):
            raise Unauthorized
        if not _is_valid_claim(role) or not _is_valid_claim(claims["sub"]):
            raise Unauthorized
        role, writers = role.strip().lower(), self._settings.jwt_writers
        may_write = role in writers if writers else role
        return Caller(organization, role if may_write else "viewer", claims["sub"], is_key=False)


class AuthenticationMiddleware:
    """Middleware that authenticates every request before routing, except requests for `public` paths."""

    def __init__(
        self, app: ASGIApp, caller: Callable[[list[tuple[bytes, bytes]]], Any], public: frozenset[str]
    ) -> None:
        self._app = app
        self._caller = caller
        self._public = public

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer with scope["refusal"] or 401, or pass the request on, with scope["caller"] for non-public paths."""
        if "refusal" in scope:
            await render(scope["refusal"])(scope, receive, send)
            return
        if scope["type"] == "http" and scope["path"] not in self._public:
            try:
                scope["caller"] = await self._caller(scope["headers"])
            except Unauthorized as refusal:
                await render(refusal)(scope, receive, send)
                return
        await self._app(scope, receive, send)


def _is_valid_time(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= MAX_TIMESTAMP


def _is_valid_claim(value: object) -> bool:
    return isinstance(value, str) and 0 < len(value) <= MAX_CLAIM_LENGTH and value.isprintable()


def _authorization_header(headers: list[tuple[bytes, bytes]]) -> bytes | None:
    """Return the Authorization header, or None unless there is exactly one."""
    values = [value for name, value in headers if name == b"authorization"]
    return values[0] if len(values) == 1 else None
