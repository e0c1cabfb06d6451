"""Signing in and out, and attempts to bypass the sign-in."""

import asyncio
import sqlite3
from contextlib import closing
from datetime import UTC, datetime, timedelta
from urllib.parse import quote

import pytest

from service.access.api_keys import ApiKeys
from service.access.sessions import MAX_SESSIONS_OF_A_KEY, Sessions, SessionStore
from service.dashboard.shares import ShareStore
from tests.conftest import NOW
from tests.service.core.test_forms import FORMS
from tests.support.control import dump_of, open_store
from tests.support.page_reading import OURS, link_of, read, wait_until
from tests.support.tables import examples
from tests.support.visits import land, visit


def test_pages_without_a_session_lead_to_sign_in_and_back(stranger):
    for path in ("", "ai", "settings/api-keys", "export/top-links.csv"):
        response = stranger.get(path)
        target = "" if not path else f"?next={quote(f'/app/{path}', safe='')}"
        assert (response.status_code, response.headers["location"]) == (303, f"/app/sign-in{target}")
    form = stranger.read("sign-in?next=%2Fapp%2Flinks%3Frange%3D7d").one("form")
    assert form.one("input", name="next")["value"] == "/app/links?range=7d"


def test_a_sign_in_link_does_not_stay_in_the_address_bar(stranger, shared_lake):
    response = stranger.enter(link_of(shared_lake))
    assert (response.status_code, response.headers["location"]) == (303, "/app/")
    cookie = response.headers["set-cookie"]
    assert {part.strip().partition("=")[0] for part in cookie.split(";")} == {
        "traffic", "HttpOnly", "Max-Age", "Path", "SameSite"
    }  # fmt: skip
    assert "SameSite=lax" in cookie
    assert stranger.get("").status_code == 200


def test_the_cookie_is_bound_to_the_host_over_https(stranger, shared_lake, browsing):
    https = {"X-Forwarded-Proto": "https"}
    response = stranger.post("enter", {**OURS, **https}, code=link_of(shared_lake))
    cookie = response.headers["set-cookie"]
    assert cookie.startswith("__Host-traffic=")
    assert {"Secure", "HttpOnly", "Path=/", "SameSite=lax"} <= {part.strip() for part in cookie.split(";")}
    secret = cookie.partition("=")[2].partition(";")[0]
    stranger.client.cookies.clear()
    for name, status in (("__Host-traffic", 200), ("traffic", 303)):  # a cookie for plain http is not valid for https
        assert stranger.get("", headers={**https, "Cookie": f"{name}={secret}"}).status_code == status
    with browsing(shared_lake, "", public_url="https://traffic.example") as browser:
        assert browser.enter(link_of(shared_lake)).headers["set-cookie"].startswith("__Host-traffic=")


def test_a_sign_in_link_works_once(stranger, shared_lake):
    code = link_of(shared_lake)
    assert stranger.enter(code).status_code == 303
    stranger.client.cookies.clear()
    second = stranger.enter(code)
    assert (second.status_code, "set-cookie" in second.headers) == (403, False)
    assert "traffic sign-in" in second.text


@pytest.mark.parametrize(("age", "status"), [(601, 403), (600, 303)])
def test_a_sign_in_link_works_for_ten_minutes(stranger, shared_lake, age, status):
    code = link_of(shared_lake, clock=lambda: NOW - timedelta(seconds=age))
    assert stranger.enter(code).status_code == status


def test_a_reusable_sign_in_link_works_again(stranger, shared_lake):
    code = link_of(shared_lake, is_reusable=True)
    assert [stranger.enter(code).status_code for _ in range(3)] == [303] * 3


@pytest.mark.parametrize("invented", ["", "x", "a" * 43, "%00", "' OR 1=1 --"])
def test_an_invented_code_does_not_sign_in(stranger, invented):
    assert stranger.enter(invented).status_code == 403


def test_expired_sign_in_links_are_deleted(stranger, shared_lake):
    expired = "SELECT count(*) FROM sign_in_links WHERE expires_at < '2026-03-15T12'"
    link_of(shared_lake, clock=lambda: NOW - timedelta(seconds=601))
    assert _stored(shared_lake, expired) == [(1,)]
    stranger.enter(link_of(shared_lake))
    assert _stored(shared_lake, expired) == [(0,)]


def test_opening_a_sign_in_link_does_not_use_it_up(stranger, shared_lake):
    code = link_of(shared_lake)
    for _ in range(3):
        assert "set-cookie" not in stranger.get(f"enter?code={code}").headers
    page = stranger.read(f"enter?code={code}")
    assert page.one("h1").text == page.one("button").text == "Sign in to acme"
    assert page.one("form", action="/app/enter").one("input", name="code")["value"] == code
    response = stranger.post("enter", {"Sec-Fetch-Site": "cross-site"}, code=code)
    assert (response.status_code, "set-cookie" in response.headers) == (403, False)
    assert stranger.enter(code).status_code == 303


def test_only_the_last_twenty_sessions_of_a_key_are_valid(lake, browsing, key_of):
    key, cookies = key_of(lake), []
    with browsing(lake, "") as browser:
        for _ in range(MAX_SESSIONS_OF_A_KEY + 2):
            browser.client.cookies.clear()
            browser.post("sign-in", key=key)
            cookies.append(browser.client.cookies["traffic"])
        browser.client.cookies.clear()
        found = [browser.get("", headers={"Cookie": f"traffic={cookie}"}).status_code for cookie in cookies]
    assert found == [303] * 2 + [200] * MAX_SESSIONS_OF_A_KEY


def test_sessions_expire_with_the_key_that_created_them(lake, browsing):
    now = [NOW]
    with browsing(lake, clock=lambda: now[0]) as browser:
        page = read(browser.post("settings/api-keys", name="for March", expires_at="2026-03-20").text)
        assert "20 Mar 2026 23:59" in page.text
        key = page.one("div", class_="secret").one("code").text
        editor = browser.client.cookies["traffic"]
        browser.client.cookies.clear()
        assert browser.post("sign-in", key=key).status_code == 303
        assert browser.get("").status_code == 200
        now[0] = datetime(2026, 3, 20, 23, 59, 59, tzinfo=UTC)
        _until_signed_out(browser)
        assert "wrong, expired or revoked" in read(browser.post("sign-in", key=key).text).text
        browser.client.cookies.clear()
        browser.client.cookies.set("traffic", editor)
        row = browser.read("settings/api-keys").row("for March")
        assert ("expired" in row.text, row.all("form")) == (True, [])
        assert browser.post("settings/api-keys", name="late", expires_at="2026-03-20").status_code == 400


def test_signing_in_replaces_any_earlier_session(stranger, shared_lake):
    before = "attacker-chose-this"
    stranger.client.cookies.set("traffic", before)
    for _ in range(2):
        response = stranger.enter(link_of(shared_lake))
        assert f"traffic={before}" not in response.headers["set-cookie"]
        after = response.headers["set-cookie"].partition("=")[2].partition(";")[0]
        stranger.client.cookies.clear()
        assert stranger.get("", headers={"Cookie": f"traffic={before}"}).status_code == 303
        stranger.client.cookies.set("traffic", before := after)
    assert stranger.get("").status_code == 200


def test_an_api_key_signs_in(stranger, shared_lake, key_of):
    response = stranger.post("sign-in", key=f" {key_of(shared_lake)}\n", next="/app/links")
    assert (response.status_code, response.headers["location"]) == (303, "/app/links")


def test_a_wrong_api_key_is_rejected_and_not_repeated(stranger):
    response = stranger.post("sign-in", key="tak_secret-typed-wrong")
    assert response.status_code == 403
    assert "secret-typed-wrong" not in response.text
    assert "set-cookie" not in response.headers


@examples("target")
def test_signing_in_redirects_only_to_pages_of_the_service(stranger, shared_lake, key_of, target):
    assert stranger.post("sign-in", key=key_of(shared_lake), next=target).headers["location"] == "/app/"
    stranger.client.cookies.clear()
    form = stranger.read(f"sign-in?next={quote(target, safe='')}").one("form")
    assert form.one("input", name="next")["value"] == "/app/"


@examples("headers")
def test_a_form_on_another_site_has_no_effect(browser, shared_lake, headers):
    for path, fields, *_ in FORMS:
        assert browser.post(path, headers, **fields | {"name": "theirs"}).status_code == 403, path
    for own in (OURS, {"Origin": "http://testserver"}):
        assert browser.post("settings/api-keys", headers=own, name="ours").status_code == 200
    assert "theirs" not in {name for (name,) in _stored(shared_lake, "SELECT name FROM keys")}


def test_the_api_ignores_cookies(browser):
    for path in ("/analytics/dashboard", "/jobs", "/settings/api-keys", "/nothing"):
        assert browser.get(path).status_code == 401


def test_pages_ignore_the_authorization_header(stranger, shared_lake, key_of):
    headers = {"Authorization": f"Bearer {key_of(shared_lake)}"}
    assert stranger.get("", headers=headers).status_code == 303


def test_signing_out_ends_the_session(browser):
    secret = browser.client.cookies["traffic"]
    response = browser.post("sign-out")
    assert (response.status_code, response.headers["location"]) == (303, "/app/sign-in")
    assert "traffic" not in browser.client.cookies
    assert browser.get("", headers={"Cookie": f"traffic={secret}"}).status_code == 303


def test_a_session_shows_only_its_own_organization(lake, browsing):
    land(lake, "acme", [visit(domain="go.acme.example", short_code="ours", path="/ours", country="SE")])
    land(lake, "rival", [visit(domain="go.rival.example", short_code="theirs", path="/theirs", agent="RivalBot",
                               bot_category="other_bot", referrer="rival-referrer.example")])  # fmt: skip
    with browsing(lake, "rival") as other:
        other.post("settings/api-keys", name="rival-key")
    with browsing(lake) as browser:
        for path in ("", "ai", "agents", "people", "times", "links", "domains", "settings/api-keys",
                     "settings/sessions", "settings/cache", "settings/storage", "link?short_code=theirs",
                     "links?organization=rival&org=rival&org_id=rival", "export/top-links.csv",
                     "run/top-links"):  # fmt: skip
            text = browser.get(path).text
            for echo in (
                "short_code=theirs",
                'value="theirs"',
                "Link: theirs",
                ">theirs<",
                ">theirs ·",
                "code theirs",
                "have link theirs",
            ):
                text = text.replace(echo, "")
            assert [word for word in ("rival", "Rival", "theirs") if word in text] == []


def test_revocation_signs_a_user_out_within_five_seconds(shared_lake, stranger, key_of):
    stranger.enter(link_of(shared_lake))
    assert stranger.get("").status_code == 200
    with open_store(SessionStore, shared_lake, lambda: NOW) as store:
        assert store.revoke(store.session(stranger.client.cookies["traffic"]).id, "acme")
    _until_signed_out(stranger)
    key = key_of(shared_lake)
    stranger.post("sign-in", key=key)
    assert stranger.get("").status_code == 200
    with open_store(ApiKeys, shared_lake) as keys:
        keys.revoke_key(key[:12])
    _until_signed_out(stranger)


def test_a_session_is_never_last_seen_before_it_began(lake, browsing):
    with browsing(lake, "", clock=lambda: NOW + timedelta(minutes=6)) as browser:
        browser.enter(link_of(lake))
        times = [
            one.text for one in browser.read("settings/sessions").one("main").one("tbody").all("td", class_="time")
        ]
    assert times[:2] == ["15 Mar 2026 12:06"] * 2


def test_a_session_expires_and_its_use_is_recorded_by_hour(lake, browsing, monkeypatch):
    now = [NOW]
    with browsing(lake, "", clock=lambda: now[0]) as browser:
        browser.enter(link_of(lake, days=1))
        now[0] = NOW + timedelta(hours=23, minutes=20)
        assert browser.get("").status_code == 200
        wait_until(lambda: _stored(lake, "SELECT last_seen_at FROM sessions") == [("2026-03-16T11:00:00Z",)])
        now[0] = NOW + timedelta(hours=24, seconds=1)
        _until_signed_out(browser)
        monkeypatch.setattr("service.access.sessions.MAX_KEPT", 0)
        browser.enter(link_of(lake, clock=lambda: now[0]))
        assert _stored(lake, "SELECT count(*) FROM sessions") == [(1,)]  # expired sessions past MAX_KEPT are deleted


def test_a_held_write_lock_blocks_no_page(shared_lake, stranger):
    """While another process holds the write lock, a session that is not cached is accepted, and shares are shown."""
    with open_store(SessionStore, shared_lake, lambda: NOW) as store, open_store(ShareStore, shared_lake) as shares:
        secret = store.open_by_link(store.create_link("acme")).secret
        share = shares.create("acme", "test", {"name": "x"})
    with closing(sqlite3.connect(shared_lake.root / "control.sqlite", isolation_level=None)) as database:
        database.execute("BEGIN IMMEDIATE")
        cookie, paths = {"Cookie": f"traffic={secret}"}, ("", "settings/api-keys", *[f"share/{share}"] * 3)
        assert {stranger.get(path, headers=cookie).status_code for path in paths} == {200}


@pytest.fixture
def entered(lake, logged):
    """The code and session of a user who signed in and requested a page, and what the server logged meanwhile."""
    code = link_of(lake)
    with logged() as (browser, stream):
        assert browser.get(f"enter?code={code}").status_code == 200
        browser.enter(code)
        secret = browser.client.cookies["traffic"]
        browser.get("ai/SecretSource?domain=secret.example")
    return code, secret, stream.getvalue().decode()


def test_codes_and_sessions_are_not_stored(lake, entered):
    *secrets, _ = entered
    dump = dump_of(lake)
    assert "editor" in dump
    assert [word for word in secrets if word in dump] == []


def test_codes_and_sessions_are_not_logged(entered):
    *secrets, log = entered
    assert '"organization":"acme"' in log
    assert [word for word in secrets if word in log] == []


def test_the_log_has_the_route_of_a_page_but_no_values(entered):
    *_, log = entered
    assert '"route":"/app/ai/{value:path}","status":200' in log
    assert "secret" not in log.lower()


def _until_signed_out(browser):
    """Wait until the session has ended; sessions are cached for two seconds."""
    wait_until(lambda: browser.get("").status_code == 303)


def _stored(lake, sql):
    with closing(sqlite3.connect(lake.root / "control.sqlite")) as database:
        return database.execute(sql).fetchall()


async def test_a_revoked_session_is_not_cached_again(control, monkeypatch):
    store, loop = SessionStore(control), asyncio.get_running_loop()
    sessions, revoke = Sessions(store), store.revoke
    secret = store.open_by_link(store.create_link("acme")).secret
    session = await sessions.session(secret)

    def revoke_during_a_request(*given):
        asyncio.run_coroutine_threadsafe(sessions.session(secret), loop).result(60)
        return revoke(*given)

    monkeypatch.setattr(store, "revoke", revoke_during_a_request)
    assert await sessions.revoke(session.id, "acme")
    assert await sessions.session(secret) is None


def test_a_clock_that_was_ahead_deletes_no_session(control):
    store, ahead = SessionStore(control, lambda: NOW), SessionStore(control, lambda: NOW + timedelta(days=4_000))
    secret = store.open_by_link(store.create_link("acme")).secret
    assert ahead.open_by_link(ahead.create_link("acme"))
    assert store.session(secret)
