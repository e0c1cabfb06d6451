"""Signatures, verified by another implementation of Standard Webhooks."""

import re
import time
from itertools import product

from standardwebhooks import Webhook, WebhookVerificationError

from service.hooks.signature import new_secret, signature_headers

BODY = '{"type":"job.approved","data":{"title":"Ünï"}}'.encode()


def signed(*keys, body=BODY, at=None):
    return signature_headers(keys, "evt_0123456789abcdef0123", int(at or time.time()), body)


def is_verified(secret, headers, body=BODY):
    try:
        Webhook(secret).verify(body, headers, json_parse=False)
    except WebhookVerificationError:
        return False
    return True


def test_the_example_of_the_standard_has_its_signature():
    """The test vector of the specification's reference libraries."""
    secret, body = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", b'{"test": 2432232314}'
    assert signature_headers([secret], "msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, body) == {
        "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
        "webhook-timestamp": "1614265330",
        "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    }


def test_the_secrets_of_a_rotation_verify_and_no_other():
    new, old, *others = secrets = [new_secret() for _ in range(100)]
    assert len({*secrets}) == 100
    assert all(re.fullmatch(r"whsec_[A-Za-z0-9+/]{43}=", secret) for secret in secrets)  # 32 bytes
    assert is_verified(new, signed(new, old))
    assert is_verified(old, signed(new, old))
    assert not is_verified(others[0], signed(new, old))
    assert not is_verified(old, signed(new))
    assert not is_verified(new, signed(new, at=time.time() - 3_600))


def test_a_changed_header_and_every_flipped_bit_of_a_body_are_noticed():
    secret = new_secret()
    headers, other = signed(secret, body=b"abc"), signed(new_secret(), body=b"abc")["webhook-signature"]
    assert is_verified(secret, headers, b"abc")
    past = str(int(time.time()) - 1)
    for name, value in (("webhook-id", "evt_1"), ("webhook-timestamp", past), ("webhook-signature", other)):
        assert not is_verified(secret, headers | {name: value}, b"abc")
    for place, bit in product(range(3), range(7)):  # the verifier wants ASCII
        body = bytearray(b"abc")
        body[place] ^= 1 << bit
        assert not is_verified(secret, headers, bytes(body))
