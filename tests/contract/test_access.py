"""Who is let in: API keys and identity tokens, good and bad, over HTTP; every refusal alike."""

import asyncio
import base64
import hmac
import json
import random
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from jwt.algorithms import ECAlgorithm, RSAAlgorithm

from data import BadInput
from service.access import Gate
from service.control import Control
from service.errors import Unauthorized
from service.jwks import FRESH_SECONDS, RETRY_SECONDS, STALE_SECONDS, KeySet
from tests.visits import land, visit

ISSUER = "https://login.example/"
AUDIENCE = "traffic"
RSA, STRANGER, NEXT = (rsa.generate_private_key(public_exponent=65_537, key_size=2_048) for _ in range(3))
EC = ec.generate_private_key(ec.SECP256R1())
HOUR = 3_600
ABSENT = object()


def published(key, kid, **more):
    algorithm = RSAAlgorithm if isinstance(key, rsa.RSAPrivateKey) else ECAlgorithm
    public = algorithm.to_jwk(key.public_key(), as_dict=True)
    return public | ({} if kid is None else {"kid": kid}) | more


def key_set(*keys):
    return json.dumps({"keys": keys})


KEYS = key_set(published(RSA, "rsa"), published(EC, "ec"), published(STRANGER, "secret", use="enc"))


def claims(**changes):
    now = int(time.time())
    usual = {"iss": ISSUER, "aud": AUDIENCE, "sub": "someone", "iat": now, "exp": now + HOUR, "org_id": "acme"}
    return {name: value for name, value in {**usual, **changes}.items() if value is not ABSENT}


def token(key=RSA, algorithm="RS256", headers=None, **changes):
    header = {name: value for name, value in ({"kid": "rsa"} | (headers or {})).items() if value is not ABSENT}
    return jwt.encode(claims(**changes), key, algorithm, header)


def raw_token(header, payload, key=RSA):
    """A token signed over any text at all."""
    signed = b".".join(base64.urlsafe_b64encode(part.encode()).rstrip(b"=") for part in (header, payload))
    signature = RSAAlgorithm(RSAAlgorithm.SHA256).sign(signed, key)
    return (signed + b"." + base64.urlsafe_b64encode(signature).rstrip(b"=")).decode()


IDENTITY = {"jwt_issuer": ISSUER, "jwt_audience": AUDIENCE}


@pytest.fixture(scope="module")
def shared(shared_lake):
    """A lake in which acme has one visit and other two."""
    land(shared_lake, "acme", [visit()])
    land(shared_lake, "other", [visit(), visit()])
    (shared_lake.root.parent / "keys.json").write_text(KEYS)
    return shared_lake


@pytest.fixture(scope="module")
def asked(shared, opened):
    """The application with an identity provider's keys; nobody is let in by default."""
    with opened(shared, organization=None, jwks=shared.root.parent / "keys.json", **IDENTITY) as client:
        yield client


@pytest.fixture(scope="module")
def refusal(asked):
    """The body of every 401."""
    return asked.get("/jobs").content


def visits_of(client, token, scheme="Bearer"):
    """How many visits the holder of a token sees; None when refused."""
    response = client.get("/analytics/traffic-overview", headers={"Authorization": f"{scheme} {token}"})
    if response.status_code == 401:
        assert response.headers["www-authenticate"] == "Bearer"
        return None
    assert response.status_code == 200, response.text
    return response.json()["total_visits"]


# The header


def test_without_a_token_there_is_only_one_answer(asked, refusal):
    assert list(json.loads(refusal)) == ["error", "message"]
    for path in ("/analytics/dashboard", "/jobs", "/nothing", "/", "/openapi.json/", "/healthz/x"):
        response = asked.get(path)
        assert (response.status_code, response.content) == (401, refusal)
        assert response.headers["www-authenticate"] == "Bearer"
        assert response.headers["content-type"] == "application/json"
        assert response.headers["x-ratelimit-limit"] == "60"


@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER", "bEaReR"])
def test_the_scheme_is_written_in_any_case(asked, shared, key_of, scheme):
    assert visits_of(asked, key_of(shared), scheme) == 1
    assert visits_of(asked, token(), scheme) == 1


@pytest.mark.parametrize(
    "written",
    [
        "", "Bearer", "Bearer ", " Bearer {}", "Bearer  {}", "Bearer {} ", "Bearer {} {}", "Bearer {},{}", "Bearer,{}",
        "Bearer\t{}", "Bearer: {}", "Bearer={}", "{}", "Basic {}", "Digest {}", "Token {}", "Bearer Bearer {}",
        "Bearer '{}'", 'Bearer "{}"', "Bearer {}\u00fc", "Bearer \u00fc{}", "Bearer\u00a0{}", "Bearer {}\x00",
    ],
)  # fmt: skip
def test_anything_but_one_scheme_and_one_token_is_refused(asked, shared, key_of, refusal, written):
    for good in (key_of(shared), token()):
        header = written.replace("{}", good).encode("latin-1")
        response = asked.get("/jobs", headers=[(b"Authorization", header)])
        if written.strip() == written or "\t" in written:
            assert (response.status_code, response.content) == (401, refusal)
        else:  # white space around a header's value belongs to HTTP; in process nobody strips it
            assert response.status_code in (200, 401)


def test_two_authorization_headers_are_refused_even_when_equal(asked, shared, key_of, refusal):
    good = f"Bearer {key_of(shared)}"
    for other in (good, "Bearer x", ""):
        for pair in ((good, other), (other, good)):
            response = asked.get("/jobs", headers=[("Authorization", value) for value in pair])
            assert (response.status_code, response.content) == (401, refusal)


def test_a_token_in_the_query_or_a_cookie_opens_nothing(asked, shared, key_of):
    key = key_of(shared)
    assert asked.get(f"/jobs?access_token={key}&token={key}", headers={"Cookie": f"token={key}"}).status_code == 401


@pytest.mark.parametrize("length", [8_192, 8_193, 100_000])
def test_an_over_long_token_is_refused(asked, refusal, length):
    response = asked.get("/jobs", headers={"Authorization": f"Bearer {token(padding='x' * 9_000)[:length]}"})
    assert (response.status_code, response.content) == (401, refusal)


def test_a_token_of_8192_characters_is_not_too_long(asked):
    spare = (8_192 - len(token(padding=""))) * 3 // 4
    good = next(made for size in range(spare, 0, -1) if len(made := token(padding="x" * size)) <= 8_192)
    assert len(good) > 8_180
    assert visits_of(asked, good) == 1
    assert visits_of(asked, token(padding="x" * (spare + 9))) is None


# API keys


def test_a_key_opens_its_own_organization_only(asked, shared, key_of):
    assert visits_of(asked, key_of(shared, "acme")) == 1
    assert visits_of(asked, key_of(shared, "other")) == 2
    assert visits_of(asked, key_of(shared, "new")) == 0


def test_a_wrong_or_mistyped_key_is_refused(asked, shared, key_of, refusal):
    key = key_of(shared)
    elsewhere = key[:10] + ("A" if key[10] != "A" else "B") + key[11:]
    for wrong in (
        key[:-1],
        key + "0",
        elsewhere,
        key.swapcase(),
        key[4:],
        "tak_",
        "tak_" + "0" * 36,
        key.replace("tak", "TAK"),
    ):
        response = asked.get("/jobs", headers={"Authorization": f"Bearer {wrong}"})
        assert (response.status_code, response.content) == (401, refusal), wrong


def test_a_well_formed_key_of_another_lake_is_refused(asked, lake, key_of):
    assert visits_of(asked, key_of(lake)) is None


def test_a_revoked_key_is_refused_from_the_next_request_on(asked, shared, key_of):
    key, other = key_of(shared), key_of(shared)
    assert visits_of(asked, key) == 1
    control = Control(shared)  # as another process would
    control.revoke_key(key[:12])
    control.close()
    assert visits_of(asked, key) is None
    assert visits_of(asked, other) == 1


def test_a_key_made_while_serving_is_good_at_once(asked, shared, key_of):
    assert visits_of(asked, key_of(shared, "other")) == 2


# Identity tokens


@pytest.mark.parametrize(
    ("key", "algorithm", "kid"), [(RSA, "RS256", "rsa"), (EC, "ES256", "ec")], ids=["RS256", "ES256"]
)
@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"org_id": "other"},
        {"aud": ["someone-else", AUDIENCE]},
        {"role": "viewer"},
        {"role": "editor"},
        {"exp": time.time() + 900.5},
        {"nbf": int(time.time()) - 5},
        {"more": {"deep": ["claims"]}},
    ],
)
def test_a_valid_token_opens_its_organization(asked, key, algorithm, kid, changes):
    good = token(key, algorithm, {"kid": kid}, **changes)
    assert visits_of(asked, good) == visits_of(asked, good) == (2 if "org_id" in changes else 1)


@pytest.mark.parametrize("typ", ["JWT", "jwt", "at+jwt", "AT+JWT", ABSENT])
def test_access_tokens_may_call_themselves_so(asked, typ):
    header = {"alg": "RS256", "kid": "rsa"} | ({} if typ is ABSENT else {"typ": typ})
    assert visits_of(asked, raw_token(json.dumps(header), json.dumps(claims()))) == 1


def test_clocks_may_differ_by_half_a_minute(asked):
    now = int(time.time())
    assert visits_of(asked, token(iat=now - 100, exp=now - 10)) == 1
    assert visits_of(asked, token(iat=now + 20, exp=now + 100, nbf=now + 20)) == 1


def test_a_token_lives_a_day_at_most(asked):
    now = int(time.time())
    assert visits_of(asked, token(iat=now - 10, exp=now - 10 + 86_400)) == 1
    assert visits_of(asked, token(iat=now - 10, exp=now - 10 + 86_401)) is None


GOOD_HEADER = '{"alg":"RS256","kid":"rsa"}'
BAD_CLAIMS = {
    "expired": {"iat": int(time.time()) - 2 * HOUR, "exp": int(time.time()) - HOUR},
    "expired a minute ago": {"iat": int(time.time()) - HOUR, "exp": int(time.time()) - 60},
    "not yet": {"nbf": int(time.time()) + HOUR},
    "issued in the future": {"iat": int(time.time()) + HOUR, "exp": int(time.time()) + 2 * HOUR},
    "exp before iat": {"iat": int(time.time()) + 20, "exp": int(time.time()) + 10},
    "never ending": {"exp": int(time.time()) + 366 * 86_400},
    **{f"no {name}": {name: ABSENT} for name in ("iss", "aud", "sub", "iat", "exp")},
    **{f"null {name}": {name: None} for name in ("iss", "aud", "sub", "iat", "exp")},
    "other issuer": {"iss": "https://login.example"},
    "longer issuer": {"iss": ISSUER + "evil"},
    "part of the issuer": {"iss": "https://"},
    "issuers": {"iss": [ISSUER]},
    "empty issuer": {"iss": ""},
    "other audience": {"aud": "someone-else"},
    "part of the audience": {"aud": "traf"},
    "longer audience": {"aud": "traffic2"},
    "other audiences": {"aud": ["a", "b"]},
    "no audiences": {"aud": []},
    "audience object": {"aud": {AUDIENCE: 1}},
    "numeric sub": {"sub": 7},
    "exp as text": {"exp": str(int(time.time()) + HOUR)},
    "iat as text": {"iat": str(int(time.time()))},
    "nbf as words": {"nbf": "now"},
    "exp huge": {"exp": 10**30},
    "exp huger": {"exp": 10**400},
    "exp negative": {"exp": -1},
    "exp zero": {"exp": 0},
    "exp true": {"exp": True},
    "iat true": {"iat": True},
    "iat zero": {"iat": 0},
    "exp list": {"exp": [int(time.time()) + HOUR]},
    "exp object": {"exp": {}},
    "exp NaN": {"exp": float("nan")},
    "exp infinite": {"exp": float("inf")},
    "iat NaN": {"iat": float("nan")},
    "iat infinite": {"iat": float("-inf")},
    "nbf NaN": {"nbf": float("nan")},
    "no organization": {"org_id": ABSENT},
    "null organization": {"org_id": None},
    "empty organization": {"org_id": ""},
    "seed organization": {"org_id": "_seed"},
    "long organization": {"org_id": "x" * 65},
    "path organization": {"org_id": "../acme"},
    "spaced organization": {"org_id": "acme "},
    "newline organization": {"org_id": "acme\n"},
    "starred organization": {"org_id": "*"},
    "foreign letters": {"org_id": "ácme"},
    "NUL organization": {"org_id": "acme\0"},
    "numeric organization": {"org_id": 7},
    "organizations": {"org_id": ["acme"]},
    "organization object": {"org_id": {"acme": 1}},
    "organization true": {"org_id": True},
    "numeric role": {"role": 7},
    "roles": {"role": ["editor"]},
}


@pytest.mark.parametrize("name", BAD_CLAIMS)
def test_a_token_with_bad_claims_is_refused(asked, refusal, name):
    response = asked.get(
        "/jobs", headers={"Authorization": f"Bearer {raw_token(GOOD_HEADER, json.dumps(claims(**BAD_CLAIMS[name])))}"}
    )
    assert (response.status_code, response.content) == (401, refusal)


def encoded(part):
    return base64.urlsafe_b64encode(part if isinstance(part, bytes) else json.dumps(part).encode()).rstrip(b"=")


def unsigned(algorithm):
    return b".".join((encoded({"alg": algorithm, "kid": "rsa"}), encoded(claims()), b"")).decode()


def signed_with_the_public_key(*form):
    """HMAC with what everybody knows as its secret."""
    signed = b".".join((encoded({"alg": "HS256", "kid": "rsa"}), encoded(claims())))
    digest = hmac.digest(RSA.public_key().public_bytes(*form), signed, "sha256")
    return b".".join((signed, encoded(digest))).decode()


PEM, DER = serialization.Encoding.PEM, serialization.Encoding.DER
SPKI, PKCS1 = serialization.PublicFormat.SubjectPublicKeyInfo, serialization.PublicFormat.PKCS1
BAD_TOKENS = {
    "alg none": lambda: unsigned("none"),
    "alg None": lambda: unsigned("None"),
    "alg empty": lambda: unsigned(""),
    "alg RS256 without signature": lambda: unsigned("RS256"),
    "public key as secret, PEM": lambda: signed_with_the_public_key(PEM, SPKI),
    "public key as secret, PKCS1": lambda: signed_with_the_public_key(PEM, PKCS1),
    "public key as secret, DER": lambda: signed_with_the_public_key(DER, SPKI),
    "another key": lambda: token(STRANGER),
    "another key under no kid": lambda: token(STRANGER, headers={"kid": ABSENT}),
    "the other key's kid": lambda: token(headers={"kid": "ec"}),
    "another kind of key": lambda: token(EC, "ES256", {"kid": "rsa"}),
    "a stronger hash": lambda: token(algorithm="RS512"),
    "another padding": lambda: token(algorithm="PS256"),
    "a key for encryption": lambda: token(STRANGER, headers={"kid": "secret"}),
    "unknown kid": lambda: token(headers={"kid": "nobody"}),
    "no kid among several keys": lambda: token(headers={"kid": ABSENT}),
    "empty kid": lambda: token(headers={"kid": ""}),
    "path kid": lambda: token(headers={"kid": "../../keys.json"}),
    "SQL kid": lambda: token(headers={"kid": "' OR 1=1 --"}),
    "long kid": lambda: token(headers={"kid": "x" * 4_000}),
    "numeric kid": lambda: raw_token('{"alg":"RS256","kid":7}', json.dumps(claims())),
    "list kid": lambda: raw_token('{"alg":"RS256","kid":["rsa"]}', json.dumps(claims())),
    "own key in the header": lambda: token(STRANGER, headers={"jwk": published(STRANGER, "rsa")}),
    "own address in the header": lambda: token(STRANGER, headers={"jku": "http://127.0.0.1:9/keys"}),
    "critical extension": lambda: token(headers={"crit": ["exp"]}),
    "critical unknown extension": lambda: token(headers={"crit": ["traffic"], "traffic": 1}),
    "not encoded": lambda: token(headers={"b64": False, "crit": ["b64"]}),
    **{
        f"typ {typ!r}": lambda typ=typ: raw_token(
            json.dumps({"alg": "RS256", "kid": "rsa", "typ": typ}), json.dumps(claims())
        )
        for typ in ("logout+jwt", "dpop+jwt", "JWE", "", 7, None, ["JWT"])
    },
    "header no object": lambda: raw_token('["RS256"]', json.dumps(claims())),
    "header null": lambda: raw_token("null", json.dumps(claims())),
    "header no JSON": lambda: raw_token("RS256", json.dumps(claims())),
    "header without alg": lambda: raw_token('{"kid":"rsa"}', json.dumps(claims())),
    "header alg a list": lambda: raw_token('{"alg":["RS256"],"kid":"rsa"}', json.dumps(claims())),
    "header alg in lower case": lambda: raw_token('{"alg":"rs256","kid":"rsa"}', json.dumps(claims())),
    "claims no object": lambda: raw_token(GOOD_HEADER, '["acme"]'),
    "claims null": lambda: raw_token(GOOD_HEADER, "null"),
    "claims a number": lambda: raw_token(GOOD_HEADER, "7"),
    "claims empty": lambda: raw_token(GOOD_HEADER, ""),
    "claims no JSON": lambda: raw_token(GOOD_HEADER, "{"),
    "claims no UTF-8": lambda: token().split(".")[0] + "._-_-.x",
    "claims deep": lambda: raw_token(GOOD_HEADER, "[" * 3_000),
    "header deep": lambda: raw_token("[" * 3_000, "{}"),
    "header deep in an object": lambda: raw_token('{"alg":"RS256","kid":' + "[" * 3_000, "{}"),
    "claims huge number": lambda: raw_token(GOOD_HEADER, json.dumps(claims())[:-1] + ',"n":' + "9" * 5_000 + "}"),
    "last exp counts": lambda: raw_token(GOOD_HEADER, json.dumps(claims())[:-1] + ',"exp":1}'),
    "one part": lambda: token().split(".")[0],
    "two parts": lambda: token().rpartition(".")[0],
    "four parts": lambda: token() + ".x",
    "five parts": lambda: token() + ".x.y",
    "dots": lambda: "..",
    "many dots": lambda: "." * 8_000,
    "empty signature": lambda: token().rpartition(".")[0] + ".",
    "cut signature": lambda: token()[:-20],
    "signature of another token": lambda: token().rpartition(".")[0] + "." + token(sub="x").rpartition(".")[2],
    "noise": lambda: "x" * 200,
    "zeros": lambda: "A" * 8_000,
}


@pytest.mark.parametrize("name", BAD_TOKENS)
def test_a_bad_token_is_refused_like_any_other(asked, refusal, name):
    response = asked.get("/jobs", headers={"Authorization": f"Bearer {BAD_TOKENS[name]()}"})
    assert (response.status_code, response.content) == (401, refusal)


def test_no_change_to_a_token_is_overlooked(asked):
    good, chance = token(), random.Random(7)
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    end = len(good) - 2  # the last character of a signature has bits that say nothing
    for _ in range(300):
        place = chance.randrange(end)
        changed = chance.choice([letter for letter in alphabet + "." if letter != good[place]])
        assert visits_of(asked, good[:place] + changed + good[place + 1 :]) is None
        assert visits_of(asked, good[:place] + good[place + 1 :]) is None
    assert visits_of(asked, good) == 1


def test_without_an_identity_provider_only_keys_open(client):
    assert visits_of(client, token()) is None


# What claims say


@pytest.fixture
def gate(lake, settings, tmp_path):
    """Makes the part that turns tokens into callers, over a file of keys."""
    controls = []

    def gate(keys=KEYS, clock=time.monotonic, **changes):
        file = tmp_path / "keys.json"
        file.write_text(keys)
        controls.append(Control(lake))
        return Gate(settings(lake, jwks=file, **IDENTITY | changes), controls[-1], KeySet(str(file), clock))

    yield gate
    for control in controls:
        control.close()


def caller(gate, token):
    """Who the sender of a token is; None when refused."""

    async def ask():
        try:
            return await gate.caller([(b"authorization", b"Bearer " + token.encode())])
        except Unauthorized:
            return None

    return asyncio.run(ask())


@pytest.mark.parametrize(
    ("claim", "role", "may_write"),
    [
        ({}, "viewer", False),
        ({"role": None}, "viewer", False),
        ({"role": ""}, "viewer", False),
        ({"role": "viewer"}, "viewer", False),
        ({"role": "VIEWER"}, "viewer", False),
        ({"role": "editor"}, "editor", True),
        ({"role": "admin"}, "admin", True),
    ],
)
def test_no_role_is_viewer_and_any_other_may_write(gate, claim, role, may_write):
    found = caller(gate(), token(**claim))
    assert (found.organization, found.role, found.may_write) == ("acme", role, may_write)


def test_an_api_key_is_an_editor(gate, lake, key_of):
    found = caller(gate(), key_of(lake, "other"))
    assert (found.organization, found.role, found.may_write) == ("other", "editor", True)


def test_the_claims_of_organization_and_role_have_the_names_that_settings_give(gate):
    other = gate(jwt_organization_claim="https://login.example/tenant", jwt_role_claim="permission")
    found = caller(other, token(**{"https://login.example/tenant": "other", "permission": "admin", "role": "viewer"}))
    assert (found.organization, found.role) == ("other", "admin")
    assert caller(other, token(role="admin")) is None


def test_a_token_without_organization_has_the_one_of_the_setting(gate):
    default = gate(jwt_organization="house")
    assert caller(default, token(org_id=ABSENT)).organization == "house"
    assert caller(default, token()).organization == "acme"


@pytest.mark.parametrize("organization", ["", 0, False, [], {}, "_x", "a b"])
def test_an_organization_that_cannot_be_is_refused_and_not_replaced_by_the_setting(gate, organization):
    assert caller(gate(jwt_organization="house"), token(org_id=organization)) is None


def test_a_token_without_kid_is_meant_for_the_only_key(gate):
    only = gate(key_set(published(RSA, "rsa"), published(STRANGER, "secret", use="enc")))
    assert caller(only, token(headers={"kid": ABSENT})).organization == "acme"
    assert caller(only, token(STRANGER, headers={"kid": ABSENT})) is None
    unnamed = gate(key_set(published(RSA, None)))
    assert caller(unnamed, token(headers={"kid": ABSENT})).organization == "acme"


# Where keys come from


class Clock:
    def __init__(self):
        self.now = 1_000.0

    def __call__(self):
        return self.now


class Provider:
    """An identity provider's address, and what it answers."""

    def __init__(self, address):
        self.address = address
        self.answer = KEYS.encode()
        self.status = 200
        self.asked = 0
        self.raw = None
        self.stop = None


@pytest.fixture
def provider(monkeypatch):
    monkeypatch.setenv("no_proxy", "*")

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            found.asked += 1
            if found.raw is not None:
                self.wfile.write(found.raw)
                return
            self.send_response(found.status)
            self.send_header("Content-Length", str(len(found.answer)))
            self.end_headers()
            self.wfile.write(found.answer)

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    found = Provider(f"http://127.0.0.1:{server.server_port}/keys")
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()

    def stop():
        server.shutdown()
        thread.join()
        server.server_close()

    found.stop = stop
    yield found
    stop()


@pytest.fixture
def remote(lake, settings, provider):
    """A gate over the provider's address, and the clock of its key set."""
    clock, control = Clock(), Control(lake)
    yield Gate(settings(lake, jwks=provider.address, **IDENTITY), control, KeySet(provider.address, clock)), clock
    control.close()


def fresh(**changes):
    """A token that no gate has seen before."""
    return token(jti=str(random.random()), **changes)


def test_keys_are_fetched_once_for_many_tokens(remote, provider):
    gate, _ = remote
    assert all(caller(gate, fresh()) for _ in range(20))
    assert provider.asked == 1


def test_keys_that_were_changed_are_noticed(remote, provider):
    gate, clock = remote
    assert caller(gate, fresh())
    provider.answer = key_set(published(NEXT, "next")).encode()
    clock.now += RETRY_SECONDS + 1
    assert caller(gate, fresh(key=NEXT, headers={"kid": "next"}))  # an unknown kid makes it look
    assert caller(gate, fresh()) is None
    provider.answer = key_set(published(RSA, "next")).encode()
    clock.now += FRESH_SECONDS + 1
    assert caller(gate, fresh(headers={"kid": "next"}))
    assert caller(gate, fresh(key=NEXT, headers={"kid": "next"})) is None


def test_a_token_that_was_good_is_refused_once_its_key_is_gone(remote, provider):
    gate, clock = remote
    good = fresh()
    assert caller(gate, good)
    provider.answer = key_set(published(NEXT, "next")).encode()
    clock.now += FRESH_SECONDS + 1
    assert caller(gate, fresh(key=NEXT, headers={"kid": "next"}))
    assert caller(gate, good) is None


def test_unknown_kids_do_not_make_it_fetch_again_and_again(remote, provider):
    gate, clock = remote
    for number in range(50):
        clock.now += 0.1
        assert caller(gate, fresh(headers={"kid": f"kid-{number}"})) is None
    assert provider.asked == 1
    assert caller(gate, fresh())


BAD_ANSWERS = {
    "HTML": b"<html>Bad gateway</html>",
    "empty": b"",
    "no UTF-8": b"\xff\xfe\xff",
    "null": b"null",
    "a number": b"7",
    "a list": b"[]",
    "no keys": b"{}",
    "an error": b'{"error": "try later"}',
    "an empty set": b'{"keys": []}',
    "keys null": b'{"keys": null}',
    "keys an object": b'{"keys": {"rsa": {}}}',
    "keys of text": b'{"keys": ["rsa"]}',
    "keys without fields": b'{"keys": [{"kty": "RSA"}]}',
    "only keys of other kinds": b'{"keys": [{"kty": "oct", "k": "c2VjcmV0", "kid": "rsa"}]}',
    "too many keys": key_set(*[published(RSA, f"k{number}") for number in range(65)]).encode(),
    "huge": (KEYS[:-1] + " " * 70_000 + "}").encode(),
    "deep": b"[" * 50_000,
}


@pytest.mark.parametrize("name", BAD_ANSWERS)
def test_a_bad_answer_opens_nothing_and_keeps_the_last_good_keys(lake, settings, provider, name):
    clock, control = Clock(), Control(lake)
    gate = Gate(settings(lake, jwks=provider.address, **IDENTITY), control, KeySet(provider.address, clock))
    provider.answer = BAD_ANSWERS[name]
    try:
        assert caller(gate, fresh()) is None
        provider.answer = KEYS.encode()
        clock.now += RETRY_SECONDS + 1
        assert caller(gate, fresh())
        provider.answer = BAD_ANSWERS[name]
        clock.now += FRESH_SECONDS + 1
        assert caller(gate, fresh())
    finally:
        control.close()


@pytest.mark.parametrize("status", [204, 401, 404, 500, 503])
def test_a_failing_provider_keeps_the_last_good_keys(remote, provider, status):
    gate, clock = remote
    assert caller(gate, fresh())
    provider.status, provider.answer = status, b"" if status == 204 else KEYS.encode()
    clock.now += FRESH_SECONDS + 1
    assert caller(gate, fresh())


@pytest.mark.parametrize(
    "raw",
    [b"", b"\x16\x03\x01", b"nonsense\r\n\r\n", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"],
    ids=["nothing", "TLS", "no HTTP", "broken chunks"],
)
def test_a_provider_that_speaks_no_http_keeps_the_last_good_keys(remote, provider, raw):
    gate, clock = remote
    assert caller(gate, fresh())
    provider.raw = raw
    clock.now += FRESH_SECONDS + 1
    assert caller(gate, fresh())


def test_a_provider_that_is_down_locks_nobody_out_for_a_day(remote, provider):
    gate, clock = remote
    assert caller(gate, fresh())
    provider.stop()
    for _ in range(9):
        clock.now += (STALE_SECONDS - 60) / 9
        assert caller(gate, fresh())
        assert caller(gate, fresh(headers={"kid": "nobody"})) is None
    clock.now += 120
    assert caller(gate, fresh()) is None


def test_a_file_of_keys_is_read_again(gate, tmp_path):
    clock = Clock()
    keys = gate(clock=clock)
    assert caller(keys, fresh())
    (tmp_path / "keys.json").unlink()
    clock.now += STALE_SECONDS + 1
    assert caller(keys, fresh()) is None
    (tmp_path / "keys.json").write_text(KEYS)
    clock.now += RETRY_SECONDS + 1
    assert caller(keys, fresh())


@pytest.mark.parametrize(
    "source",
    [
        "http://login.example/keys", "ftp://login.example/keys", "file:///keys.json", "no-such-file.json",
        "http://localhost.example/keys", "http://127.0.0.1.example/keys", "http://localhost@login.example/keys",
    ],
)  # fmt: skip
def test_keys_come_from_a_file_or_safely(source):
    with pytest.raises(BadInput, match="TRAFFIC_JWKS"):
        KeySet(source)
