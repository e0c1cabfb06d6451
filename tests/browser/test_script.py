"""Tests the script's additions to pages, and that pages are complete without it."""

from datetime import UTC, datetime

import pytest

from data import Lake
from tests.browser.conftest import Dashboard, enter
from tests.browser.test_ways import asked
from tests.browser.traffic import PAGES
from tests.support.visits import land, visit


def values(page, entry, column):
    """Return the visible numbers in a column of a table, from top to bottom."""
    return page.eval_on_selector_all(
        f"table[data-entry='{entry}'] tbody tr:not([hidden]) > :nth-child({column}) data",
        "all => all.map(one => +one.value)",
    )


def test_a_click_on_a_heading_sorts_and_marks_the_column(opened):
    page = opened().goto("agents")
    heading = page.locator("table[data-entry='bot-traffic'] th[data-field=visits]")
    column = heading.evaluate("head => head.cellIndex + 1")
    numbers = values(page, "bot-traffic", column)
    heading.locator("button").click()
    assert heading.get_attribute("aria-sort") == "descending"
    assert values(page, "bot-traffic", column) == sorted(numbers, reverse=True)
    heading.locator("button").click()
    assert heading.get_attribute("aria-sort") == "ascending"
    assert values(page, "bot-traffic", column) == sorted(numbers)
    heading = page.locator("table[data-entry='bot-traffic'] th[data-field=last_seen]")
    heading.locator("button").click()
    column = heading.evaluate("head => head.cellIndex + 1")
    times = page.locator(f"table[data-entry='bot-traffic'] tbody tr > :nth-child({column}) data")
    shown = times.evaluate_all("all => all.map(one => one.value)")
    assert shown == sorted(shown)
    assert len(set(shown)) > 5


@pytest.mark.parametrize("path", ["agents", "paths", "people"])
def test_rows_sorted_by_change_end_with_unknown_changes(opened, path):
    page = opened().goto(f"{path}?range=7d&compare=before")
    table = page.locator("table.comparing").first
    for order in (-1, 1):
        table.locator("th[data-field=change] button").click()
        values = table.locator("tbody td.change data").evaluate_all("all => all.map(one => one.value)")
        known = [float(value) for value in values if value]
        assert known == sorted(known, key=lambda change: order * change)
        assert values[len(known) :] == [""] * (len(values) - len(known))


def test_search_hides_the_rows_without_the_words(opened):
    page = opened().goto("agents")
    rows = page.locator("table[data-entry='bot-traffic'] tbody tr:visible")
    before = rows.count()
    page.fill("[data-search='bot-traffic']", "gptbot openai")
    assert 0 < rows.count() < before
    assert all("gptbot" in text.lower() for text in rows.all_inner_texts())


def test_the_tooltip_of_a_day_shows_the_numbers_of_its_row(opened):
    page = opened().goto("?range=7d")
    chart = page.locator("#time-series svg.series")
    box = chart.bounding_box()
    page.mouse.move(box["x"] + box["width"] * 2.5 / 7, box["y"] + 50)
    tip = page.locator("#time-series .tip")
    shown = tip.evaluate("tip => [...tip.querySelectorAll('strong, b')].map(one => one.textContent)")
    table = page.locator("#time-series table")
    cells = [text.strip() for text in table.locator("tbody tr").nth(2).locator("th, td").all_text_contents()]
    drawn = table.locator("thead th").evaluate_all("heads => heads.map(head => 'drawn' in head.dataset)")
    assert shown == [cell for number, cell in enumerate(cells) if not number or drawn[number]]
    labels = tip.evaluate("tip => [...tip.querySelectorAll('span')].map(one => one.textContent)")
    assert labels == ["Visits", "By people", "By AI", "Other bots", "Period before"]  # as in the legend
    address = table.locator("tbody tr").nth(2).locator("a").get_attribute("href")
    page.mouse.click(box["x"] + box["width"] * 2.5 / 7, box["y"] + 50)
    page.wait_for_url(f"**{address}")


POINT_INSIDE = """path => {
    path.scrollIntoView({block: "center"});
    const box = path.getBoundingClientRect();
    for (let step = 0; step < 400; step++) {
        const x = box.x + box.width * (step % 20 + 0.5) / 20;
        const y = box.y + box.height * (Math.floor(step / 20) + 0.5) / 20;
        if (document.elementFromPoint(x, y) === path) return [x, y];
    }
}"""
"""A visible point of a country: the middle of its box may be in another country, as with Portugal and Spain."""


def test_a_tapped_country_shows_its_number(opened):
    page = opened(viewport={"width": 390, "height": 844}, has_touch=True).goto("people")
    page.touchscreen.tap(*page.locator("#geographic .q5").first.evaluate(POINT_INSIDE))
    rows = [row.locator("th, td").all_text_contents() for row in page.locator("#geographic tbody tr").all()]
    assert page.locator("#geographic .tip").inner_text() in {f"{name}: {visits}" for name, visits, *_ in rows}


def test_the_chosen_theme_is_kept_for_later_pages(opened):
    watched = opened()
    page = watched.goto("")
    ground = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(ground)
    page.click("[data-theme-choice=dark]")
    dark = page.evaluate(ground)
    assert dark != light
    page.reload()
    assert page.evaluate(ground) == dark
    assert page.locator("[data-theme-choice=dark]").get_attribute("aria-pressed") == "true"


def test_shortcuts_open_pages_and_ranges_until_switched_off(opened):
    page = opened().goto("")
    page.keyboard.press("1")
    page.wait_for_url("**range=7d*")
    page.keyboard.press("ArrowLeft")
    page.wait_for_url("**start_date=*")
    page.keyboard.press("Escape")
    page.wait_for_url("**/app/")
    page.keyboard.press("g")
    page.keyboard.press("l")
    page.wait_for_url("**/app/links*")
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.name") == "short_code"
    page.keyboard.type("1")
    assert page.input_value("[name=short_code]") == "1"
    page.goto(page.url)
    page.keyboard.press("?")
    page.uncheck("#shortcuts")
    page.keyboard.press("Escape")
    page.reload()
    address = page.url
    for key in "1gl":
        page.keyboard.press(key)
    assert not page.locator("#help").is_visible()
    assert page.url == address


def test_a_click_on_a_button_copies_the_command(opened):
    watched = opened()
    watched.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page = watched.goto("run/time-series")
    copy = page.locator(".copy").first
    copy.locator("button").click()
    page.wait_for_selector(".toast")
    assert page.evaluate("navigator.clipboard.readText()") == copy.locator("code").inner_text()
    assert watched.problems == []


@pytest.mark.parametrize(("panel", "has_script"), [("geographic", False), ("browsers", True), ("utm-campaigns", False)])
def test_a_click_on_a_row_filters_until_its_chip_is_removed(opened, dashboard, key_of, panel, has_script):
    page = opened(java_script_enabled=has_script).goto("people?range=90d")
    before, whole = page.url, page.locator(".rows tbody tr").count()
    if panel == "geographic":
        page.click("#geographic summary >> nth=0")
    page.locator(f"#{panel} tbody a").first.click()
    assert page.locator(".chip:not(.clear)").count() == 1
    for table in page.locator("#referrers, #browsers").all():
        table.get_by_text("Run it yourself").click()
        answer = asked(table.locator("code").first.inner_text(), key_of(dashboard.lake)).json()
        assert table.locator("tbody th").all_inner_texts() == [next(iter(row.values())) for row in answer][:100]
    assert 0 < page.locator(".rows tbody tr").count() < whole
    page.locator(".chip:not(.clear)").click()
    assert page.url == before


@pytest.mark.parametrize(
    "path", ["", "ai", "agents", "links", "jobs", "jobs/{job}", "settings/api-keys", "settings/agent-hooks/{hook}"]
)
def test_pages_work_without_javascript(opened, names, path):
    page = opened(java_script_enabled=False).goto(path.format(**names))
    assert page.locator("h1").is_visible()
    assert page.locator("table").count() > 0
    for control in page.locator("button:visible").all():
        assert control.locator("xpath=ancestor::form").count() == 1, control.inner_text()
    if not path:  # a folded table
        page.click("#time-series .data-table summary")
        assert page.locator("#time-series table").is_visible()


def test_a_loaded_page_makes_no_further_requests(opened):
    watched = opened()
    page = watched.goto("")
    page.wait_for_load_state("networkidle")
    page.context.set_offline(True)
    page.locator("#time-series svg.series").hover()
    page.locator("#top-links thead button").first.click()
    assert watched.problems == []


SORTED = """tables => tables.flatMap(table => {
  const heads = [...table.tHead.rows[0].cells].filter(head => head.textContent.trim());
  return heads.flatMap(head => {
    const name = `${table.caption.textContent}: ${head.textContent}`, button = head.querySelector("button");
    if (!button) return [name];
    const valueOf = row => (row.cells[head.cellIndex].querySelector("data") ?? {}).value;
    const texts = () => [...table.tBodies[0].rows].map(row => row.cells[head.cellIndex].textContent);
    const values = () => [...table.tBodies[0].rows].filter(row => !row.matches(".rest")).map(valueOf);
    button.click();
    const numbers = values().filter(value => value && !isNaN(value)).map(Number);
    const [first] = [head.getAttribute("aria-sort")], before = texts();
    button.click();
    const isSorted = numbers.every((number, at) => !at || (first === "ascending" ? numbers[at - 1] <= number
      : numbers[at - 1] >= number));
    const differs = new Set(before).size < 2 || texts().join() !== before.join();
    const turned = head.getAttribute("aria-sort") !== first && differs;
    return isSorted && turned ? [] : [name];
  });
})"""
"""The columns of tables that one click does not sort, or a second click does not reverse."""


@pytest.mark.parametrize("name", sorted(PAGES.keys() - {"links", "links-found"}))  # the server sorts these
def test_every_column_of_a_table_can_be_sorted(opened, names, name):
    page = opened().goto(PAGES[name].format(**names))
    assert page.eval_on_selector_all("table.rows", SORTED) == []


def test_pause_stops_refreshing_the_last_30_minutes(chromium, serving, opened, tmp_path):
    """New visits appear by themselves, but not after a click on Pause."""
    lake = Lake(tmp_path / "lake", create=True)

    def visits():
        land(lake, "acme", [visit(visited_at=datetime.now(UTC).replace(tzinfo=None))])

    visits()
    with serving(lake, trusted_proxies="127.0.0.1/32") as server:
        watched = opened(None, server.address)
        page = watched.page
        page.clock.install()
        enter(page, Dashboard(lake, server.address, {}).entrance("acme"))
        page.goto(f"{server.address}/app/now")
        asked = []
        page.on("request", lambda request: request.is_navigation_request() and asked.append(request.url))
        visits()
        page.clock.fast_forward(31_000)
        page.wait_for_selector("data[data-field=human_clicks][value='2']", timeout=0)
        page.get_by_role("button", name="Pause").click()
        asked.clear()
        page.clock.fast_forward(300_000)
        assert page.get_by_role("button", name="Follow").is_visible()
        assert asked == []
        visits()
        page.get_by_role("button", name="Follow").click()
        page.clock.fast_forward(31_000)
        page.wait_for_selector("data[data-field=human_clicks][value='3']", timeout=0)
        assert watched.problems == []
    lake.manifest.close()
