"""The OpenID Connect client: signs users in at the identity provider that issues the API's tokens.

Authorization code flow with PKCE (RFC 7636, S256). The provider's endpoints come from its discovery document; its ID
tokens are verified in authentication.py, as the API's tokens are.
"""

import asyncio
import hashlib
import json
import logging
import secrets
import time
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple, Self
from urllib.parse import quote, urlencode, urlsplit

from data import BadInput
from service.access.authentication import Authenticator
from service.core.http.caller import Caller
from service.core.http.errors import Forbidden, ProviderUnavailable
from service.core.setting_values import is_allowed_url
from service.core.settings import Settings
from service.outgoing.connection import OutgoingError
from service.outgoing.http import BadStatus, fetch

FETCH_TIMEOUT_SECONDS: Final = 3
METADATA_SECONDS: Final = 3_600
FAILURE_SECONDS: Final = 5
"""Delay before fetching the discovery document again after a failure."""
MAX_BYTES: Final = 64 << 10
MAX_UNDER_WAY: Final = 16
"""Maximum number of concurrent requests to the provider."""
_LOG: Final = logging.getLogger(__name__)


class PendingSignIn(NamedTuple):
    """A pending sign-in: the state in the URLs, and the secret in the browser's cookie."""

    state: str
    browser: str

    @classmethod
    def begin(cls) -> Self:
        """Return a new sign-in with random secrets."""
        return cls(secrets.token_urlsafe(32), secrets.token_urlsafe(32))

    @property
    def secret(self) -> str:
        """The secret of this browser and sign-in, from which the nonce and the code verifier are derived."""
        return f"{self.state}.{self.browser}"

    @property
    def nonce(self) -> str:
        """The nonce that ties the ID token to this sign-in."""
        return _sha256(f"nonce.{self.secret}")

    @property
    def verifier(self) -> str:
        """The PKCE code verifier, which proves to the token endpoint that the code was issued for this sign-in."""
        return _sha256(f"verifier.{self.secret}")


class OidcClient:
    """An OpenID Connect client of one provider. Belongs to one event loop."""

    def __init__(
        self, settings: Settings, authenticator: Authenticator, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Raise BadInput if the issuer is not an address that may be fetched."""
        if not is_allowed_url(settings.jwt_issuer):
            raise BadInput("TRAFFIC_OIDC_CLIENT_ID needs TRAFFIC_JWT_ISSUER to be an https address.")
        self._settings = settings
        self._authenticator = authenticator
        self._clock = clock
        self._pages_url = f"{settings.public_url}{settings.base_path}/app"
        self._metadata: tuple[dict[str, Any], float] = {}, float("-inf")  # the document, and when it expires
        self._failed_until = float("-inf")
        self._last_error = ""
        self._slots = asyncio.Semaphore(MAX_UNDER_WAY)
        self.provider = urlsplit(settings.jwt_issuer).netloc

    async def authorization_url(self, sign_in: PendingSignIn) -> str:
        """Return the URL where a browser signs in. Raises ProviderUnavailable."""
        parameters = {
            "response_type": "code",
            "client_id": self._settings.oidc_client_id,
            "redirect_uri": f"{self._pages_url}/oidc/callback",
            "scope": self._settings.oidc_scopes,
            "state": sign_in.state,
            "nonce": sign_in.nonce,
            "code_challenge": _sha256(sign_in.verifier),
            "code_challenge_method": "S256",
        }
        return _with_query((await self._discover())["authorization_endpoint"], parameters)

    async def check_issuer(self, issuer: str | None) -> None:
        """Check the `iss` of an authorization response (RFC 9207). Raises Forbidden or ProviderUnavailable."""
        is_required = (await self._discover()).get("authorization_response_iss_parameter_supported") is True
        if issuer != self._settings.jwt_issuer and (is_required or issuer is not None):
            raise Forbidden("This response is from an unknown identity provider.", "Begin again from the sign-in page.")

    async def user(self, sign_in: PendingSignIn, code: str) -> Caller:
        """Exchange a code for the user who signed in. Raises Unauthorized, Forbidden or ProviderUnavailable."""
        metadata, settings = await self._discover(), self._settings
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": f"{self._pages_url}/oidc/callback",
            "code_verifier": sign_in.verifier,
        }
        headers = {}
        if not settings.oidc_client_secret:
            form["client_id"] = settings.oidc_client_id
        elif "client_secret_basic" in (metadata.get("token_endpoint_auth_methods_supported") or "client_secret_basic"):
            credentials = f"{quote(settings.oidc_client_id, '')}:{quote(settings.oidc_client_secret, '')}"
            headers["Authorization"] = f"Basic {b64encode(credentials.encode()).decode()}"
        else:
            form |= {"client_id": settings.oidc_client_id, "client_secret": settings.oidc_client_secret}
        token = (await self._fetch(metadata["token_endpoint"], form, headers)).get("id_token")
        if not isinstance(token, str):
            raise self._unavailable("no id_token in its answer")
        return await self._authenticator.authenticate_id_token(token, settings.oidc_client_id, sign_in.nonce)

    async def end_session_url(self) -> str:
        """Return the URL for signing out of the provider too, or "" if none is available."""
        try:
            endpoint = (await self._discover()).get("end_session_endpoint")
        except ProviderUnavailable:
            return ""
        if not isinstance(endpoint, str) or not is_allowed_url(endpoint):
            return ""
        back = f"{self._pages_url}/sign-in"
        parameters = {"client_id": self._settings.oidc_client_id, "post_logout_redirect_uri": back}
        return _with_query(endpoint, parameters)

    async def _discover(self) -> dict[str, Any]:
        """Return the discovery document, cached for an hour. Raises ProviderUnavailable on a failure and for
        FAILURE_SECONDS after it.
        """
        metadata, until = self._metadata
        if self._clock() < until:
            return metadata
        if self._clock() < self._failed_until:
            raise ProviderUnavailable
        issuer, endpoints = self._settings.jwt_issuer, ("authorization_endpoint", "token_endpoint")
        try:
            metadata = await self._fetch(f"{issuer.rstrip('/')}/.well-known/openid-configuration")
            if metadata.get("issuer") != issuer:
                raise self._unavailable("the issuer in its discovery document is not TRAFFIC_JWT_ISSUER")
            if not all(is_allowed_url(str(metadata.get(name))) for name in endpoints):
                raise self._unavailable("an endpoint in its discovery document is not an https address")
            if not isinstance(metadata.get("token_endpoint_auth_methods_supported") or [], list):
                raise self._unavailable("token_endpoint_auth_methods_supported in its discovery document is not a list")
        except ProviderUnavailable:
            self._failed_until = self._clock() + FAILURE_SECONDS
            raise
        self._metadata = metadata, self._clock() + METADATA_SECONDS
        return metadata

    async def _fetch(
        self, url: str, form: Mapping[str, str] | None = None, headers: Mapping[str, str] | None = None
    ) -> dict[str, Any]:
        """Fetch a JSON object. Raises Forbidden if the provider answers a form with 400, which means that the code is
        rejected, and ProviderUnavailable for every other failure.
        """
        try:
            if self._slots.locked():
                raise OutgoingError("timed_out", f"{MAX_UNDER_WAY} requests are under way")
            async with self._slots:
                found = json.loads(await fetch(url, FETCH_TIMEOUT_SECONDS, MAX_BYTES, form, headers))
        except OutgoingError as error:
            if form is None or not isinstance(error, BadStatus) or error.status != 400:
                raise self._unavailable(str(error)) from error
            _LOG.warning("The identity provider refused an authorization code: HTTP status 400")
            fix = "Begin again from the sign-in page."
            raise Forbidden("The identity provider refused this sign-in.", fix) from error
        except (ValueError, RecursionError) as error:
            raise self._unavailable("its answer is not JSON") from error
        if not isinstance(found, dict):
            raise self._unavailable("its answer is not a JSON object")
        self._last_error = ""
        return found

    def _unavailable(self, reason: str) -> ProviderUnavailable:
        """Return the error to raise; log the reason unless it is the same as last time."""
        if reason != self._last_error:
            _LOG.warning("The identity provider cannot sign users in: %s", reason)
        self._last_error = reason
        return ProviderUnavailable()


def _with_query(endpoint: str, parameters: Mapping[str, str]) -> str:
    return f"{endpoint}{'&' if '?' in endpoint else '?'}{urlencode(parameters)}"


def _sha256(text: str) -> str:
    """Return a string's SHA-256 in base64url without padding: 43 characters, as PKCE requires."""
    return urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
