"""The pages next to the API: their addresses, their errors, keys and sessions, and a server that starts without loading
them."""

import subprocess
import sys

from tests.support.page_reading import OURS, link_of, read, wait_until
from tests.support.visits import land, visit

HTML = {"Accept": "text/html,application/xhtml+xml"}


def test_only_browsers_are_redirected_from_the_root_to_the_pages(stranger):
    response = stranger.get("/", headers=HTML)
    assert (response.status_code, response.headers["location"]) == (303, "/app/")
    assert stranger.get("/app").headers["location"] == "/app/"
    for headers in ({"Accept": "application/json"}, {"Accept": "*/*"}):
        response = stranger.get("/", headers=headers)
        assert (response.status_code, response.headers["content-type"]) == (401, "application/json")
    assert stranger.client.post("/", headers=HTML).status_code == 401
    assert stranger.get("/apple", headers=HTML).status_code == 401


def test_a_base_path_prefixes_every_address(lake, browsing):
    land(lake, "acme", [visit(short_code="launch", path="/launch")])
    with browsing(lake, base_path="/v1") as browser:
        assert browser.get("/v1", headers=HTML).headers["location"] == "/v1/app/"
        assert browser.get("/app/").status_code == 401
        page = browser.read("")
        addresses = [one.attributes.get("href") or one.attributes.get("src") or one.attributes.get("action")
                     for one in page.all() if one.tag in {"a", "link", "script", "form", "use"}]  # fmt: skip
        ours = [address for address in addresses if address and not address.startswith(("#", "data:"))]
        assert [one for one in ours if not one.startswith(("/v1/app/", "people", "ai", "agents"))] == []
        assert "http://testserver/v1/analytics/" in page.text


def test_without_pages_their_addresses_are_not_found(lake, browsing):
    with browsing(lake, "", pages="off") as browser:
        for path in ("/", "/app/", "/app/sign-in", "/app/static/app.css"):
            response = browser.get(path, headers=HTML)
            assert (response.status_code, response.headers["content-type"]) == (401, "application/json")


def test_a_page_beyond_the_rate_limit_shows_how_long_to_wait(lake, browsing):
    with browsing(lake, "") as browser:
        source = {"X-Forwarded-For": "203.0.113.9"}
        answers = [browser.get("sign-in", headers=source) for _ in range(61)]
        assert [answer.status_code for answer in answers] == [200] * 60 + [429]
        refused = answers[-1]
        assert refused.headers["content-type"].startswith("text/html")
        assert int(refused.headers["retry-after"]) in range(50, 61)
        assert "TRAFFIC_TRUSTED_PROXIES" in read(refused.text).text
        assert f"Wait {refused.headers['retry-after']} s, then reload" in refused.text
        program = browser.get("/analytics/devices", headers=source)
        assert (program.status_code, program.json()["limit"]) == (429, 60)


def test_errors_404_and_405_are_shown_as_pages(browser):
    for path, method, status in (("nothing", "GET", 404), ("links", "POST", 405), ("run/nothing", "GET", 404)):
        response = browser.client.request(method, f"/app/{path}", headers=OURS)
        assert response.status_code == status
        assert read(response.text).one("h1").text.startswith(("Page not found", "This page does not accept"))


def test_a_failed_query_gives_an_error_page(lake, acme):
    land(lake, "acme", [visit()])
    (path,) = (lake.root / "visits/organization=acme").glob("*/*.parquet")
    path.write_bytes(b"rubbish")
    assert "The request failed" in acme.read("", 500).one("h1").text


def test_a_key_created_on_a_page_works_until_it_is_revoked(browser):
    """The page that shows the key is not compressed, because its compressed size could reveal the key."""
    response = browser.post("settings/api-keys", OURS | {"Accept-Encoding": "gzip"}, name="report of the week")
    assert (response.status_code, "content-encoding" in response.headers) == (200, False)
    page = read(response.text)
    key = page.one("div", class_="secret").one("code").text
    bearer = {"Authorization": f"Bearer {key}"}
    assert browser.get("/analytics/traffic-overview", headers=bearer).status_code == 200
    listed = browser.get("settings/api-keys").text
    assert key not in listed
    assert browser.post(read(listed).row("report of the week").one("form")["action"]).status_code == 303
    wait_until(lambda: browser.get("/analytics/traffic-overview", headers=bearer).status_code == 401)
    row = browser.read("settings/api-keys").row("report of the week")
    assert ("revoked" in row.text, row.all("form")) == (True, [])


def test_an_invalid_name_or_an_oversized_form_creates_no_key(browser):
    before = len(browser.read("settings/api-keys").all("tr"))
    for name, status in (("", 400), (" ", 400), ("x" * 101, 400), ("a\nb", 400), ("x" * 20_000, 413)):
        assert browser.post("settings/api-keys", name=name).status_code == status
    assert len(browser.read("settings/api-keys").all("tr")) == before


def test_editors_can_end_any_session_viewers_only_their_own(browser, application, shared_lake):
    own = application.cookies["traffic"]

    def viewer():
        application.cookies.clear()
        browser.enter(link_of(shared_lake, role="viewer"))
        return application.cookies["traffic"]

    theirs = viewer()
    (form,) = browser.read("settings/sessions").one("main").all("form")
    assert browser.post(form["action"]).status_code == 303
    assert browser.get("").status_code == 303
    theirs = viewer()
    application.cookies.set("traffic", own)
    action = browser.read("settings/sessions").row("viewer").one("form")["action"]
    assert browser.post(action).status_code == 303
    application.cookies.set("traffic", theirs)
    assert browser.get("").status_code == 303


def test_an_editor_ends_all_other_sessions_after_confirming(browser, application, shared_lake):
    own = application.cookies["traffic"]
    application.cookies.clear()
    browser.enter(link_of(shared_lake))
    other = application.cookies["traffic"]

    def become(cookie):
        application.cookies.clear()
        application.cookies.set("traffic", cookie)

    def statuses():
        found = []
        for cookie in (other, own):
            become(cookie)
            found.append(browser.get("").status_code)
        return found

    become(own)
    refused = browser.post("settings/sessions/end-others")
    assert (refused.status_code, "tick the box to confirm" in refused.text) == (400, True)
    assert statuses() == [200, 200]
    assert browser.post("settings/sessions/end-others", confirmed="on").status_code == 303
    assert statuses() == [303, 200]


def test_a_viewer_cannot_end_other_sessions(stranger, shared_lake):
    stranger.enter(link_of(shared_lake, role="viewer"))
    assert stranger.post("settings/sessions/end-others", confirmed="on").status_code == 403


def test_a_server_starts_without_loading_the_pages():
    """Templates and their engine are loaded with the first page."""
    loaded = "{'jinja2', 'service.app.pages', 'service.dashboard.views'} & {*sys.modules}"
    code = f"import sys, service.app.application; print({loaded})"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "set()"
