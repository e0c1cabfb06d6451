"""Keys for identity tokens: from a file, or from a provider that is slow, down or hostile, or that rotates them."""

import asyncio
import time
from urllib.parse import parse_qs, urlsplit

import httpx2
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed448, rsa

from data import BadInput
from service.access import jwks
from service.access.api_keys import ApiKeys
from service.access.authentication import Authenticator
from service.access.jwks import (
    MAX_PAUSE_SECONDS,
    MAX_STALE_SECONDS,
    MIN_REFRESH_INTERVAL_SECONDS,
    REFRESH_SECONDS,
    JwksClient,
)
from service.core.control_database import ControlDatabase
from tests.support.clock import Clock
from tests.support.receivers import answer
from tests.support.tables import examples_at_once, tables
from tests.support.tokens import (
    EC,
    ED,
    HOUR,
    IDENTITY,
    KEYS,
    NEXT,
    RSA,
    STRANGER,
    encoded,
    entered,
    fresh,
    key_set,
    published,
    token,
    token_of,
)  # fmt: skip
from tests.support.visits import land, visit

NEW_KEYS = key_set(published(NEXT, "next"))
GOOD, NEWER, DOWN = [answer(KEYS)], [answer(NEW_KEYS)], [answer(status=503)]


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def provider(receiver, clock):
    """An identity provider on a port of this machine."""
    return receiver(GOOD, clock=clock)


@pytest.fixture
def gates(lake, settings, clock):
    """Make authenticators from sources of keys, each with the client that reads its keys."""
    control = ApiKeys(ControlDatabase(lake))

    def gates(source, clock=clock):
        keys = JwksClient(str(source), clock)
        return Authenticator(settings(lake, jwks=source, **IDENTITY), control, keys, clock), keys

    yield gates
    control.database.close()


def most_in_a_minute(provider):
    """Return the maximum number of fetches of a provider's keys in a minute."""
    times = [request.at for request in provider.requests]
    return max(sum(at <= other < at + 60 for other in times) for at in times)


async def settled(keys):
    """Wait until no read is in progress."""
    while not keys._refresh.done():
        await asyncio.sleep(0.001)


def unknown(number):
    """Return a token with an unknown kid, which no key of any set signed."""
    return b".".join((encoded({"alg": "RS256", "kid": f"kid-{number}"}), b"e30", b"AAAA")).decode()


# Frequency of fetches, and waiting


async def test_first_requests_share_one_fetch_even_if_clients_leave(gates, provider):
    gate, _ = gates(provider.url)
    provider.scripts = [["wait", *GOOD]]
    asking = [asyncio.create_task(entered(gate, fresh())) for _ in range(50)]
    while not provider.requests:
        await asyncio.sleep(0.001)
    for leaving in asking[:25]:
        leaving.cancel()
    provider.released.set()
    found = await asyncio.gather(*asking, return_exceptions=True)
    assert all(isinstance(one, asyncio.CancelledError) for one in found[:25])
    assert all(one.organization == "acme" for one in found[25:])
    assert len(provider.requests) == 1


async def test_cached_keys_are_used_while_new_keys_are_fetched(gates, provider, clock):
    gate, keys = gates(provider.url)
    good = fresh()
    assert await entered(gate, good)
    clock.now += REFRESH_SECONDS - 1
    assert await entered(gate, fresh())
    assert len(provider.requests) == 1
    provider.scripts = [["wait", *NEWER]]
    clock.now += 1
    for _ in range(50):  # while the provider delays its response
        assert await entered(gate, fresh())
        assert not keys._refresh.done()
    provider.released.set()
    await settled(keys)
    assert len(provider.requests) == 2
    assert await entered(gate, fresh(key=NEXT, headers={"kid": "next"}))
    assert [await entered(gate, old) for old in (good, fresh())] == [None, None]


async def test_keys_are_refreshed_without_requests(gates, provider, monkeypatch):
    monkeypatch.setattr(jwks, "REFRESH_SECONDS", -0.9)  # and a second later
    monkeypatch.setattr(jwks, "MIN_REFRESH_INTERVAL_SECONDS", 0.05)
    gate, _ = gates(provider.url, time.monotonic)
    assert await entered(gate, fresh())
    async with asyncio.timeout(60):
        while len(provider.requests) < 2:
            await asyncio.sleep(0.01)


async def test_a_slow_read_does_not_stop_the_refresh_of_idle_keys(gates, provider, monkeypatch):
    monkeypatch.setattr(jwks, "REFRESH_SECONDS", -0.9)
    monkeypatch.setattr(jwks, "MIN_REFRESH_INTERVAL_SECONDS", 0.05)
    gate, keys = gates(provider.url, time.monotonic)
    provider.scripts = [["wait", *GOOD], GOOD]
    entering = asyncio.create_task(entered(gate, fresh()))
    await asyncio.sleep(0.5)  # past the time when the keys would be old, counted from the beginning of the read
    provider.released.set()
    assert await entering
    async with asyncio.timeout(60):
        while len(provider.requests) < 2:
            await asyncio.sleep(0.01)
    await settled(keys)


async def test_new_keys_are_seen_within_35_seconds_even_under_load(gates, receiver):
    for offset in (0, 5, 29, 31, 59):
        clock = Clock()
        provider = receiver(GOOD, clock=clock)
        gate, keys = gates(provider.url, clock)
        assert await entered(gate, fresh())
        for second in range(200):
            await entered(gate, unknown(second))
            if second == offset:
                provider.scripts = [NEWER]
            if second > offset and await entered(gate, token(NEXT, headers={"kid": "next"})):
                break
            await settled(keys)
            clock.now += 1
        assert second - offset <= 35
        assert most_in_a_minute(provider) <= 2


def of_ec():
    """Return a token that is signed by the key `ec` and that no authenticator has cached."""
    return fresh(key=EC, algorithm="ES256", headers={"kid": "ec"})


async def test_two_thousand_unknown_kids_do_not_flood_the_provider(gates, provider, clock):
    gate, keys = gates(provider.url)
    for number in range(2_000):
        clock.now += 0.06  # two minutes in all
        assert await entered(gate, unknown(number)) is None
        assert number % 20 or await entered(gate, of_ec())
    await settled(keys)
    assert len(provider.requests) <= 5
    assert most_in_a_minute(provider) <= 2


async def test_pauses_grow_until_a_failing_provider_responds_again(gates, provider, clock):
    gate, _ = gates(provider.url)
    provider.scripts, began = [DOWN], clock.now
    for second in range(301):
        assert await entered(gate, token_of("ec")) is None
        assert await entered(gate, unknown(second)) is None
        clock.now += 1
    assert [request.at - began for request in provider.requests] == [0, 5, 60, 80, 120, 180, 240, 300]
    provider.scripts = [GOOD]
    clock.now += MAX_PAUSE_SECONDS - 1
    assert await entered(gate, fresh())
    clock.now += MIN_REFRESH_INTERVAL_SECONDS
    assert await entered(gate, unknown(0)) is None
    assert len(provider.requests) == 10
    assert most_in_a_minute(provider) <= 2


# Failures


async def test_tokens_stay_valid_for_a_day_while_the_provider_is_down(gates, receiver, provider, clock):
    gate, keys = gates(provider.url)
    asked, begun = 0, clock.now
    while (age := clock.now - begun) <= MAX_STALE_SECONDS:
        if age == 12 * HOUR:
            provider = receiver(DOWN, port=provider.port, clock=clock)
        asked += 1
        assert await entered(gate, of_ec()), age
        assert await entered(gate, unknown(asked)) is None
        await settled(keys)
        if age == 0:
            provider.close()
        clock.now += 240
    assert asked >= 360
    assert await entered(gate, fresh()) is None
    assert most_in_a_minute(provider) <= 2
    provider.scripts = [GOOD]
    clock.now += MAX_PAUSE_SECONDS
    assert await entered(gate, fresh())


TROUBLES = [
    *([answer(body)] for body in (
        *tables(__file__)["NO_KEYS"], b"\xff\xfe\xff", KEYS[:-30], KEYS[:-1] + " " * 70_000 + "}", b"[" * 50_000,
        key_set(*[published(RSA, f"k{number}") for number in range(65)]),
    )),
    [answer(KEYS, 500)], [answer("", 302, "Location: /elsewhere")], ["HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{}"],
]  # fmt: skip


async def test_no_bad_response_is_accepted_or_replaces_good_keys(gates, provider, clock, caplog):
    for trouble in TROUBLES:
        gate, keys = gates(provider.url)
        provider.scripts = [trouble, GOOD, trouble]
        assert await entered(gate, fresh()) is None
        clock.now += 5
        assert await entered(gate, fresh())
        clock.now += REFRESH_SECONDS
        assert await entered(gate, fresh())
        await settled(keys)
        assert await entered(gate, fresh())
        assert keys._failures == 1
        clock.now += 60
    assert [request.first for request in provider.requests] == ["GET /hook HTTP/1.1"] * 3 * len(TROUBLES)
    told = [record.getMessage() for record in caplog.records]
    assert len(told) == 2 * len(TROUBLES)
    assert all(text.startswith("The identity provider's keys cannot be read: ") for text in told)


def reasons(caplog):
    """Return the logged reasons why the keys could not be read."""
    return [record.getMessage().partition(": ")[2] for record in caplog.records]


async def test_a_failure_is_logged_once_and_again_after_recovery(gates, provider, clock, caplog):
    gate, _ = gates(provider.url)
    for status in (503, 503, 404, 200, 404):
        provider.scripts = [[answer(KEYS, status)]]
        clock.now += REFRESH_SECONDS
        await entered(gate, unknown(0))
    assert reasons(caplog) == ["HTTP status 503", "HTTP status 404", "HTTP status 404"]


async def test_a_slow_provider_is_abandoned_after_three_seconds(gates, receiver, caplog):
    gate, keys = gates(receiver(["hang"]).url, time.monotonic)
    begun = time.monotonic()
    assert await entered(gate, fresh()) is None
    await settled(keys)
    assert time.monotonic() - begun < 30
    assert reasons(caplog) == ["no complete answer within 3 s"]


def test_shutdown_does_not_wait_for_the_identity_provider(gates, receiver):
    provider = receiver(["wait"])
    gate, keys = gates(provider.url, time.monotonic)

    async def leave():
        asking = asyncio.create_task(entered(gate, fresh()))
        while not provider.requests:
            await asyncio.sleep(0.001)
        asking.cancel()

    asyncio.run(leave())
    assert not keys._refresh.done()
    provider.released.set()
    asyncio.run(settled(keys))


# Accepted keys and sources


async def test_only_strong_public_signing_keys_of_a_key_set_are_used(gates, tmp_path):
    weak = rsa.generate_private_key(public_exponent=65_537, key_size=1_024)
    wide = ec.generate_private_key(ec.SECP384R1())
    private = {**published(STRANGER, "private"), "d": "AQAB"}
    odd = [
        published(STRANGER, "enc", use="enc"), published(STRANGER, "ps", alg="PS256"),
        published(STRANGER, "hs", alg="HS256"),
        published(STRANGER, "none", alg="none"), published(STRANGER, "ops", key_ops=["encrypt"]), private,
        published(STRANGER, "list", alg=["RS256"]), published(STRANGER, "crv", crv="P-256"), published(weak, "weak"),
        published(wide, "wide"), published(wide, "narrow", alg="ES256"), published(wide, "lie", crv="P-256"),
        published(ed448.Ed448PrivateKey.generate(), "ed448"), published(ED, "x25519", crv="X25519"),
        published(ED, "short", x="AAAA"), published(EC, "off", x="AQAB"), published(EC, "rsa-alg", alg="RS256"),
        published(RSA, 7), published(RSA, "k" * 129), published(RSA, "two\nlines"), published(RSA, "schlüssel"),
        published(RSA, ["list"]),
        {"kty": "oct", "k": "c2VjcmV0", "kid": "oct"}, {"kty": ["RSA"]}, {"kid": "bare"}, {}, [], None, 7, "rsa",
    ]  # fmt: skip
    good = [
        published(RSA, "rsa", alg="RS256", use="sig", key_ops=["verify"], x5c=["MIIB"], x5u="http://127.0.0.1:9/"),
        published(EC, "ec", alg="ES256"), published(ED, "k" * 128, alg="EdDSA"),
    ]  # fmt: skip
    file = tmp_path / "keys.json"
    file.write_text(key_set(*odd, *good, *odd))
    gate, keys = gates(file)
    assert await entered(gate, token())
    assert await entered(gate, token_of("ec"))
    assert await entered(gate, token(ED, "EdDSA", {"kid": "k" * 128}))
    assert sorted(keys._keys) == ["ec", "k" * 128, "rsa"]
    for key in odd:
        if isinstance(key, dict) and isinstance(key.get("kid"), str):
            assert await entered(gate, token(STRANGER, headers={"kid": key["kid"]})) is None


async def test_keys_outlive_their_deleted_file_and_a_new_file_is_read(gates, tmp_path, clock):
    file = tmp_path / "keys.json"
    file.write_text(KEYS)
    gate, keys = gates(file)
    assert await entered(gate, fresh())
    file.unlink()
    clock.now += MAX_STALE_SECONDS
    assert await entered(gate, fresh())
    clock.now += 1
    assert await entered(gate, fresh()) is None
    file.write_text(NEW_KEYS)
    clock.now += 60
    assert await entered(gate, fresh(key=NEXT, headers={"kid": "next"}))
    assert keys.generation == 2


@examples_at_once("source")
def test_insecure_key_addresses_and_missing_files_are_rejected(source):
    with pytest.raises(BadInput, match="TRAFFIC_JWKS"):
        JwksClient(source)


# A third-party provider

OVERVIEW = "/analytics/traffic-overview?start_date=2020-01-01&end_date=2099-01-01"


def logged_in(client, discovered, person, audience):
    """Log a person in; return the provider's tokens."""
    callback = "http://localhost/callback"
    query = {"client_id": audience, "redirect_uri": callback, "response_type": "code", "scope": "openid", "state": "x"}
    sent_back = client.post(discovered["authorization_endpoint"], params=query, data={"sub": person})
    code = parse_qs(urlsplit(sent_back.headers["location"]).query)["code"][0]
    form = {"grant_type": "authorization_code", "code": code, "redirect_uri": callback}
    return client.post(discovered["token_endpoint"], data=form, auth=(audience, "secret")).json()


def test_the_server_accepts_users_of_a_real_provider(identity_provider, lake, serving):
    land(lake, "acme", [visit()])
    land(lake, "other", [visit(), visit()])
    with httpx2.Client(trust_env=False, verify=False, timeout=60) as client:
        discovered = client.get(f"{identity_provider}/.well-known/openid-configuration").json()
        given = {name: logged_in(client, discovered, name, "traffic") for name in ("alice", "bob", "eve")}
        elsewhere = logged_in(client, discovered, "alice", "another-service")
        identity = {"jwt_issuer": discovered["issuer"], "jwt_audience": "traffic"}
        with serving(lake, jwks=discovered["jwks_uri"], **identity) as server:

            def asked(token, method="GET", path=OVERVIEW):
                return client.request(method, server.address + path, headers={"Authorization": f"Bearer {token}"})

            seen = {name: asked(tokens["id_token"]) for name, tokens in given.items()}
            assert (seen["alice"].json()["total_visits"], seen["bob"].json()["total_visits"]) == (1, 2)
            assert seen["eve"].status_code == 401  # without an organization
            assert asked(elsewhere["id_token"]).status_code == 401
            assert asked(given["alice"]["access_token"]).status_code == 401  # this provider's access token is not a JWT
            assert asked(given["alice"]["id_token"], "POST", "/visits").status_code == 202
            assert asked(given["bob"]["id_token"], "POST", "/visits").status_code == 403
