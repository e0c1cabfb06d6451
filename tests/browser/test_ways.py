"""Whole tasks on the pages: with the keyboard alone, from the demo's link, and through an identity provider."""

import re
import shlex
import time
from datetime import UTC, datetime, timedelta
from urllib.parse import urlsplit

import httpx2
import pytest

from service.demo.sample import Sample
from tests.browser.conftest import Watched, enter, lake_of
from tests.browser.demo import demo
from tests.support.programs import free_port
from tests.support.provider import settings_of

MAX_TABS = 120


def tab_to(page, selector):
    """Press Tab until the element has focus; fail if it cannot be reached or shows no focus outline."""
    for _ in range(MAX_TABS):
        page.keyboard.press("Tab")
        if page.evaluate("selector => document.activeElement.matches(selector)", selector):
            style = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
            assert style != "none", f"{selector} does not show that it has the focus"
            return
    pytest.fail(f"{selector} is not reached by Tab")


def asked(curl, key=""):
    """Send the request of a copied curl command; return the response. `key` replaces the shell variable KEY."""
    _, _, header, address = shlex.split(curl.replace("$KEY", key))
    name, value = header.split(": ")
    return httpx2.get(address, headers={name: value, "X-Forwarded-For": "198.51.100.77"}, trust_env=False)


def test_a_key_is_created_used_and_revoked_by_keyboard_alone(opened, dashboard):
    watched = opened(organization=None)
    page = watched.page
    page.goto(dashboard.entrance())
    tab_to(page, "form button")
    page.keyboard.press("Enter")
    page.wait_for_url("**/app/")
    tab_to(page, "nav.pages a[href$='/settings/api-keys']")
    page.keyboard.press("Enter")
    page.wait_for_url("**/settings/api-keys")

    tab_to(page, "input[name=name]")
    page.keyboard.type("report of the week")
    page.keyboard.press("Enter")
    page.wait_for_selector(".secret")
    curl = page.locator(".copy code", has_text="curl").inner_text()
    assert asked(curl).status_code == 200

    row = page.locator("tr", has_text="report of the week")
    assert "active" in row.inner_text()
    action = row.locator("form").get_attribute("action")
    tab_to(page, f"form[action='{action}'] button")
    page.keyboard.press("Enter")
    page.wait_for_selector("tr:has-text('report of the week') .badge.revoked")
    revoked = time.monotonic()
    while asked(curl).status_code != 401:
        assert time.monotonic() < revoked + 5
        time.sleep(0.2)  # without a pause, this would exceed the rate limit
    assert watched.problems == []


def test_a_copied_command_works_with_a_key_created_in_the_demo(opened):
    with demo("--visits", "2000") as link:
        server = urlsplit(link)
        watched = opened(organization=None, address=f"{server.scheme}://{server.netloc}")
        page = watched.page
        page.context.grant_permissions(["clipboard-read", "clipboard-write"])
        enter(page, link)
        assert page.locator("h1").inner_text() == "Overview"
        assert page.locator("#geographic .map .q5").count() > 0
        assert page.locator("#geographic").get_by_text("United States").count() > 0

        page.get_by_role("link", name="Settings").click()
        page.get_by_label("Name").fill("report of the week")
        page.get_by_role("button", name="Create key").click()
        key = page.locator(".secret code").inner_text()
        page.get_by_role("link", name="Overview").click()
        panel = page.locator("#top-links")
        panel.locator("summary").click()
        panel.get_by_role("button", name="Copy curl").click()
        curl = page.evaluate("navigator.clipboard.readText()")
        rows = [row["short_code"] for row in asked(curl, key).json()]
        assert rows[:10] == panel.locator("tbody th").all_inner_texts()
        assert watched.problems == []


def test_a_form_on_another_origin_creates_no_key(opened, dashboard):
    watched = opened()
    watched.goto("settings/api-keys")
    form = f"<form method=post action='{dashboard.address}/app/settings/api-keys'><input name=name value=stolen></form>"
    watched.page.context.route(
        "http://other.example/", lambda route: route.fulfill(body=f"<title>x</title>{form}", content_type="text/html")
    )
    watched.page.goto("http://other.example/")
    with watched.page.expect_navigation() as navigation:
        watched.page.evaluate("document.forms[0].submit()")
    assert navigation.value.status == 403
    assert "stolen" not in watched.goto("settings/api-keys").content()


def test_an_invented_link_is_two_clicks_from_its_redirect_form(opened, axe):
    watched = opened()
    page = watched.goto("ai")
    page.get_by_role("link", name="Invented links").click()
    page.get_by_role("button", name="/pricing-2026").click()
    page.wait_for_url("**/app/jobs/job_*#implementation")
    field = page.get_by_label("Redirect to")
    assert field.evaluate(
        "one => { const at = one.getBoundingClientRect(); return 0 < at.top && at.top < innerHeight; }"
    )
    assert axe(page) == []
    assert watched.goto("invented-links").get_by_role("link", name="approved").count() == 1
    assert watched.problems == []


@pytest.fixture
def visitor(chromium, serving, identity_provider, tmp_path):
    """A browser that can reach only a separate server and the identity provider with which its users sign in."""
    lake = lake_of(tmp_path, "acme", Sample(200, datetime.now(UTC).date() - timedelta(days=1), 3))
    port = str(free_port())
    address = f"http://127.0.0.1:{port}"
    with serving(lake, "--port", port, public_url=address, **settings_of(identity_provider)):
        context = chromium.new_context(reduced_motion="reduce")  # pages change at once, without fading in
        context.route(re.compile(rf"^(?!{address}/|{identity_provider}/)"), lambda route: route.abort())
        watched = Watched(context.new_page(), address)
        yield watched
        context.close()
    lake.manifest.close()


def test_a_viewer_signs_in_at_the_provider_and_cannot_write(visitor, identity_provider, axe):
    page = visitor.page
    page.goto(f"{visitor.address}/app/links?range=7d")
    assert axe(page) == []
    page.get_by_role("link", name="Sign in with localhost").click()
    page.wait_for_url(f"{identity_provider}/**")
    page.get_by_role("button", name="vera").click()
    page.wait_for_url(f"{visitor.address}/app/links?range=7d")

    page.get_by_role("link", name="Overview").click()
    page.wait_for_selector(".tiles")
    assert page.locator(".organization").inner_text() == "acme"
    visitor.goto("settings/api-keys")
    assert page.locator("input[name=name]").count() == 0
    with page.expect_navigation() as navigation:
        page.evaluate("""() => {
          const form = document.createElement("form");
          form.method = "post";
          document.body.append(form);
          form.submit();
        }""")
    assert navigation.value.status == 403

    visitor.goto("")
    page.get_by_role("button", name="Sign out").click()
    page.wait_for_url("**/app/sign-in?signed-out=here")
    assert axe(page) == []
    page.get_by_role("link", name="Sign out of localhost").click()
    page.wait_for_url(f"{identity_provider}/**")
    page.get_by_role("button", name="End session").click()
    page.wait_for_url(f"{visitor.address}/app/sign-in")
    visitor.page.goto(f"{visitor.address}/app/")
    assert page.url.startswith(f"{visitor.address}/app/sign-in")
    wanted = ("request to", "Failed to load")  # of what the provider's pages load from elsewhere, and of the 403
    assert [one for one in visitor.problems if not any(text in one for text in wanted)] == []
