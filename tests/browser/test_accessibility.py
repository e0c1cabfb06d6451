"""axe-core finds nothing on any page: WCAG 2.2 AA and best practice."""

from itertools import product

import pytest

from tests.browser.traffic import PAGES

IMPORTANT = ("overview", "link", "api-keys", "job")
CONDITIONS = {
    "dark": {"color_scheme": "dark"},
    "390px": {"viewport": {"width": 390, "height": 844}},
    "zoomed": {"viewport": {"width": 640, "height": 450}, "device_scale_factor": 2},  # 1280 px at 200 %
}


@pytest.mark.parametrize(("name", "condition"), [*((name, "") for name in PAGES), *product(IMPORTANT, CONDITIONS)])
def test_a_page_is_accessible_and_an_important_one_also_in_the_dark_on_a_phone_and_zoomed(
    opened, axe, names, name, condition
):
    watched = opened(**CONDITIONS.get(condition, {}))
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


@pytest.mark.parametrize(
    ("path", "field", "good", "bad"),
    [
        ("settings/agent-hooks", "url", "https://automation.example/hook", "http://automation.example/hook"),
        ("settings/shares", "embedders", "https://app.example", "app.example"),
    ],
)
def test_the_page_with_a_new_secret_and_that_of_a_refused_form_are_accessible(opened, axe, path, field, good, bad):
    page = opened().goto(path)
    for value, shown in ((good, ".secret"), (bad, ".notice.bad")):
        page.fill("input[name=name]", "new")
        page.fill(f"input[name={field}]", value)
        page.click("button.primary")
        page.wait_for_selector(shown)
        assert axe(page) == []
