"""From a sign-in link to a revoked key: with the keyboard alone, and from the link that `traffic demo` prints."""

import shlex
import time
from urllib.parse import urlsplit

import httpx2
import pytest

from tests.browser.conftest import enter
from tests.browser.demo import demo

MAX_TABS = 120


def tab_to(page, selector):
    """Press Tab until the element has the focus; fails if it cannot be reached or the focus cannot be seen."""
    for _ in range(MAX_TABS):
        page.keyboard.press("Tab")
        if page.evaluate("selector => document.activeElement.matches(selector)", selector):
            style = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
            assert style != "none", f"{selector} does not show that it has the focus"
            return
    pytest.fail(f"{selector} is not reached by Tab")


def asked(curl, key=""):
    """The response to the request that a copied curl command makes, where KEY is a variable of the shell."""
    _, _, header, address = shlex.split(curl.replace("$KEY", key))
    name, value = header.split(": ")
    return httpx2.get(address, headers={name: value, "X-Forwarded-For": "198.51.100.77"}, trust_env=False)


def wait_until_refused(curl, key=""):
    """Ask until the key is refused; fails if that takes more than five seconds."""
    revoked = time.monotonic()
    while asked(curl, key).status_code != 401:
        assert time.monotonic() < revoked + 5
        time.sleep(0.2)  # asked without a pause, the rate limit would answer


def test_a_key_is_made_used_and_revoked_with_the_keyboard_alone(opened, dashboard):
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
    wait_until_refused(curl)
    assert watched.problems == []


def test_from_the_link_of_the_demo_to_a_key_that_a_copied_command_uses(opened):
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

        page.get_by_role("link", name="Settings").click()
        page.get_by_role("button", name="Revoke report of the week").click()
        page.locator("tr", has_text="report of the week").locator(".badge.revoked").wait_for()
        wait_until_refused(curl, key)
        assert watched.problems == []


def test_a_form_of_another_origin_makes_no_key(opened, dashboard):
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
