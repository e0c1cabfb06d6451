"""A shared link in a browser that is nobody: it opens, a page of a named origin embeds it, and no other."""

import re
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import pytest

TILE = "ul.tiles .tile .value"


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Another site, at two origins: its folder, and the port on which 127.0.0.1 and localhost serve it."""
    folder = tmp_path_factory.mktemp("site")
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=folder))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield folder, server.server_port
    server.shutdown()
    thread.join()
    server.server_close()


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_):
        """Nothing: the other site has no log."""


def refused(page, address):
    """Open a page whose frame the browser must refuse to fill; what it says about that."""
    with page.expect_event("console", lambda message: "frame-ancestors" in message.text) as console:
        page.goto(address)
    (frame,) = page.main_frame.child_frames
    frame.wait_for_url("chrome-error://chromewebdata/")
    return console.value.text


@pytest.fixture
def shared(opened, site):
    """Makes a share with the form, as an editor would; gives its address and the HTML for embedding it."""

    def shared(**fields):
        page = opened().goto("settings/shares")
        for name, value in {"name": "For readers", **fields}.items():
            page.fill(f"input[name={name}]", value)
        page.click("button.primary")
        code = page.locator(".panel:has(.secret) code").all_inner_texts()
        return code[0], code[-1]

    return shared


def test_a_second_browser_without_cookies_opens_a_share_and_so_does_a_phone_with_open_tables(
    shared, opened, axe, names, pictures
):
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


def test_a_named_origin_embeds_a_share_and_a_foreign_one_is_refused(shared, opened, site):
    folder, port = site
    named, foreign = f"http://127.0.0.1:{port}", f"http://localhost:{port}"
    _, frame = shared(embedders=named)
    (folder / "index.html").write_text(f"<!doctype html><title>Site</title><h1>Ours</h1>{frame}")
    page = opened(organization=None).page
    page.goto(f"{named}/index.html")
    embedded = page.frame_locator("iframe")
    embedded.locator("#time-series svg.series").wait_for()
    assert embedded.locator("h1").inner_text() == "For readers"
    assert "rgb" in embedded.locator(TILE).first.evaluate("one => getComputedStyle(one).color")
    assert page.context.cookies() == []
    assert f"frame-ancestors {named}" in refused(page, f"{foreign}/index.html")


def test_a_share_is_not_embedded_without_an_origin_or_by_another_page(shared, opened, site, dashboard):
    folder, port = site
    address, _ = shared()
    for embedded in (address, f"{dashboard.address}/app/sign-in"):
        (folder / "frame.html").write_text(f"<!doctype html><title>Site</title><iframe src='{embedded}'></iframe>")
        page = opened(organization=None).page
        assert "frame-ancestors 'none'" in refused(page, f"http://127.0.0.1:{port}/frame.html")
