"""Message signatures according to Standard Webhooks 1.0.0: HMAC-SHA256 over id, time and body, with a hook's secret."""

import base64
import hashlib
import hmac
from collections.abc import Iterable
from secrets import token_bytes
from typing import Final

_PREFIX: Final = "whsec_"
_SECRET_BYTES: Final = 32


def new_secret() -> str:
    """Return a new secret: whsec_ and 32 random bytes in base64."""
    return _PREFIX + base64.b64encode(token_bytes(_SECRET_BYTES)).decode()


def signature_headers(secrets: Iterable[str], message_id: str, timestamp: int, body: bytes) -> dict[str, str]:
    """Return a message's headers, with a signature for each secret; `timestamp` is the Unix time of the attempt."""
    signed = b"%s.%d.%s" % (message_id.encode(), timestamp, body)
    signatures = (hmac.digest(base64.b64decode(one.removeprefix(_PREFIX)), signed, hashlib.sha256) for one in secrets)
    return {
        "webhook-id": message_id,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": " ".join(f"v1,{base64.b64encode(one).decode()}" for one in signatures),
    }
