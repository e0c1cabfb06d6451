"""axe-core finds nothing on any page: WCAG 2.2 AA and best practice."""

import pytest

from tests.browser.traffic import PAGES

IMPORTANT = ("overview", "link", "api-keys", "job")
CONDITIONS = {
    "dark": {"color_scheme": "dark"},
    "390px": {"viewport": {"width": 390, "height": 844}},
    "zoomed": {"viewport": {"width": 640, "height": 450}, "device_scale_factor": 2},  # 1280 px at 200 %
}


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_accessible(opened, axe, names, name):
    watched = opened()
    assert axe(watched.goto(PAGES[name].format(**names))) == []


@pytest.mark.parametrize("condition", CONDITIONS)
@pytest.mark.parametrize("name", IMPORTANT)
def test_an_important_page_is_accessible_in_the_dark_on_a_phone_and_zoomed(opened, axe, names, name, condition):
    watched = opened(**CONDITIONS[condition])
    assert axe(watched.goto(PAGES[name].format(**names))) == []


@pytest.mark.parametrize(
    ("organization", "path", "status"), [(None, "sign-in", 200), ("acme", "nothing", 404), ("newcomer", "", 200)]
)
def test_signing_in_an_error_and_the_guided_start_are_accessible(opened, axe, organization, path, status):
    assert axe(opened(organization).goto(path, status)) == []


@pytest.mark.parametrize("path", ["", "jobs/{job}", "jobs/{approved}", "settings/agent-hooks/{hook}"])
def test_open_tables_commands_and_forms_are_accessible(opened, axe, names, path):
    page = opened().goto(path.format(**names))
    page.evaluate("for (const one of document.querySelectorAll('details')) one.open = true")
    assert axe(page) == []


def test_the_page_with_the_secret_of_a_hook_and_that_of_a_refused_one_are_accessible(opened, axe):
    page = opened().goto("settings/agent-hooks")
    page.fill("input[name=name]", "new")
    page.fill("input[name=url]", "https://automation.example/hook")
    page.click("text=Create hook")
    page.wait_for_selector(".secret")
    assert axe(page) == []
    page.fill("input[name=name]", "refused")
    page.fill("input[name=url]", "http://automation.example/hook")
    page.click("text=Create hook")
    page.wait_for_selector(".notice.bad")
    assert axe(page) == []
