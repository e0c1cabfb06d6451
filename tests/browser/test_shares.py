"""A share opens in a browser that is not signed in, and only configured origins can embed it."""

import re

import pytest

TILE = "ul.tiles .tile .value"
NAMED, FOREIGN = "http://127.0.0.1:8765", "http://localhost:8765"


def on_site(page, origin, frame):
    """Open a page of another site, with a frame."""
    html = f"<!doctype html><title>Site</title><h1>Ours</h1>{frame}"
    page.context.route(f"{origin}/", lambda route: route.fulfill(body=html, content_type="text/html"))
    page.goto(f"{origin}/")


def refused(page, origin, frame):
    """Open a page of another site with a frame that the browser must refuse to fill; return the browser's message."""
    with page.expect_event("console", lambda message: "frame-ancestors" in message.text) as console:
        on_site(page, origin, frame)
    (child,) = page.main_frame.child_frames
    child.wait_for_url("chrome-error://chromewebdata/")
    return console.value.text


@pytest.fixture
def shared(opened):
    """Make a share with the form, as an editor does; return its address and the HTML for embedding it."""

    def shared(**fields):
        page = opened().goto("settings/shares")
        for name, value in {"name": "For readers", **fields}.items():
            page.fill(f"input[name={name}]", value)
        page.click("button.primary")
        code = page.locator(".panel:has(.secret) code").all_inner_texts()
        return code[0], code[-1]

    return shared


def test_a_share_opens_in_a_browser_without_cookies(shared, opened, axe, names, pictures):
    address, _ = shared(short_code=names["short_code"])
    watched = opened(organization=None)
    page = watched.page
    assert page.goto(address).status == 200
    assert page.inner_text("h1") == "For readers"
    assert int(re.sub(r"\D", "", page.locator(TILE).first.inner_text())) > 0
    assert page.locator("table[data-entry='top-links'] tbody tr").count() >= 1
    assert page.locator("#time-series svg.series").is_visible()
    page.click("[data-theme-choice=dark]")
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    assert watched.overflow() == 0
    assert axe(page) == []
    assert page.context.cookies() == []
    assert watched.problems == []
    if pictures:
        page.screenshot(path=pictures / "shared.png", full_page=True)
    page.set_viewport_size({"width": 390, "height": 844})
    page.evaluate("for (const one of document.querySelectorAll('details')) one.open = true")
    assert axe(page) == []
    assert watched.overflow() == 0


def test_only_a_named_origin_can_embed_a_share(shared, opened):
    _, frame = shared(embedders=NAMED)
    page = opened(organization=None).page
    on_site(page, NAMED, frame)
    embedded = page.frame_locator("iframe")
    embedded.locator("#time-series svg.series").wait_for()
    assert embedded.locator("h1").inner_text() == "For readers"
    assert "rgb" in embedded.locator(TILE).first.evaluate("one => getComputedStyle(one).color")
    assert page.context.cookies() == []
    assert f"frame-ancestors {NAMED}" in refused(page, FOREIGN, frame)


def test_pages_without_named_origins_cannot_be_embedded(shared, opened, dashboard):
    address, _ = shared()
    for embedded in (address, f"{dashboard.address}/app/sign-in"):
        page = opened(organization=None).page
        assert "frame-ancestors 'none'" in refused(page, NAMED, f"<iframe src='{embedded}'></iframe>")
