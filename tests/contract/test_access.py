"""Authentication over HTTP by valid and invalid API keys and identity tokens; all rejections are alike."""

import base64
import hmac
import itertools
import json
import random
import time

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ed25519

from service.access.api_keys import ApiKeys
from service.access.authentication import (
    API_KEY_CACHE_SECONDS,
    MAX_REMEMBERED,
    TOKEN_CACHE_SECONDS,
    Authenticator,
    Caller,
)
from service.access.jwks import MIN_REFRESH_INTERVAL_SECONDS, JwksClient
from tests.faults.trials import scaled
from tests.support.clock import Clock
from tests.support.control import open_store
from tests.support.identity import bearer
from tests.support.tables import examples, tables
from tests.support.tokens import (
    ABSENT,
    AUDIENCE,
    EC,
    ED,
    HOUR,
    IDENTITY,
    ISSUER,
    KEYS,
    NEXT,
    OTHER_EC,
    RSA,
    SIGNERS,
    STRANGER,
    claims,
    encoded,
    entered,
    key_set,
    published,
    raw_token,
    token,
    token_of,
)  # fmt: skip
from tests.support.visits import land, visit


@pytest.fixture(scope="module")
def shared(shared_lake):
    """A lake with one visit of acme and two visits of another organization."""
    land(shared_lake, "acme", [visit()])
    land(shared_lake, "other", [visit(), visit()])
    (shared_lake.root.parent / "keys.json").write_text(KEYS)
    return shared_lake


@pytest.fixture(scope="module")
def asked(shared, opened):
    """The application with an identity provider's keys; by default, its client sends no credentials."""
    with opened(shared, organization=None, jwks=shared.root.parent / "keys.json", **IDENTITY) as client:
        yield client


@pytest.fixture(scope="module")
def refusal(asked):
    """The body of every 401."""
    return asked.get("/jobs").content


def visits_of(client, token, scheme="Bearer"):
    """Return the number of visits visible with a token."""
    response = client.get("/analytics/traffic-overview", headers={"Authorization": f"{scheme} {token}"})
    assert response.status_code == 200, response.text
    return response.json()["total_visits"]


# The header


def test_every_request_without_a_token_gets_the_same_401(asked, refusal):
    assert list(json.loads(refusal)) == ["error", "message"]
    for path in ("/analytics/dashboard", "/jobs", "/jobs/job_x", "/", "/openapi.json/", "/healthz/x", "/jobs?range=x"):
        response = asked.get(path)
        assert (response.status_code, response.content) == (401, refusal)
        assert response.headers["www-authenticate"] == "Bearer"
        assert response.headers["content-type"] == "application/json"
        assert response.headers["x-ratelimit-limit"] == "60"


@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER", "bEaReR", "Bearer   ", "bearer "])
def test_the_bearer_scheme_allows_any_case_and_extra_spaces(asked, shared, key_of, scheme):
    assert visits_of(asked, key_of(shared), scheme) == 1
    assert visits_of(asked, token(), scheme) == 1


@examples("written")
def test_malformed_authorization_headers_are_rejected(asked, shared, key_of, refusal, written):
    for good in (key_of(shared), token()):
        header = written.replace("{}", good).encode("latin-1")
        response = asked.get("/jobs", headers=[(b"Authorization", header)])
        if written.strip() == written or "\t" in written:
            assert (response.status_code, response.content) == (401, refusal)
        else:  # HTTP servers strip white space around a header's value; in process it stays
            assert response.status_code in (200, 401)


def test_two_authorization_headers_are_rejected_even_if_equal(asked, shared, key_of, refusal):
    good = f"Bearer {key_of(shared)}"
    for other in (good, "Bearer x", ""):
        for pair in ((good, other), (other, good)):
            response = asked.get("/jobs", headers=[("Authorization", value) for value in pair])
            assert (response.status_code, response.content) == (401, refusal)


def test_a_token_in_the_query_or_a_cookie_is_ignored(asked, shared, key_of):
    key = key_of(shared)
    assert asked.get(f"/jobs?access_token={key}&token={key}", headers={"Cookie": f"token={key}"}).status_code == 401


def test_a_token_has_at_most_8192_characters(asked, refusal):
    spare = (8_192 - len(token(padding=""))) * 3 // 4
    good = next(made for size in range(spare, 0, -1) if len(made := token(padding="x" * size)) <= 8_192)
    assert len(good) > 8_180
    assert visits_of(asked, good) == 1
    for bad in (token(padding="x" * (spare + 9)), *(token(padding="x" * 9_000)[:size] for size in (8_192, 8_193))):
        assert asked.get("/jobs", headers=bearer(bad)).content == refusal


# API keys


def test_a_new_key_opens_only_its_own_organization(asked, shared, key_of):
    assert [visits_of(asked, key_of(shared, name)) for name in ("acme", "other", "new")] == [1, 2, 0]


def test_a_wrong_or_mistyped_key_is_rejected(asked, shared, lake, key_of, refusal):
    key = key_of(shared)
    other = key[:10] + ("A" if key[10] != "A" else "B") + key[11:]
    wrong = [key[:-1], key + "0", other, key.swapcase(), key[4:], "tak_", "tak_" + "0" * 36,
             key.replace("tak", "TAK"), key_of(lake)]  # fmt: skip
    assert {asked.get("/jobs", headers=bearer(one)).content for one in wrong} == {refusal}


# Identity tokens


@pytest.mark.parametrize("kid", SIGNERS)
def test_a_valid_token_opens_its_organization(asked, kid):
    now = int(time.time())
    for changes in ({}, {"org_id": "other"}, {"aud": ["someone-else", AUDIENCE]}, {"role": "viewer"},
                    {"role": "editor"}, {"exp": now + 900.5}, {"nbf": now - 5}, {"more": {"deep": ["claims"]}},
                    {"iat": now - 100, "exp": now - 10},
                    {"iat": now + 20, "exp": now + 100, "nbf": now + 20}):  # fmt: skip
        good = token_of(kid, **changes)  # the last two are from clocks that differ by half a minute
        assert visits_of(asked, good) == visits_of(asked, good) == (2 if "org_id" in changes else 1)


@pytest.mark.parametrize("typ", ["JWT", "jwt", "at+jwt", "AT+JWT", "application/at+jwt", ABSENT])
def test_tokens_of_type_jwt_at_jwt_or_no_type_are_accepted(asked, typ):
    header = {"alg": "RS256", "kid": "rsa"} | ({} if typ is ABSENT else {"typ": typ})
    assert visits_of(asked, raw_token(json.dumps(header), json.dumps(claims()))) == 1


GOOD_HEADER = '{"alg":"RS256","kid":"rsa"}'
NOW = int(time.time())
BAD_CLAIMS = {
    **tables(__file__)["BAD_CLAIMS"],
    "expired": {"iat": NOW - 2 * HOUR, "exp": NOW - HOUR},
    "expired a minute ago": {"iat": NOW - HOUR, "exp": NOW - 60},
    "not yet": {"nbf": NOW + HOUR},
    "issued in the future": {"iat": NOW + HOUR, "exp": NOW + 2 * HOUR},
    "exp before iat": {"iat": NOW + 20, "exp": NOW + 10},
    "exp at iat": {"iat": NOW + 20, "exp": NOW + 20},
    "never ending": {"exp": NOW + 366 * 86_400},
    **{f"{name} {value!r}": {name: value} for name in ("iss", "aud", "sub", "iat", "exp") for value in (ABSENT, None)},
    **{f"iss {wrong}": {"iss": wrong} for wrong in (ISSUER + "evil", ISSUER + " ", ISSUER.upper())},
    "issuers": {"iss": [ISSUER]},
    "issuer object": {"iss": {ISSUER: 1}},
    **{f"aud {wrong}": {"aud": wrong} for wrong in ({AUDIENCE: 1}, [AUDIENCE, 7], [[AUDIENCE]])},
    "a second too long": {"iat": NOW - 10, "exp": NOW - 10 + 24 * HOUR + 1},
    "iat and exp huge": {"iat": 10**30, "exp": 10**30 + HOUR},
    "iat and exp negative": {"iat": -HOUR, "exp": -1},
    **{f"{name} as text": {name: str(NOW + later)} for name, later in (("nbf", 0), ("iat", 0), ("exp", HOUR))},
    "exp list": {"exp": [NOW + HOUR]},
    "no organization": {"org_id": ABSENT},
}


def signed_with(secret, kid="rsa", algorithm="HS256"):
    """Return an HMAC token with a public value as its secret."""
    signed = b".".join((encoded({"alg": algorithm, "kid": kid}), encoded(claims())))
    return b".".join((signed, encoded(hmac.digest(secret, signed, "sha256")))).decode()


def public(key, *form):
    return key.public_key().public_bytes(*form)


def with_signature(algorithm, kid, signature):
    return b".".join((encoded({"alg": algorithm, "kid": kid}), encoded(claims()), encoded(signature))).decode()


PEM, DER, RAW = serialization.Encoding.PEM, serialization.Encoding.DER, serialization.Encoding.Raw
SPKI, PKCS1 = serialization.PublicFormat.SubjectPublicKeyInfo, serialization.PublicFormat.PKCS1
RAW_PUBLIC = serialization.PublicFormat.Raw
OTHER_ED = ed25519.Ed25519PrivateKey.generate()
P256_ORDER = bytes.fromhex("ffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551")
ALPHABET_OF_MAIL = next(
    text for n in range(99) if "/" in (text := token(jti=str(n)).replace("_", "/").replace("-", "+"))
)
SIGNATURES = [
    *((algorithm, "rsa", b"") for algorithm in ("none", "None", "", "RS256")), ("Ed25519", "ed", ED.sign(b"x")),
    ("RS256", "ed", ED.sign(b"x")), ("EdDSA", "ed", b"\1" * 114), ("EdDSA", "ed", bytes(64)),
    ("EdDSA", "ed", b"\1" + bytes(63)), ("ES256", "ec", bytes(64)), ("ES256", "ec", P256_ORDER * 2),
    ("ES256", "ec", b"\x30\x06\x02\x01\x01\x02\x01\x01"), ("ES384", "ec", bytes(96)), ("RS256", "rsa", bytes(256)),
    ("RS256", "rsa", bytes(255) + b"\1"),
]  # fmt: skip
"""Forged signatures, including some that a careless verification accepts."""
SECRETS = [
    *((public(key, form, SPKI), kid, name) for kid, (key, own) in SIGNERS.items() for form in (PEM, DER)
      for name in ("HS256", own)),
    (public(RSA, PEM, PKCS1),), (public(ED, RAW, RAW_PUBLIC), "ed"), (public(ED, RAW, RAW_PUBLIC), "ed", "EdDSA"),
    (json.dumps(published(RSA, "rsa")).encode(),),
]  # fmt: skip
"""Public keys as HMAC secrets, in every encoding."""
SIGNED = [
    (OTHER_ED, "EdDSA", {"kid": "ed"}), (ED, "EdDSA"), (ED, "EdDSA", {"kid": "ec"}), (OTHER_EC, "ES256", {"kid": "ec"}),
    (STRANGER,), (EC, "ES256", {"kid": "rsa"}), (RSA, "RS512"), (RSA, "PS256"),
    *((STRANGER, "RS256", header) for header in (
        {"kid": ABSENT}, {"kid": "secret"}, {"jwk": published(STRANGER, "rsa")}, {"jku": "http://127.0.0.1:9/keys"},
        {"x5c": ["MIIB"], "x5t": "x"}, {"x5u": "http://127.0.0.1:9/chain"},
    )),
    *((RSA, "RS256", {"kid": kid}) for kid in (
        "ec", "nobody", ABSENT, "", "../../keys.json", "' OR 1=1 --", "x" * 4_000, "x" * 129, "rsa\n", "rsa\0", "rsä",
        "http://127.0.0.1:9/keys", "|| sleep 9", "RSA", "rsa ",
    )),
    *((RSA, "RS256", {"crit": crit}) for crit in ([], "exp", None, ["exp"])),
    (RSA, "RS256", {"crit": ["traffic"], "traffic": 1}), (RSA, "RS256", {"b64": False, "crit": ["b64"]}),
    (RSA, "RS256", {"padding": "x" * (1 << 20)}),
]  # fmt: skip
"""Well-formed tokens with another key, algorithm or header."""
BAD_HEADERS = [*tables(__file__)["BAD_HEADERS"], "[" * 3_000, '{"alg":"RS256","kid":' + "[" * 3_000]
BAD_PAYLOADS = ['["acme"]', "null", "7", "", "{", "[" * 3_000]
BAD_ENDS = [',"n":' + "9" * 5_000 + "}", ',"n":' + "[" * 3_000 + "}", ',"n":' + '{"a":' * 900, ',"iss":"x"}',
            ',"aud":[]}', ',"org_id":""}', ',"exp":1}']  # fmt: skip
"""Endings for otherwise valid claims: the last of two equal names counts."""


def crafted():
    """Yield tokens that must be rejected, each with its defect."""
    payload = json.dumps(claims())
    yield from ((name, raw_token(GOOD_HEADER, json.dumps(claims(**changes)))) for name, changes in BAD_CLAIMS.items())
    yield from ((row, with_signature(*row)) for row in SIGNATURES)
    yield from ((row, signed_with(*row)) for row in SECRETS)
    yield from ((row, token(*row)) for row in SIGNED)
    yield from ((header, raw_token(header, payload)) for header in BAD_HEADERS)
    yield from ((bad, raw_token(GOOD_HEADER, bad)) for bad in (*BAD_PAYLOADS, payload * 2))
    yield from ((end, raw_token(GOOD_HEADER, payload[:-1] + end)) for end in BAD_ENDS)
    head, _, signature = token().rpartition(".")
    texts = [
        token().split(".")[0] + "._-_-.x", token(padding="x" * (1 << 20)), "." * (1 << 20),
        ".".join([encoded({"alg": "RSA-OAEP", "enc": "A256GCM", "kid": "rsa"}).decode()] + ["AAAA"] * 4),
        json.dumps({"payload": "e30", "signatures": []}, separators=(",", ":")), token().replace(".", ".\n"),
        ALPHABET_OF_MAIL, head.split(".")[0], head, token() + ".x", token() + ".x.y", "..", "." * 8_000, head + ".",
        token()[:-20], token(sub="x").rpartition(".")[0] + "." + signature, "x" * 200, "A" * 8_000,
    ]  # fmt: skip
    yield from ((text[:80], text) for text in texts)


sources = itertools.count(1)


async def answered(app, header):
    """Return the status, body and relevant headers of the response to one Authorization header."""
    number, told = next(sources), []
    scope = {
        "type": "http", "method": "GET", "path": "/jobs", "raw_path": b"/jobs", "query_string": b"", "root_path": "",
        "scheme": "http", "http_version": "1.1", "server": ("127.0.0.1", 80), "headers": [(b"authorization", header)],
        "client": (f"100.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}", 50_000),
    }  # fmt: skip

    async def receive():
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message):
        told.append(message)

    await app(scope, receive, send)
    headers = {name: value for name, value in told[0]["headers"] if not name.startswith(b"x-r")}
    return told[0]["status"], b"".join(message.get("body", b"") for message in told), headers


async def trials(app, tokens):
    """Return the tokens that were not rejected with the uniform response, and the responses that they got."""
    expected = await answered(app, b"")
    assert (expected[0], expected[2][b"www-authenticate"]) == (401, b"Bearer")
    answers = [(token, await answered(app, b"Bearer " + token.encode("utf-8", "surrogatepass"))) for token in tokens]
    return {token: answer for token, answer in answers if answer != expected}


def test_all_crafted_tokens_are_rejected_in_the_same_way(asked, caplog, capfd):
    names = {token: name for name, token in crafted()}
    strange = asked.portal.call(trials, asked.app, names)
    assert {names[token]: answer for token, answer in strange.items()} == {}
    assert caplog.records == []
    assert capfd.readouterr().err == ""
    assert len(names) >= 180
    assert visits_of(asked, token()) == 1


ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
SPOILED = ALPHABET + ".=+/ \t~!%\x7f"
HEADERS = [{"alg": alg, "kid": kid} for alg in ("none", "HS256", "RS256", "ES256", "EdDSA", "PS256") for kid in SIGNERS]


def bytewise(good, chance):
    """Return a token after one to four random changes to its characters."""
    changed = good
    for _ in range(chance.choice((1, 1, 1, 2, 4))):
        place, letter = chance.randrange(len(changed) or 1), chance.choice(SPOILED)
        head, tail = changed[:place], changed[place:]
        changed = chance.choice((
            head + letter + tail[1:], head + letter + tail, head + tail[1:], head + tail.swapcase(),
            head + tail[:8] + tail, head, head + tail[:1] + tail[1:3][::-1] + tail[3:], changed + letter,
        ))  # fmt: skip
    return changed


def segmentwise(good, chance, others):
    """Return a token with swapped, repeated, re-encoded or padded parts."""
    parts = good.split(".")
    other, place = chance.choice(others).split("."), chance.randrange(3)
    part, said = parts[place], chance.choice([{"org_id": "other"}, {"role": "admin"}, {"exp": int(time.time()) + 9}])
    parts[place] = chance.choice((
        other[place], other[chance.randrange(3)], "", part + "=" * chance.randint(1, 4),
        part + "=" * (-len(part) % 4),  # as some providers write it
        part.rstrip("=") + "A", part[:-1] + chance.choice(ALPHABET),  # the last letter has unused bits
        encoded(chance.choice(HEADERS)).decode(), encoded(claims(**said)).decode(),
        base64.b64encode(base64.urlsafe_b64decode(part + "===")).decode(),
    ))  # fmt: skip
    if chance.random() < 0.2:
        chance.shuffle(parts)
    if chance.random() < 0.1:
        parts.insert(chance.randrange(4), chance.choice(parts))
    return ".".join(parts)


def test_a_mutated_token_is_accepted_only_with_the_same_claims(asked, caplog, capfd):
    chance, wanted = random.Random(28), scaled(2_500, 200_000)
    goods = [token_of(kid, sub=f"{number}") for number in range(20) for kid in SIGNERS]
    mutants = {}
    while len(mutants) < wanted:
        good = chance.choice(goods)
        mutant = segmentwise(good, chance, goods) if chance.random() < 0.3 else bytewise(good, chance)
        if mutant not in goods:
            mutants[mutant] = good
    strange = asked.portal.call(trials, asked.app, mutants)
    for mutant, answer in strange.items():
        said = [jwt.decode(text, options={"verify_signature": False}) for text in (mutant, mutants[mutant])]
        assert answer[0] == 200
        assert said[0] == said[1], mutant
    assert caplog.records == []
    assert capfd.readouterr().err == ""


def test_a_mutated_key_is_never_accepted(asked, shared, key_of):
    chance, key = random.Random(29), key_of(shared)
    mutants = {bytewise(key, chance) for _ in range(scaled(500, 20_000))}
    mutants = {mutant for mutant in mutants if mutant.lstrip(" ") != key}  # several blanks may precede a key
    assert asked.portal.call(trials, asked.app, mutants) == {}
    assert visits_of(asked, key) == 1


def test_only_keys_are_accepted_without_an_identity_provider(client):
    assert client.get("/jobs", headers=bearer(token())).status_code == 401


# Claims


@pytest.fixture
def gate(shared, settings, tmp_path):
    """Return a function that makes authenticators with a file of keys."""
    with open_store(ApiKeys, shared) as api_keys:

        def gate(keys=KEYS, clock=time.monotonic, **changes):
            file = tmp_path / "keys.json"
            file.write_text(keys)
            chosen = settings(shared, jwks=file, **IDENTITY | changes)
            return Authenticator(chosen, api_keys, JwksClient(str(file), clock), clock)

        yield gate


@examples("chosen", "said", "expected")
async def test_configured_claims_identify_the_caller(gate, chosen, said, expected):
    """A missing role counts as viewer. All roles but viewer may write, unless the operator lists those that may."""
    changes = {name: ABSENT if value == "(absent)" else value for name, value in said.items()}
    found = await entered(gate(**chosen), token(**changes))
    assert expected == (found and (found.organization, found.role, found.may_write))
    assert found is None or (found.name, found.may_manage_keys, found.is_key) == ("someone", found.may_write, False)


async def test_an_api_key_is_an_editor_that_creates_no_keys(gate, shared, key_of):
    key = key_of(shared, "other")
    found = await entered(gate(), key)
    assert found == Caller("other", "editor", key[:12], is_key=True)
    assert (found.may_write, found.may_manage_keys) == (True, False)


async def test_only_configured_algorithms_are_accepted(gate):
    for kid, (_, algorithm) in SIGNERS.items():
        only = gate(jwt_algorithms=algorithm)
        assert [name for name in SIGNERS if await entered(only, token_of(name))] == [kid]


@pytest.mark.parametrize("hours", [1, 720])
async def test_a_token_is_valid_for_at_most_the_configured_time(gate, hours):
    limited, begun = gate(jwt_lifetime=hours), int(time.time()) - 10
    found = [await entered(limited, token(iat=begun, exp=begun + hours * HOUR + more)) for more in (0, 0.5, 1)]
    assert [one is not None for one in found] == [True, False, False]


async def test_a_token_without_kid_uses_the_only_key(gate):
    only = gate(key_set(published(RSA, "rsa"), published(STRANGER, "secret", use="enc")))
    assert (await entered(only, token(headers={"kid": ABSENT}))).organization == "acme"
    assert await entered(only, token(STRANGER, headers={"kid": ABSENT})) is None
    unnamed = gate(key_set(published(RSA, None)))
    assert (await entered(unnamed, token(headers={"kid": ABSENT}))).organization == "acme"


# Caching


def headers(token, scheme=b"Bearer"):
    return [(b"host", b"x"), (b"authorization", scheme + b" " + token.encode()), (b"accept", b"*/*")]


async def test_a_caller_is_cached_for_a_while_after_the_first_check(gate, shared, key_of):
    clock = Clock()
    keeper = gate(clock=clock)
    for good, seconds in ((token_of("ec"), TOKEN_CACHE_SECONDS), (key_of(shared), API_KEY_CACHE_SECONDS)):
        assert keeper.cached(headers(good)) is None
        found = await entered(keeper, good)
        assert keeper.cached(headers(good)) is found
        assert keeper.cached(headers(good)[1:2]) is found
        for other in (headers(good)[:1], headers(good) * 2, headers(good, b"bearer"), headers(good + "x"), []):
            assert keeper.cached(other) is None
        for more in (b"", headers(good)[1][1], b"Bearer x"):
            assert keeper.cached([(b"authorization", more), *headers(good)]) is None
            assert keeper.cached([*headers(good), (b"authorization", more)]) is None
        clock.now += seconds - 0.01
        assert keeper.cached(headers(good)) is found
        clock.now += 0.02
        assert keeper.cached(headers(good)) is None
        assert await entered(keeper, good) == found


async def test_rejected_tokens_are_not_cached(gate, shared, key_of):
    keeper = gate()
    for bad in (token(STRANGER), "tak_" + "0" * 36, key_of(shared)[:-1], "x"):
        assert await entered(keeper, bad) is None
        assert keeper.cached(headers(bad)) is None
    assert not keeper._callers


async def test_cached_tokens_end_at_their_exp_or_when_the_keys_change(gate, tmp_path):
    clock = Clock()
    keeper, now = gate(clock=clock), time.time()
    ending = token(iat=int(now) - 100, exp=now - 1)
    assert await entered(keeper, ending)  # clocks may differ
    assert keeper.cached(headers(ending)) is None
    clock.now += MIN_REFRESH_INTERVAL_SECONDS - 1
    good, other = token(), token_of("ec")
    assert await entered(keeper, good)
    assert await entered(keeper, other)
    assert keeper.cached(headers(good))
    (tmp_path / "keys.json").write_text(key_set(published(EC, "ec"), published(NEXT, "next")))
    clock.now += 1
    assert keeper.cached(headers(good))
    assert await entered(keeper, token(NEXT, headers={"kid": "next"}))
    assert keeper.cached(headers(good)) is None
    assert await entered(keeper, good) is None
    assert await entered(keeper, other)


async def test_a_key_revoked_elsewhere_works_for_two_seconds_at_most(gate, shared, key_of):
    clock, key = Clock(), key_of(shared)
    keeper = gate(clock=clock)
    assert await entered(keeper, key)
    for _ in range(10):  # use does not extend it
        clock.now += 0.15
        assert await entered(keeper, key)
    with open_store(ApiKeys, shared) as keys:
        keys.revoke_key(key[:12])
    clock.now += 0.51
    assert await entered(keeper, key) is None
    assert await entered(keeper, key) is None


async def test_looking_up_a_key_records_its_use(gate, shared, key_of, monkeypatch):
    clock, key, noted = Clock(), key_of(shared), []
    keeper = gate(clock=clock)
    monkeypatch.setattr(ApiKeys, "record_use", lambda self, used: noted.append(used))
    for _ in range(100):
        assert await entered(keeper, key)
        clock.now += 0.1
    assert await entered(keeper, key[:-1]) is None
    assert noted == [key] * 5


async def test_the_cache_of_callers_is_bounded_and_drops_expired_keys(gate):
    clock = Clock()
    keeper, good = gate(clock=clock), token_of("ed")
    for number in range(MAX_REMEMBERED + 500):
        keeper._add_to_cache(b"Bearer %d" % number, Caller("acme", "viewer", "x", is_key=False), 60, float("inf"), 0)
    assert len(keeper._callers) == MAX_REMEMBERED
    clock.now += 61
    assert await entered(keeper, good)
    assert len(keeper._callers) == 1
