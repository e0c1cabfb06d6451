"""An identity provider for tests: its keys in a file, and the tokens it signs."""

import json
import time

import jwt
from cryptography.hazmat.primitives.asymmetric import ec
from jwt.algorithms import ECAlgorithm

ISSUER, AUDIENCE = "https://login.example/", "traffic"
_KEY = ec.generate_private_key(ec.SECP256R1())


def settings_of(folder):
    """The settings of a server that believes this provider."""
    file = folder / "jwks.json"
    public = ECAlgorithm.to_jwk(_KEY.public_key(), as_dict=True) | {"kid": "one"}
    file.write_text(json.dumps({"keys": [public]}))
    return {"jwks": file, "jwt_issuer": ISSUER, "jwt_audience": AUDIENCE}


def token(organization="acme", role="editor", sub="somebody"):
    """A valid token."""
    now = int(time.time())
    told = {"iss": ISSUER, "aud": AUDIENCE, "sub": sub, "iat": now, "exp": now + 3_600, "org_id": organization}
    return jwt.encode(told | ({"role": role} if role else {}), _KEY, "ES256", {"kid": "one"})


def bearer(text):
    """The headers of a request with a token or a key."""
    return {"Authorization": f"Bearer {text}"}


def as_(organization="acme", role="editor", sub="somebody"):
    """The headers of a request with a valid token."""
    return bearer(token(organization, role, sub))
