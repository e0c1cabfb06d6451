"""From the sign-in link to a revoked key, with the keyboard alone; and the key is really used."""

import time

import httpx2
import pytest

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


def status_of(curl):
    """The status of the request that a copied curl command makes."""
    _, _, header, address = [part.strip('"') for part in curl.replace('"Authorization: Bearer ', '"Bearer_').split(" ")]
    headers = {"Authorization": header.replace("Bearer_", "Bearer "), "X-Forwarded-For": "198.51.100.77"}
    return httpx2.get(address, headers=headers, trust_env=False).status_code


def test_a_key_is_made_used_and_revoked_with_the_keyboard_alone(opened, dashboard):
    watched = opened(organization=None)
    page = watched.page
    page.goto(dashboard.entrance())
    tab_to(page, "nav.pages a[href$='/settings/api-keys']")
    page.keyboard.press("Enter")
    page.wait_for_url("**/settings/api-keys")

    tab_to(page, "input[name=name]")
    page.keyboard.type("report of the week")
    page.keyboard.press("Enter")
    page.wait_for_selector(".secret")
    curl = page.locator(".copy code", has_text="curl").inner_text()
    assert status_of(curl) == 200

    row = page.locator("tr", has_text="report of the week")
    assert "active" in row.inner_text()
    action = row.locator("form").get_attribute("action")
    tab_to(page, f"form[action='{action}'] button")
    page.keyboard.press("Enter")
    page.wait_for_selector("tr:has-text('report of the week') .badge.revoked")
    revoked = time.monotonic()
    while status_of(curl) != 401:
        assert time.monotonic() < revoked + 5
        time.sleep(0.2)  # asked without a pause, the rate limit would answer
    assert watched.problems == []


def test_the_new_key_is_shown_once(opened):
    page = opened().goto("settings/api-keys")
    page.fill("input[name=name]", "once")
    page.click("button.primary")
    key = page.locator(".secret code").inner_text()
    page.goto(page.url)
    assert key not in page.content()


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


def test_a_key_pasted_into_the_form_signs_in(opened, dashboard, key_of):
    page = opened(organization=None).goto("")
    page.fill("input[name=key]", key_of(dashboard.lake))
    page.keyboard.press("Enter")
    page.wait_for_selector(".tiles")
    assert page.locator(".organization").inner_text() == "acme"
