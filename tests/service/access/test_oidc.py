"""Signing in at the identity provider, and attempts to bypass the sign-in.

Normal behaviour is tested with a real provider, and behaviour that a real provider never shows with a fake provider.
"""

import asyncio
import base64
import hashlib
import re
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from datetime import timedelta
from functools import partial
from urllib.parse import parse_qs, parse_qsl, quote, urlencode, urlsplit

import httpx2
import pytest

from data import BadInput
from service.access import oidc
from service.access.oidc import PendingSignIn
from service.app.application import create_app
from service.core.http.errors import ProviderUnavailable
from tests.conftest import NOW
from tests.support.control import dump_of
from tests.support.page_reading import Browser, read
from tests.support.provider import settings_of
from tests.support.receivers import Receiver, answer
from tests.support.tables import examples
from tests.support.tokens import ABSENT, KEYS, STRANGER, claims, encoded, token

PUBLIC = {"public_url": "http://testserver"}
# Requests to the real provider, each from a new browser; certificates, only needed for https, take 0.05 s to load
get, post, put = (partial(method, verify=False) for method in (httpx2.get, httpx2.post, httpx2.put))


class Provider(Receiver):
    """A provider on this machine with scripted responses."""

    def __init__(self):
        super().__init__()
        self.issuer = f"http://localhost:{self.port}"
        self.discovery = {
            "issuer": self.issuer,
            "authorization_endpoint": f"{self.issuer}/authorize?tenant=one",
            "token_endpoint": f"{self.issuer}/token",
        }
        self.answer = lambda: {"id_token": self.token()}
        self.status, self.nonce, self.is_silent = 200, "", False

    def token(self, **changes):
        """Return a valid ID token with the given changes."""
        return token(**{"iss": self.issuer, "aud": "dashboard", "nonce": self.nonce, **changes})

    def script_of(self, request):
        if self.is_silent:
            return ["hang"]
        if request.first.startswith("POST"):
            return [answer(self.answer(), self.status)]
        return [answer(KEYS if "/keys" in request.first else self.discovery)]

    @property
    def forms(self):
        """The forms sent to the token endpoint."""
        posts = (request for request in self.requests if request.first == "POST /token HTTP/1.1")
        return [dict(parse_qsl(request.body.decode())) for request in posts]


@pytest.fixture
def provider():
    with closing(Provider()) as provider:
        yield provider


@pytest.fixture
def at(shared_lake, browsing, provider):
    """Open a browser at a server whose users sign in at `provider`."""

    @contextmanager
    def at(**changes):
        known = settings_of(provider.issuer) | {"jwks": f"{provider.issuer}/keys"} | PUBLIC | changes
        with browsing(shared_lake, "", **known) as browser:
            yield browser

    return at


@pytest.fixture(scope="module")
def real(shared_lake, opened, identity_provider):
    """The application for this file's tests, whose users sign in at the real provider."""
    with opened(shared_lake, "", **settings_of(identity_provider), **PUBLIC) as client:
        yield client


@pytest.fixture
def browser(real):
    """A browser that is not signed in."""
    real.cookies.clear()
    return Browser(real)


def begun(browser, provider=None, query=""):
    """Begin a sign-in; return the parameters sent to the provider."""
    response = browser.get(f"oidc/start{query}")
    assert response.status_code == 303, response.text
    found = dict(parse_qsl(urlsplit(response.headers["location"]).query))
    if provider:
        provider.nonce = found["nonce"]
    return found


def approved(address, person, **changes):
    """Approve a sign-in at the real provider; return the path to which the provider redirects the person's browser."""
    parts = urlsplit(address)
    query = {name: value for name, value in (dict(parse_qsl(parts.query)) | changes).items() if value is not None}
    response = post(f"{parts.scheme}://{parts.netloc}{parts.path}", params=query, data={"sub": person})
    back = urlsplit(response.headers["location"])
    assert f"{back.scheme}://{back.netloc}{back.path}" == "http://testserver/app/oidc/callback"
    return f"oidc/callback?{back.query}"


def signed_in(browser, person, query="", **changes):
    """Sign in at the real provider; return the server's response when the browser comes back."""
    start = browser.get(f"oidc/start{query}")
    assert start.status_code == 303, start.text
    return browser.get(approved(start.headers["location"], person, **changes))


def returned(browser, asked, **changes):
    """Come back from the provider with a code and the state, unless changed; return the server's response."""
    query = {"code": "a-code", "state": asked["state"]} | changes
    return browser.get(f"oidc/callback?{urlencode({k: v for k, v in query.items() if v is not None})}")


def is_refused(response, status=403):
    """Return whether a response is a page that has this status and sets no cookie."""
    assert response.headers["content-type"].startswith("text/html")
    return (response.status_code, "set-cookie" in response.headers) == (status, False)


def asks_for_patience(response):
    """Return whether a response is a page that sets no cookie and tells the browser when to try again."""
    return is_refused(response, 503) and response.headers["retry-after"] == "5"


# With a real provider


def test_a_user_signs_in_to_their_organization_with_their_role(browser, shared_lake):
    form = browser.read("sign-in?next=%2Fapp%2Flinks%3Frange%3D7d")
    (link,) = [one for one in form.all("a") if one.text.startswith("Sign in with localhost:")]
    start = browser.get(link.attributes["href"])
    asked = parse_qs(urlsplit(start.headers["location"]).query)
    assert (asked["scope"], asked["code_challenge_method"]) == (["openid profile"], ["S256"])
    assert "prompt" not in asked
    response = browser.get(approved(start.headers["location"], "alice"))
    assert (response.status_code, response.headers["location"]) == (303, "/app/links?range=7d")
    sessions = browser.read("settings/sessions")
    assert "identity provider, alice" in sessions.text
    assert re.search(r"signed in as editor until [^.]*20:00", sessions.text)  # in eight hours
    assert browser.post("settings/api-keys", name="made by alice").status_code == 200
    row = browser.read("settings/api-keys").row("made by alice")
    assert "alice" in row.text.replace("made by alice", "")


def test_a_user_with_the_viewer_role_can_read_but_not_write(browser):
    assert signed_in(browser, "vera").status_code == 303
    assert browser.get("").status_code == 200
    assert browser.read("settings/api-keys").all("form", action="/app/settings/api-keys") == []
    assert browser.post("settings/api-keys", name="x").status_code == 403


def test_a_user_without_an_organization_is_not_signed_in(browser):
    response = signed_in(browser, "eve")
    assert is_refused(response)
    assert "organization" in read(response.text).text


def test_a_user_who_declines_is_not_signed_in(browser):
    assert is_refused(browser.get(f"oidc/callback?error=access_denied&state={begun(browser)['state']}"))


def test_an_id_token_for_another_sign_in_or_client_is_rejected(browser):
    for changes in ({"nonce": "of-another"}, {"nonce": None}, {"client_id": "another-service"}):
        assert is_refused(signed_in(browser, "alice", **changes))


def test_a_sign_in_and_its_code_work_only_once(browser):
    """The provider answers 400 to a code that was already used, even if the sign-in is otherwise valid."""
    back = approved(browser.get("oidc/start").headers["location"], "alice")
    assert browser.get(back).status_code == 303
    assert is_refused(browser.get(back))
    back = approved(browser.get("oidc/start").headers["location"], "alice")
    code = parse_qs(urlsplit(back).query)["code"][0]
    assert is_refused(returned(browser, begun(browser), code=code))  # its nonce is wrong, and the code is now used up
    response = returned(browser, begun(browser), code=code)
    assert is_refused(response)
    assert "refused this sign-in" in read(response.text).text


def test_a_sign_in_begun_by_another_browser_is_rejected(browser):
    """The sign-in fails if an attacker makes a victim's browser complete a sign-in that the attacker began."""
    back = approved(browser.get("oidc/start").headers["location"], "alice")
    browser.client.cookies.clear()
    assert is_refused(browser.get(back))
    browser.get("oidc/start")  # a browser that has begun another sign-in
    assert is_refused(browser.get(back))


def test_two_tabs_can_sign_in_at_the_same_time(browser):
    first, second = (browser.get("oidc/start").headers["location"] for _ in range(2))
    assert browser.get(approved(second, "alice")).status_code == 303
    assert browser.get(approved(first, "alice")).status_code == 303
    assert browser.get("").status_code == 200


def test_a_planted_cookie_never_becomes_a_sign_in_secret(browser):
    planted = "p" * 43
    first = begun(browser)["state"]
    (name,) = browser.client.cookies
    browser.client.cookies.clear()
    for cookie in ("traffic-oidc", name):
        browser.client.cookies.set(cookie, planted)
    asked = begun(browser)
    assert asked["state"] != first
    assert asked["nonce"] != PendingSignIn(asked["state"], planted).nonce
    assert list(browser.client.cookies.values()).count(planted) == 2  # neither was overwritten or used for this sign-in


def test_cookies_of_finished_sign_ins_are_deleted(browser):
    signed_in(browser, "alice")
    assert [*browser.client.cookies] == ["traffic"]


def test_a_browser_has_at_most_eight_pending_sign_ins(browser):
    starts = [browser.get("oidc/start").headers["location"] for _ in range(9)]
    assert len(browser.client.cookies) == 8
    assert is_refused(browser.get(approved(starts[0], "alice")))
    for start in (starts[8], starts[1]):
        assert browser.get(approved(start, "alice")).status_code == 303


def test_signing_out_offers_to_sign_out_of_the_provider(browser, identity_provider):
    signed_in(browser, "alice")
    response = browser.post("sign-out")
    assert (response.status_code, response.headers["location"]) == (303, "/app/sign-in?signed-out=here")
    assert "traffic" not in browser.client.cookies
    assert "Sign out of" not in browser.get("sign-in").text
    (link,) = [one for one in browser.read("sign-in?signed-out=here").all("a") if one.text.startswith("Sign out of")]
    address = urlsplit(link.attributes["href"])
    assert f"{address.scheme}://{address.netloc}" == identity_provider
    assert dict(parse_qsl(address.query)) == {
        "client_id": "dashboard",
        "post_logout_redirect_uri": "http://testserver/app/sign-in",
    }
    assert get(link.attributes["href"]).status_code == 200


def test_only_hashes_of_states_and_cookies_are_stored(browser, shared_lake):
    asked, dump = begun(browser), dump_of(shared_lake)
    assert "sign_ins" in dump
    secrets = [asked["state"], asked["nonce"], asked["code_challenge"], *dict(browser.client.cookies).values()]
    assert len(secrets) == 4
    assert [secret for secret in secrets if secret in dump] == []


# The end of sessions


@pytest.fixture
def timed(lake, browsing, identity_provider):
    """A browser at a server whose clock can be moved by a test."""
    now = [NOW]
    known = settings_of(identity_provider) | PUBLIC
    with browsing(lake, "", clock=lambda: now[0], session_hours=2, **known) as browser:
        browser.lake = lake

        def moved(**how):
            now[0] += timedelta(**how)
            time_out(browser.client)

        browser.moved = moved
        yield browser


def time_out(client):
    """Clear the sessions that the server caches for two seconds."""
    client.app._app._pages.context.sessions._cached.clear()


def test_an_expired_session_leads_to_the_sign_in_page_and_back(timed):
    signed_in(timed, "alice")
    before = timed.client.cookies["traffic"]
    timed.moved(hours=1, minutes=59)
    assert timed.get("").status_code == 200
    timed.moved(minutes=1)
    to_sign_in = timed.get("links?range=7d").headers["location"]
    assert to_sign_in == f"/app/sign-in?next={quote('/app/links?range=7d', safe='')}"
    (link,) = [one for one in timed.read(to_sign_in).all("a") if one.text.startswith("Sign in with")]
    start = timed.get(link["href"]).headers["location"]
    assert timed.get(approved(start, "alice")).headers["location"] == "/app/links?range=7d"
    assert timed.client.cookies["traffic"] != before
    assert timed.get("").status_code == 200


def test_a_removed_user_cannot_sign_in_again(timed, identity_provider):
    leaver = f"{identity_provider}/users/leaver"
    put(leaver, json={"org_id": "acme", "role": "editor"})
    back = approved(timed.get("oidc/start").headers["location"], "leaver")
    put(leaver, json={})
    assert is_refused(timed.get(back))
    put(leaver, json={"org_id": "acme", "role": "editor"})
    assert signed_in(timed, "leaver").status_code == 303
    put(leaver, json={})
    timed.moved(hours=2)
    assert timed.get("").headers["location"] == "/app/sign-in"
    assert is_refused(signed_in(timed, "leaver"))
    assert timed.get("").status_code == 303


def test_a_sign_in_takes_at_most_ten_minutes(timed):
    late = approved(timed.get("oidc/start").headers["location"], "alice")
    timed.moved(minutes=10)
    assert timed.get(late).status_code == 303
    late = approved(timed.get("oidc/start").headers["location"], "alice")
    timed.moved(minutes=10, seconds=1)
    assert is_refused(timed.get(late))


# Behaviour that no proper provider shows


def test_a_code_is_exchanged_with_its_verifier_and_the_secret(at, provider):
    with at(oidc_client_secret="s3cret/:%") as browser:
        asked = begun(browser, provider)
        assert asked["tenant"] == "one"
        assert returned(browser, asked).status_code == 303
    (form,) = provider.forms
    (headers,) = (request.headers for request in provider.requests if request.body)
    assert headers["content-type"] == "application/x-www-form-urlencoded"
    digest = hashlib.sha256(form.pop("code_verifier").encode()).digest()
    assert base64.urlsafe_b64encode(digest).rstrip(b"=").decode() == asked["code_challenge"]
    assert form == {"grant_type": "authorization_code", "code": "a-code", "redirect_uri": asked["redirect_uri"]}
    assert asked["redirect_uri"] == "http://testserver/app/oidc/callback"
    assert headers["authorization"] == "Basic " + base64.b64encode(b"dashboard:s3cret%2F%3A%25").decode()


@examples("secret", "methods", "fields")
def test_a_client_authenticates_as_the_provider_requires(at, provider, secret, methods, fields):
    if methods:
        provider.discovery["token_endpoint_auth_methods_supported"] = methods
    with at(oidc_client_secret=secret) as browser:
        assert returned(browser, begun(browser, provider)).status_code == 303
    (form,) = provider.forms
    assert {name: form[name] for name in form if name.startswith("client_")} == fields
    assert any("authorization" in request.headers for request in provider.requests) != bool(fields)


WRONG_CLAIMS = [
    {"nonce": "of-another"}, {"nonce": ABSENT}, {"nonce": ["x"]},
    {"iss": "https://evil.example"}, {"iss": ABSENT},
    {"aud": "api"}, {"aud": ["api"]}, {"aud": ABSENT}, {"aud": []},
    {"aud": ["dashboard", "api"]}, {"aud": ["dashboard", "api"], "azp": "api"}, {"azp": "api"}, {"azp": 7},
    {"exp": 1}, {"exp": ABSENT}, {"iat": 99_999_999_999}, {"sub": ABSENT}, {"sub": ""},
    {"org_id": ABSENT}, {"org_id": "../acme"},
    {"key": STRANGER}, {"headers": {"kid": "unknown"}}, {"headers": {"typ": "logout+jwt"}},
]  # fmt: skip


def test_an_invalid_id_token_is_rejected(at, provider):
    with at() as browser:
        for changes in WRONG_CLAIMS:
            provider.answer = lambda changes=changes: {"id_token": provider.token(**changes)}
            assert is_refused(returned(browser, begun(browser, provider))), changes
        assert browser.get("").status_code == 303
    assert len(provider.forms) == len(WRONG_CLAIMS)


@pytest.mark.parametrize("algorithm", ["none", "HS256"])
def test_an_unsigned_id_token_is_rejected(at, provider, algorithm):
    with at() as browser:
        asked = begun(browser, provider)
        body = claims(iss=provider.issuer, aud="dashboard", nonce=provider.nonce)
        unsigned = b".".join((encoded({"alg": algorithm, "kid": "rsa"}), encoded(body), b""))
        provider.answer = lambda: {"id_token": unsigned.decode()}
        assert is_refused(returned(browser, asked))
        assert browser.get("").status_code == 303
    assert len(provider.forms) == 1


@pytest.mark.parametrize("changes", [{}, {"aud": ["dashboard"]}, {"aud": ["api", "dashboard"], "azp": "dashboard"}])
def test_a_valid_id_token_signs_in(at, provider, changes):
    provider.answer = lambda: {"id_token": provider.token(**changes)}
    with at() as browser:
        assert returned(browser, begun(browser, provider)).status_code == 303
        assert browser.get("").status_code == 200


def test_an_id_token_for_the_dashboard_does_not_open_the_api(at, provider):
    with at() as browser:
        returned(browser, begun(browser, provider))
        bearer = {"Authorization": f"Bearer {provider.token()}"}
        assert browser.get("/analytics/devices", headers=bearer).status_code == 401


def test_a_missing_issuer_is_rejected_if_its_use_is_announced(at, provider):
    """RFC 9207: a wrong issuer is always rejected, a missing one only if the provider announces that it sends one."""
    for is_announced in (False, True):
        provider.discovery["authorization_response_iss_parameter_supported"] = is_announced
        with at() as browser:
            for issuer in ("https://evil.example", "", f"{provider.issuer}/"):
                assert is_refused(returned(browser, begun(browser, provider), iss=issuer))
                assert is_refused(returned(browser, begun(browser), iss=issuer, error="login_required"))
            assert provider.forms == []
            assert returned(browser, begun(browser, provider)).status_code == (403 if is_announced else 303)
            assert returned(browser, begun(browser, provider), iss=provider.issuer).status_code == 303
        provider.requests.clear()


def test_a_callback_without_its_state_or_code_is_rejected(at, provider):
    targets = ("https://evil.example/", "//evil.example/app/", "/\\evil.example", "/app//evil.example", "/app/../x")
    with at() as browser:
        for changes in ({"state": "x" * 43}, {"state": None}, {"state": ""}, {"code": None}):
            assert is_refused(returned(browser, begun(browser, provider), **changes))
        assert provider.forms == []
        for target in (*targets, "/app/\r\nSet-Cookie: a=b", "javascript:alert(1)"):
            asked = begun(browser, provider, f"?next={quote(target, safe='')}")
            assert returned(browser, asked, next=target).headers["location"] == "/app/"


def test_a_failing_token_endpoint_gives_503(at, provider):
    answers = [
        (401, {"error": "invalid_client"}), (500, {}), (302, {}), (200, b"<html>"), (200, []), (200, {}),
        (200, {"id_token": 7}), (200, b"[" * 50_000), (200, b" " * 70_000),
    ]  # fmt: skip
    with at() as browser:
        for status, found in answers:
            provider.status, provider.answer = status, lambda found=found: found
            assert asks_for_patience(returned(browser, begun(browser, provider))), found


@examples("changes")
def test_an_unsafe_discovery_document_is_not_used(at, provider, changes):
    provider.discovery |= changes
    with at() as browser:
        assert asks_for_patience(browser.get("oidc/start"))
        assert browser.get("sign-in").status_code == 200


def test_an_invalid_discovery_document_is_retried_in_5_seconds(lake, settings, provider):
    now = [0.0]
    client = oidc.OidcClient(settings(lake, **settings_of(provider.issuer), **PUBLIC), None, lambda: now[0])
    sign_in = oidc.PendingSignIn.begin()
    provider.discovery["issuer"] = "https://evil.example"
    for seconds, asked in ((0, 1), (4.9, 1), (5, 2), (9.9, 2)):
        now[0] = seconds
        with pytest.raises(ProviderUnavailable):
            asyncio.run(client.authorization_url(sign_in))
        assert len(provider.requests) == asked
    provider.discovery["issuer"] = provider.issuer
    now[0] = 10
    assert asyncio.run(client.authorization_url(sign_in)).startswith(f"{provider.issuer}/authorize?")


def test_an_unreachable_provider_gives_503(at, provider, caplog):
    with at() as browser:
        asked = begun(browser, provider)
        provider.close()
        assert asks_for_patience(returned(browser, asked))
        assert "ConnectionRefusedError" in caplog.text
        assert browser.read("sign-in?signed-out=here").text.count("Sign in with") == 1
    with at() as browser:
        assert asks_for_patience(browser.get("oidc/start"))
        assert "Sign out of" not in browser.get("sign-in?signed-out=here").text


def test_unreachable_keys_are_reported_as_a_provider_failure(at, provider):
    with at(jwks="http://localhost:9/keys") as browser:
        assert asks_for_patience(returned(browser, begun(browser, provider)))


def test_a_slow_provider_does_not_delay_the_sign_in_page(at, provider, monkeypatch):
    monkeypatch.setattr(oidc, "FETCH_TIMEOUT_SECONDS", 1)
    provider.is_silent = True
    with at() as browser, ThreadPoolExecutor(20) as threads:
        waiting = [threads.submit(browser.get, "oidc/start") for _ in range(20)]
        while not provider.requests:
            time.sleep(0.001)
        assert browser.get("sign-in").status_code == 200
        assert not all(one.done() for one in waiting)
        assert all(asks_for_patience(one.result()) for one in waiting)
    assert len(provider.requests) <= 16


def test_over_https_the_cookie_is_bound_to_the_host(shared_lake, browsing, provider):
    known = settings_of(provider.issuer)
    with browsing(shared_lake, "", **known, base_path="/v1", public_url="https://traffic.example") as browser:
        response = browser.get("oidc/start")
        cookie = response.headers["set-cookie"]
    assert cookie.startswith("__Host-traffic-oidc-")
    parts = {part.strip() for part in cookie.split(";")}
    assert {"Secure", "HttpOnly", "Path=/", "SameSite=lax", "Max-Age=600"} <= parts
    asked = parse_qs(urlsplit(response.headers["location"]).query)
    assert asked["redirect_uri"] == ["https://traffic.example/v1/app/oidc/callback"]


def test_without_a_client_id_there_is_no_provider_sign_in(stranger):
    assert "Sign in with" not in stranger.get("sign-in").text
    for path in ("oidc/start", "oidc/callback?code=x&state=y"):
        assert stranger.get(path).status_code in {303, 404}
        assert "traffic" not in stranger.client.cookies


def test_codes_states_and_secrets_do_not_reach_the_log(logged, provider, caplog):
    provider.status = 400
    with logged(**settings_of(provider.issuer), **PUBLIC) as (browser, stream):
        asked = begun(browser, provider)
        assert is_refused(returned(browser, asked))
    written = stream.getvalue().decode() + caplog.text
    assert "/app/oidc/callback" in written
    assert "HTTP status 400" in written
    assert [secret for secret in ("s3cret", "a-code", asked["state"], asked["nonce"]) if secret in written] == []


def test_an_unsafe_issuer_is_rejected_at_startup(lake, settings):
    known = settings_of("http://login.example") | {"jwks": "https://login.example/keys"}
    with pytest.raises(BadInput, match="TRAFFIC_JWT_ISSUER"):
        create_app(settings(lake, **known, **PUBLIC))
