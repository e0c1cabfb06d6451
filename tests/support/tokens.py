"""Identity tokens, valid and forged, and the key sets to verify them with."""

import base64
import itertools
import json
import time

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm

from service.core.http.errors import Unauthorized

ISSUER = "https://login.example/"
AUDIENCE = "traffic"
IDENTITY = {"jwt_issuer": ISSUER, "jwt_audience": AUDIENCE}
HOUR = 3_600
ABSENT = object()

RSA, STRANGER, NEXT = (rsa.generate_private_key(public_exponent=65_537, key_size=2_048) for _ in range(3))
EC, OTHER_EC = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
ED = ed25519.Ed25519PrivateKey.generate()
SIGNERS = {"rsa": (RSA, "RS256"), "ec": (EC, "ES256"), "ed": (ED, "EdDSA")}
"""The private keys that belong to KEYS, with their algorithms, by kid."""
_numbers = itertools.count()


def published(key, kid, **more):
    """Return a public key in the form in which a key set lists it."""
    kinds = {rsa.RSAPrivateKey: RSAAlgorithm, ec.EllipticCurvePrivateKey: ECAlgorithm}
    algorithm = next((kinds[kind] for kind in kinds if isinstance(key, kind)), OKPAlgorithm)
    public = algorithm.to_jwk(key.public_key(), as_dict=True)
    return public | ({} if kid is None else {"kid": kid}) | more


def key_set(*keys):
    return json.dumps({"keys": keys})


KEYS = key_set(*(published(key, kid) for kid, (key, _) in SIGNERS.items()), published(STRANGER, "secret", use="enc"))


def claims(**changes):
    now = int(time.time())
    usual = {"iss": ISSUER, "aud": AUDIENCE, "sub": "someone", "iat": now, "exp": now + HOUR, "org_id": "acme"}
    return {name: value for name, value in {**usual, **changes}.items() if value is not ABSENT}


def token(key=RSA, algorithm="RS256", headers=None, **changes):
    header = {name: value for name, value in ({"kid": "rsa"} | (headers or {})).items() if value is not ABSENT}
    return jwt.encode(claims(**changes), key, algorithm, header)


def token_of(kid, **changes):
    """Return a token signed with the key for a kid."""
    return token(*SIGNERS[kid], {"kid": kid}, **changes)


def fresh(**changes):
    """Return a token that no authenticator has cached."""
    return token(jti=str(next(_numbers)), **changes)


def encoded(part):
    return base64.urlsafe_b64encode(part if isinstance(part, bytes) else json.dumps(part).encode()).rstrip(b"=")


def raw_token(header, payload):
    """Return a signed token with these texts, even if invalid, as header and payload."""
    signed = b".".join((encoded(header.encode()), encoded(payload.encode())))
    return (signed + b"." + encoded(RSAAlgorithm(RSAAlgorithm.SHA256).sign(signed, RSA))).decode()


async def entered(gate, token):
    """Return the caller that a token identifies; None if the token is rejected."""
    try:
        return await gate.authenticate([(b"authorization", b"Bearer " + token.encode())])
    except Unauthorized:
        return None
