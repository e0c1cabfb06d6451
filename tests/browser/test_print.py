"""Printed pages contain every table but no controls; a saved report opens without a network and prints every table."""

import unicodedata
from datetime import UTC, datetime

import pytest

from queries import Warehouse
from service.dashboard.report import Report


def words(text):
    """Return a text without its spaces and ligatures, which a PDF's text may not preserve."""
    return "".join(unicodedata.normalize("NFKC", text).split())


def not_printed(page, text):
    """Return the cells of all tables on a page that are missing from the text of its printed version."""
    cells = page.locator("table.rows tr > *").all_text_contents()
    assert len(cells) > 20
    return [cell for cell in cells if words(cell) not in words(text)]


@pytest.mark.parametrize(
    ("path", "has_script"), [("", True), ("", False), ("ai", True), ("times", False), ("agents", True)]
)
def test_a_printed_page_has_the_text_of_every_table(opened, text_of, pictures, path, has_script):
    page = opened(java_script_enabled=has_script, color_scheme="dark").goto(path)
    pdf = page.pdf(format="A4")
    if pictures and has_script:
        (pictures / f"{path or 'overview'}.pdf").write_bytes(pdf)
    assert not_printed(page, text_of(pdf)) == []


def test_a_printed_page_has_no_controls(opened, text_of):
    printed = words(text_of(opened().goto("").pdf(format="A4")))
    assert [control for control in ("Signout", "Runityourself", "Apply") if control in printed] == []


@pytest.fixture(scope="module")
def file(dashboard, tmp_path_factory):
    """The file of a report on acme."""
    now = datetime.now(UTC)
    warehouse = Warehouse(dashboard.lake)
    made = Report.load(dashboard.lake, warehouse, "acme", {"range": "30d"}, now.date())
    path = tmp_path_factory.mktemp("report") / "report.html"
    path.write_text(made.html(now), "utf-8")
    warehouse.close()
    return path


@pytest.fixture
def page(chromium, file):
    """The report, opened from the file without a network; its errors and requests are in `problems`."""
    context = chromium.new_context(offline=True, viewport={"width": 1280, "height": 900}, color_scheme="light")
    page, problems = context.new_page(), []
    page.on("console", lambda message: problems.append(message.text))
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("request", lambda request: request.url == file.as_uri() or problems.append(request.url))
    page.goto(file.as_uri())
    page.problems = problems
    yield page
    context.close()


def test_a_report_opens_without_a_network_and_is_accessible(page, pictures, axe):
    assert page.problems == []
    if pictures:
        page.screenshot(path=pictures / "report.png", full_page=True)
    assert page.locator(".panel").count() >= 6
    assert page.evaluate("getComputedStyle(document.querySelector('.tile.people .value')).color") != "rgb(0, 0, 0)"
    assert page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") == 0
    page.locator("details summary").first.click()
    assert axe(page) == []


def test_a_printed_report_has_the_text_of_every_table(page, text_of):
    assert not_printed(page, text_of(page.pdf(format="A4"))) == []
