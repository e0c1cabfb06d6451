"""Every page in both themes and four widths: nothing overflows, no error, no other origin."""

import pytest

from tests.browser.traffic import HOSTILE, PAGES

WIDTHS = (360, 768, 1280, 1920)
THEMES = ("light", "dark")


@pytest.mark.parametrize("name", PAGES)
def test_a_page_fits_every_window_and_asks_its_own_server_only(opened, pictures, short_code, name):
    watched = opened()
    page = watched.goto(PAGES[name].format(short_code=short_code))
    for theme in THEMES:
        page.emulate_media(color_scheme=theme)
        for width in WIDTHS:
            page.set_viewport_size({"width": width, "height": 900})
            assert watched.overflow() == 0, f"{width} px, {theme}"
            if pictures:
                page.screenshot(path=pictures / f"{name}-{width}-{theme}.png", full_page=True)
    assert watched.problems == []


@pytest.mark.parametrize("name", [name for name in PAGES if name not in {"link", "ai-source"}])
def test_words_of_attackers_are_only_words(opened, name):
    watched = opened(HOSTILE)
    page = watched.goto(PAGES[name])
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 900})
        assert watched.overflow() == 0, f"{width} px"
    addresses = page.eval_on_selector_all("a[href]", "links => links.map(link => link.protocol)")
    assert set(addresses) <= {"http:", "https:"}
    assert page.locator("main script, main img, main iframe").count() == 0
    assert watched.problems == []
