"""Nothing is drawn over anything else or outside its card, and tables cut off on a phone visibly continue."""

import pytest

from tests.browser.test_layout import color_of

PHONE = {"width": 390, "height": 844}
LONG = "/wp-content/plugins/hello-world/wp_filemanager_backup_of_last_year.php"


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_table_that_is_cut_off_has_a_visible_shadow(opened, theme):
    page = opened(viewport=PHONE, color_scheme=theme).goto("")
    table = "#ai-platform-market-share .scroll, #ai-sources .scroll"
    width = page.locator(table).first.evaluate("one => one.scrollWidth - one.clientWidth > 20 ? one.clientWidth : 0")
    assert width, "the table is not cut"
    edge, card = ([int(part) for part in color_of(page, table, x).split(",")[:3]] for x in (width - 1, 3))
    assert sum(abs(one - other) for one, other in zip(edge, card, strict=True)) > 60


def test_a_phone_shows_visits_next_to_a_long_path(opened):
    page = opened(viewport=PHONE).goto("paths")
    page.eval_on_selector("#paths tbody th a", f"one => {{ one.textContent = '{LONG}'; }}")
    assert page.locator("#paths thead th:nth-child(2)").bounding_box()["x"] < 300


def test_a_long_organization_name_stays_beside_the_brand(opened):
    page = opened(viewport=PHONE).goto("")
    page.eval_on_selector(".organization", "one => { one.textContent = 'international-motors'; }")
    brand, name = (page.locator(one).bounding_box() for one in (".brand", ".organization"))
    assert abs(brand["y"] + brand["height"] / 2 - name["y"] - name["height"] / 2) < 4


def test_periods_fit_on_one_line_on_a_phone(opened):
    page = opened(viewport=PHONE).goto("")
    page.click(".fold > summary")
    heights = page.eval_on_selector_all(".filters .range", "all => all.map(one => one.offsetHeight)")
    assert max(heights) < 40


@pytest.mark.parametrize("width", [390, 768, 1280])
def test_chart_labels_end_within_the_chart(opened, width):
    page = opened(viewport={"width": width, "height": 900}).goto("")
    outside = """all => all.filter(one => one.getBoundingClientRect().right
      > one.ownerSVGElement.getBoundingClientRect().right + 1).map(one => one.textContent)"""
    assert page.eval_on_selector_all("#time-series text.label", outside) == []


def test_the_shipping_day_is_labelled_above_the_columns(opened, names):
    page = opened().goto(f"jobs/{names['job']}")
    words = page.eval_on_selector_all("text.shipped", "all => all.map(one => one.getBoundingClientRect().bottom)")
    tops = page.eval_on_selector_all("path.ai, path.other", "all => all.map(one => one.getBoundingClientRect().top)")
    assert len(words) == 2  # approved, shipped
    assert max(words) <= min(tops)


@pytest.mark.parametrize("path", ["robots?block=OpenAI:trained", "settings/cache", "jobs/{job}"])
def test_panels_tabs_and_leads_are_at_least_10_pixels_apart(opened, names, path):
    page = opened().goto(path.format(**names))
    gaps = """() => [...document.querySelectorAll("main .panel, main .tabs, main .lead")]
      .map(one => one.getBoundingClientRect()).filter(box => box.height)
      .flatMap((box, place, all) => place ? [box.top - all[place - 1].bottom] : [])"""
    assert min(page.evaluate(gaps)) >= 10


def test_the_facts_about_a_job_fit_in_one_row_on_a_laptop(opened, names):
    page = opened().goto(f"jobs/{names['approved']}")
    tops = page.eval_on_selector_all("main > .facts dt", "all => all.map(one => one.getBoundingClientRect().top)")
    assert (len(tops), len(set(tops))) == (6, 1)


def test_a_single_row_of_evidence_fits_on_a_phone(opened, names):
    page = opened(viewport=PHONE).goto(f"jobs/{names['approved']}")
    rights = page.eval_on_selector_all("dl[data-entry] dd", "all => all.map(one => one.getBoundingClientRect().right)")
    assert len(rights) > 5
    assert max(rights) <= 390
