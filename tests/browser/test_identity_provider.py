"""A viewer of a real identity provider signs in by the button, sees, cannot write, and signs out."""

import re
import socket
from datetime import UTC, datetime, timedelta

import pytest

from data import Lake
from data.ingest.importer import Importer, Options
from service.demo.sample import Sample
from tests.browser.conftest import Watched
from tests.support.provider import settings_of


@pytest.fixture
def visitor(chromium, serving, identity_provider, tmp_path):
    """A browser at a server of its own, whose users sign in at the provider; nothing else can be reached."""
    lake = Lake(tmp_path / "lake", create=True)
    Sample(200, datetime.now(UTC).date() - timedelta(days=1), 3).write(tmp_path / "access.log")
    Importer(lake).run(tmp_path / "access.log", Options("acme"))
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    address = f"http://127.0.0.1:{port}"
    with serving(lake, "--port", port, public_url=address, **settings_of(identity_provider)):
        context = chromium.new_context(reduced_motion="reduce")  # pages change at once, none is left while it fades in
        context.route(re.compile(rf"^(?!{address}/|{identity_provider}/)"), lambda route: route.abort())
        watched = Watched(context.new_page(), address)
        yield watched
        context.close()
    lake.manifest.close()


def test_a_viewer_of_the_provider_signs_in_sees_cannot_write_and_signs_out(visitor, identity_provider, axe):
    page = visitor.page
    page.goto(f"{visitor.address}/app/links?range=7d")
    assert axe(page) == []
    page.get_by_role("link", name="Sign in with localhost").click()
    page.wait_for_url(f"{identity_provider}/**")
    page.get_by_role("button", name="vera").click()
    page.wait_for_url(f"{visitor.address}/app/links?range=7d")

    page.get_by_role("link", name="Overview").click()
    page.wait_for_selector(".tiles")
    assert page.locator(".organization").inner_text() == "acme"
    visitor.goto("settings/api-keys")
    assert page.locator("input[name=name]").count() == 0
    with page.expect_navigation() as navigation:
        page.evaluate("""() => {
          const form = document.createElement("form");
          form.method = "post";
          document.body.append(form);
          form.submit();
        }""")
    assert navigation.value.status == 403

    visitor.goto("")
    page.get_by_role("button", name="Sign out").click()
    page.wait_for_url("**/app/sign-in?signed-out=here")
    assert axe(page) == []
    page.get_by_role("link", name="Sign out of localhost").click()
    page.wait_for_url(f"{identity_provider}/**")
    page.get_by_role("button", name="End session").click()
    page.wait_for_url(f"{visitor.address}/app/sign-in")
    visitor.page.goto(f"{visitor.address}/app/")
    assert page.url.startswith(f"{visitor.address}/app/sign-in")
    wanted = ("request to", "Failed to load")  # of what the provider's pages load from elsewhere, and of the 403
    assert [one for one in visitor.problems if not any(text in one for text in wanted)] == []
