"""Every page in both themes and four widths: accessible, without overflow, errors or foreign requests; tables fit."""

import base64
from itertools import product

import pytest

from tests.browser.traffic import HOSTILE, OF_ACME, PAGES

WIDTHS = (360, 768, 1280, 1920)
THEMES = ("light", "dark")
IMPORTANT = ("overview", "link", "api-keys", "job")
CONDITIONS = {
    "dark": {"color_scheme": "dark"},
    "390px": {"viewport": {"width": 390, "height": 844}},
    "zoomed": {"viewport": {"width": 640, "height": 450}, "device_scale_factor": 2},  # 1280 px at 200 %
}
HIDDEN_PARTS = """tables => tables
  .filter(table => table.scrollWidth > table.clientWidth && !table.closest("details:not([open])"))
  .map(table => table.getAttribute("aria-label"))"""
CUT = """scrolls => scrolls.filter(one => {
  const {paddingLeft, paddingRight} = getComputedStyle(one), table = one.querySelector("table");
  const room = one.clientWidth - parseFloat(paddingLeft) - parseFloat(paddingRight);
  return table.offsetWidth > room && !one.closest("details:not([open])");
}).map(one => one.getAttribute("aria-label"))"""
"""The tables that are wider than the room in their panel."""
HIGH = """rows => rows.filter(row => {
  const line = parseFloat(getComputedStyle(row).lineHeight);
  return row.offsetHeight - 16 > 3.3 * line;
}).map(row => row.textContent)"""
"""The rows that are higher than three lines."""
BROKEN = """cells => cells.flatMap(cell => [...cell.textContent.matchAll(/\\b[A-Za-z0-9]{2,14}\\b/g)].flatMap(found => {
  const walker = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT), range = document.createRange();
  for (let at = 0; walker.nextNode(); at += walker.currentNode.length) {
    const start = found.index - at, end = start + found[0].length;
    if (start < 0 || end > walker.currentNode.length) continue;
    range.setStart(walker.currentNode, start);
    range.setEnd(walker.currentNode, end);
    if (new Set([...range.getClientRects()].map(box => Math.round(box.top))).size > 1) return [found[0]];
  }
  return [];
}))"""
"""The words that are split between lines of a cell."""
PRINTED_OVER = """cells => cells.filter(one => one.scrollWidth > one.offsetWidth + 1 && !one.matches(".address"))
  .map(one => one.textContent.slice(0, 40))"""
"""The cells whose text overlaps other cells."""
EMPTY = """panels => panels.filter(one => {
  const last = one.querySelector(":scope > .foot");
  return last.offsetTop - last.previousElementSibling.offsetTop - last.previousElementSibling.offsetHeight
    > one.offsetHeight / 2.2;
}).map(one => one.id)"""
"""The panels that are nearly half empty."""
FAULTS = {
    "cut without an ellipsis": """[...document.querySelectorAll("main *, .top *")].filter(one => {
      const style = getComputedStyle(one), box = one.getBoundingClientRect();
      return style.overflowX === "hidden" && box.width > 1 && one.scrollWidth > one.clientWidth + 1
        && (style.textOverflow !== "ellipsis" || style.display !== "block" && style.display !== "inline-block"
            && !style.display.includes("table"));
    })""",
    "cut placeholder": """[...document.querySelectorAll("input[placeholder]")].filter(one => {
      const typed = one.value;
      one.value = one.placeholder;
      const isCut = one.scrollWidth > one.clientWidth;
      one.value = typed;
      return isCut;
    })""",
    "text close to a number": """[...document.querySelectorAll(".rows :is(td, th) + :is(td, th)")].filter(one => {
      const [before, own] = [getComputedStyle(one.previousElementSibling), getComputedStyle(one)];
      return one.checkVisibility() && before.textAlign === "end" && own.textAlign === "start"
        && before.display !== "none" && parseFloat(own.paddingLeft) < 16;
    })""",
    "foot or note apart": """[...document.querySelectorAll(".panel > .foot, .panel > .scroll + .note")].filter(one => {
      const [panel, own] = [one.parentElement.getBoundingClientRect(), one.getBoundingClientRect()];
      const before = one.previousElementSibling.getBoundingClientRect();
      return one.matches(".foot") ? panel.bottom - own.bottom > 24 : own.top - before.bottom > 16;
    })""",
    "half-empty panel": """[...document.querySelectorAll(".panel > .foot")].filter(one => {
      const gap = one.getBoundingClientRect().top - one.previousElementSibling.getBoundingClientRect().bottom;
      return gap > one.parentElement.offsetHeight / 2.2;
    })""",
    "broken word": f"""({BROKEN})([...document.querySelectorAll(
      ".facts dd:not(:has(code)), .rows :is(td, th):not(.address, .long, .untrusted, :has(.sub))"
    )].filter(one => one.checkVisibility())).map(word => ({{ textContent: word }}))""",
}
"""JavaScript for each kind of fault that returns the elements with it."""
COLOR = """async ([picture, x]) => {
  const image = new Image();
  image.src = `data:image/png;base64,${picture}`;
  await image.decode();
  const drawing = new OffscreenCanvas(image.width, image.height).getContext("2d");
  drawing.drawImage(image, 0, 0);
  return drawing.getImageData(x ?? image.width / 2, image.height / 2, 1, 1).data.join();
}"""


def color_of(page, selector, x=None):
    """Return the colour drawn in the middle of an element, or at a distance in pixels from its left edge."""
    picture = base64.b64encode(page.locator(selector).first.screenshot()).decode()
    blank = page.context.browser.new_page()
    try:
        return blank.evaluate(COLOR, [picture, x])
    finally:
        blank.close()


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_accessible_and_fits_every_window(opened, axe, pictures, names, name):
    watched = opened()
    page = watched.goto(PAGES[name].format(**names))
    assert axe(page) == []
    for theme in THEMES:
        page.emulate_media(color_scheme=theme)
        for width in WIDTHS:
            page.set_viewport_size({"width": width, "height": 900})
            assert watched.overflow() == 0, f"{width} px, {theme}"
            if pictures:
                page.screenshot(path=pictures / f"{name}-{width}-{theme}.png", full_page=True)
    assert watched.problems == []


@pytest.mark.parametrize("name", PAGES)
def test_a_page_has_no_layout_faults(opened, names, name):
    page, found = opened().goto(PAGES[name].format(**names)), {}
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 900})
        for fault, script in FAULTS.items():
            texts = page.evaluate(
                f"({script}).map(one => (one.textContent || one.placeholder || one.outerHTML).trim().slice(0, 40))"
            )
            found |= {(fault, width): texts[:5]} if texts else {}
    assert found == {}


@pytest.mark.parametrize(("width", "paths"), [(1280, PAGES.values()), (768, ["", "agents", "links", "people"])])
def test_tables_do_not_scroll_sideways_on_a_laptop_or_tablet(opened, names, width, paths):
    watched = opened(viewport={"width": width, "height": 900})
    for path in paths:
        page = watched.goto(path.format(**names))
        assert page.eval_on_selector_all(".scroll", HIDDEN_PARTS) == [], path


@pytest.mark.parametrize("width", [768, 1024, 1280])
def test_table_rows_have_at_most_three_lines_and_whole_words(opened, width):
    watched = opened(viewport={"width": width, "height": 900})
    for path in ("", "ai", "agents", "links", "people", "domains", "ai/ChatGPT", "operators/OpenAI", "agents/GPTBot"):
        page = watched.goto(path)
        assert page.eval_on_selector_all(".scroll", CUT) == [], path
        assert page.eval_on_selector_all(".panel > .scroll tbody tr", HIGH) == [], path
        assert page.eval_on_selector_all(".panel > .scroll tbody :is(td, th):not(.address)", BROKEN) == [], path


@pytest.mark.parametrize("width", [390, 1280])
def test_long_paths_do_not_overlap_numbers(opened, width):
    page = opened(HOSTILE, viewport={"width": width, "height": 900}).goto("paths?range=7d")
    assert page.locator("#paths tbody tr").count() > 5
    assert page.eval_on_selector_all("#paths tbody tr", HIGH) == []
    assert page.eval_on_selector_all(".rows tbody :is(td, th)", PRINTED_OVER) == []


def test_no_panel_is_half_empty(opened):
    watched = opened(viewport={"width": 1280, "height": 900})
    for path in ("", "times", "people", "ai"):
        assert watched.goto(path).eval_on_selector_all(".panel:has(> .foot)", EMPTY) == [], path


def test_a_phone_shows_heading_tabs_and_visits_without_scrolling(opened):
    for path in ("", "agents", "links", "people"):
        page = opened(viewport={"width": 390, "height": 844}).goto(path)
        warning = page.locator("body > .notice").evaluate("one => one.offsetHeight + 24")  # with its margins
        assert page.locator("h1").bounding_box()["y"] - warning < 200
        rights = page.eval_on_selector_all(".pages a", "links => links.map(one => one.getBoundingClientRect().right)")
        rights += page.eval_on_selector_all(
            ".panel > .scroll th:nth-child(2)", "heads => heads.map(one => one.getBoundingClientRect().right)"
        )
        assert max(rights) <= 390


@pytest.mark.parametrize(("width", "rows"), [(390, 2), (768, 1), (1280, 1)])
def test_the_overview_figures_fill_whole_rows(opened, width, rows):
    page = opened(viewport={"width": width, "height": 900}).goto("")
    for part in ("label", "value"):
        tops = page.eval_on_selector_all(f".tile .{part}", "all => all.map(one => one.getBoundingClientRect().top)")
        assert (len(tops), len(set(tops))) == (6, rows)


def test_a_phone_shows_priority_and_status_of_jobs_in_short_rows(opened):
    page = opened(viewport={"width": 390, "height": 844}).goto("jobs")
    boxes = page.eval_on_selector_all(
        ".rows.jobs tr > :nth-child(-n + 3)", "cells => cells.map(one => one.getBoundingClientRect().right)"
    )
    assert len(boxes) >= 6
    assert max(boxes) <= 390
    assert page.eval_on_selector_all(".rows.jobs tbody tr", HIGH) == []


def test_the_jobs_table_fits_on_a_tablet(opened):
    page = opened(viewport={"width": 768, "height": 1024}).goto("jobs")
    assert page.locator(".rows.jobs .sub").count() > 1
    assert page.eval_on_selector_all(".rows.jobs tbody tr", HIGH.replace("3.3", "4.5")) == []  # title and sentences
    assert page.eval_on_selector_all(".scroll", CUT) == []


def test_comparison_tables_fit_on_a_phone(opened):
    for path in ("", "ai", "agents", "people", "paths", "domains"):
        page = opened(viewport={"width": 360, "height": 800}).goto(f"{path}?range=7d&compare=before")
        assert page.locator("table.comparing").count(), path
        page.eval_on_selector_all(".data-table", "all => all.forEach(one => { one.open = true; })")
        assert page.locator(".scroll:has(.comparing)").evaluate_all(HIDDEN_PARTS) == [], path
        assert page.locator(".comparing td.change").first.is_visible()


@pytest.mark.parametrize("name", [name for name in PAGES if name not in OF_ACME])
def test_text_from_attackers_is_shown_as_plain_text(opened, name):
    watched = opened(HOSTILE)
    page = watched.goto(PAGES[name])
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 900})
        assert watched.overflow() == 0, f"{width} px"
    addresses = page.eval_on_selector_all("a[href]", "links => links.map(link => link.protocol)")
    assert set(addresses) <= {"http:", "https:"}
    assert page.locator("main script, main img, main iframe").count() == 0
    assert watched.problems == []


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("chosen", THEMES)
def test_kinds_of_visits_stay_distinguishable_in_system_colours(opened, theme, chosen):
    page = opened(forced_colors="active", color_scheme=theme).goto("")
    page.get_by_role("button", name=chosen.capitalize()).click()
    ground = color_of(page, "main", 1)
    kinds = [color_of(page, f"#time-series .legend rect.{kind}") for kind in ("people", "ai", "other")]
    assert kinds == [color_of(page, f".tile.{kind} .label", 4) for kind in ("people", "ai", "other")]
    assert len({ground, *kinds}) == 4
    colors = page.eval_on_selector_all("h1, .panel h2", "all => all.map(one => getComputedStyle(one).color)")
    assert len(set(colors)) == 1
    assert ground in {"255,255,255,255", "0,0,0,255"}


@pytest.mark.parametrize(("name", "condition"), [*product(IMPORTANT, CONDITIONS)])
def test_important_pages_are_accessible_in_every_condition(opened, axe, names, name, condition):
    assert axe(opened(**CONDITIONS[condition]).goto(PAGES[name].format(**names))) == []


@pytest.mark.parametrize(
    ("organization", "path", "status"), [(None, "sign-in", 200), ("acme", "nothing", 404), ("newcomer", "", 200)]
)
def test_sign_in_error_and_guided_start_pages_are_accessible(opened, axe, organization, path, status):
    assert axe(opened(organization).goto(path, status)) == []


def test_a_first_page_refused_by_the_rate_limit_is_styled(opened, axe):
    watched = opened(organization=None)
    for _ in range(60):
        watched.page.request.get(f"{watched.address}/healthz")
    page = watched.goto("sign-in", 429)
    assert page.locator("main").evaluate("main => getComputedStyle(main).maxWidth") == "560px"
    assert [problem for problem in watched.problems if "CSP" in problem] == []
    assert axe(page) == []
    assert watched.overflow() == 0


@pytest.mark.parametrize("path", ["", "jobs/{job}", "jobs/{approved}", "settings/agent-hooks/{hook}"])
def test_opened_tables_commands_and_forms_are_accessible(opened, axe, names, path):
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
def test_pages_with_new_secrets_or_errors_are_accessible(opened, axe, path, field, good, bad):
    page = opened().goto(path)
    for value, shown in ((good, ".secret"), (bad, ".notice.bad")):
        page.fill("input[name=name]", "new")
        page.fill(f"input[name={field}]", value)
        page.click("button.primary")
        page.wait_for_selector(shown)
        assert axe(page) == []
