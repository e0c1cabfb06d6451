"""Who is calling: one Authorization header, one token, one Caller or Unauthorized."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import jwt
from cachetools import TTLCache
from starlette.types import ASGIApp, Receive, Scope, Send

from data import is_organization
from service.control import KEY_PREFIX, Control
from service.errors import Unauthorized
from service.jwks import KeySet
from service.responses import render
from service.settings import Settings

ALGORITHMS: Final = ("RS256", "ES256")
LONGEST_TOKEN: Final = 8_192
LEEWAY_SECONDS: Final = 30
LONGEST_LIFE_SECONDS: Final = 86_400
REQUIRED_CLAIMS: Final = ("exp", "iat", "iss", "aud", "sub")
REMEMBERED_SECONDS: Final = 60
"""How long an identity token that was found good is not verified again: that costs more than a cached answer."""


@dataclass(frozen=True)
class Caller:
    """Whoever sent a valid token."""

    organization: str
    role: str

    @property
    def may_write(self) -> bool:
        """Whether write endpoints answer this caller."""
        return self.role != "viewer"


class Gate:
    """Turns Authorization headers into callers."""

    def __init__(self, settings: Settings, control: Control, keys: KeySet | None) -> None:
        self._settings = settings
        self._control = control
        self._keys = keys
        self._known: TTLCache[str, tuple[Caller, float, int]] = TTLCache(4_096, REMEMBERED_SECONDS)

    async def caller(self, headers: list[tuple[bytes, bytes]]) -> Caller:
        """The caller whose token the request carries. Raises Unauthorized for anything but one valid Bearer token."""
        token = _bearer_token(headers)
        if token.startswith(KEY_PREFIX):
            return self._key_holder(token)
        return await self._token_holder(token)

    def _key_holder(self, key: str) -> Caller:
        organization = self._control.organization_of(key)
        if organization is None:
            raise Unauthorized
        return Caller(organization, "editor")

    async def _token_holder(self, token: str) -> Caller:
        if self._keys is None:
            raise Unauthorized
        known = self._known.get(token)
        if known is not None and known[1] > time.time() and known[2] == self._keys.generation:
            return known[0]
        try:
            key = await self._keys.key(jwt.get_unverified_header(token).get("kid"))
            claims = self._claims(token, key)
        except (jwt.PyJWTError, ValueError, TypeError, OverflowError) as error:
            raise Unauthorized from error
        caller = self._caller_of(claims)
        self._known[token] = caller, float(claims["exp"]), self._keys.generation
        return caller

    def _claims(self, token: str, key: jwt.PyJWK) -> dict[str, Any]:
        """Verify a token by RFC 8725. Raises PyJWTError or ValueError."""
        verified = jwt.decode_complete(
            token,
            key.key,
            algorithms=[name for name in ALGORITHMS if name == key.algorithm_name],
            audience=self._settings.jwt_audience,
            issuer=self._settings.jwt_issuer,
            leeway=LEEWAY_SECONDS,
            options={"require": list(REQUIRED_CLAIMS)},
        )
        claims: dict[str, Any] = verified["payload"]
        if str(verified["header"].get("typ", "JWT")).lower() not in ("jwt", "at+jwt"):
            raise ValueError("a token of another type")
        if not all(type(claims[name]) in (int, float) for name in ("exp", "iat")):
            raise ValueError("a time that is no number")
        if not 0 < claims["exp"] - claims["iat"] <= LONGEST_LIFE_SECONDS:
            raise ValueError("a token that lives too long")
        return claims

    def _caller_of(self, claims: dict[str, Any]) -> Caller:
        organization = claims.get(self._settings.jwt_organization_claim, self._settings.jwt_organization)
        role = claims.get(self._settings.jwt_role_claim) or "viewer"
        if not isinstance(organization, str) or not is_organization(organization) or not isinstance(role, str):
            raise Unauthorized
        return Caller(organization, role.lower())


class RequireCaller:
    """Lets only callers pass, before any route is looked at; a few public paths excepted."""

    def __init__(
        self, app: ASGIApp, caller: Callable[[list[tuple[bytes, bytes]]], Any], public: frozenset[str]
    ) -> None:
        self._app = app
        self._caller = caller
        self._public = public

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer 401, or pass the request on with its caller in the scope."""
        if scope["type"] == "http" and scope["path"] not in self._public:
            try:
                scope["caller"] = await self._caller(scope["headers"])
            except Unauthorized as refusal:
                await render(refusal)(scope, receive, send)
                return
        await self._app(scope, receive, send)


def _bearer_token(headers: list[tuple[bytes, bytes]]) -> str:
    values = [value for name, value in headers if name == b"authorization"]
    words = values[0].split(b" ") if len(values) == 1 else []
    if (
        len(words) != 2
        or words[0].lower() != b"bearer"
        or not 0 < len(words[1]) <= LONGEST_TOKEN
        or not words[1].isascii()
    ):
        raise Unauthorized
    return words[1].decode("ascii")
