"""Takes the README's picture of the dashboard: `uv run --group browser python -m tests.browser.picture`.

Needs Debian's packages chromium and fonts-inter. The traffic is from `traffic demo`.
"""

import os
import struct
import sys
import tempfile
import zlib
from pathlib import Path

from playwright.sync_api import sync_playwright

from tests.browser.demo import demo

PICTURE = Path(__file__).parents[2] / "service" / "core" / "pages" / "static" / "dashboard.png"
WINDOW = {"width": 1280, "height": 1290}
MAX_BYTES = 200_000
FONTS = """<?xml version="1.0"?><!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig><include>/etc/fonts/fonts.conf</include>
{}</fontconfig>""".format(
    "".join(
        f'<match target="pattern"><test name="family" qual="any"><string>{family}</string></test>'
        '<edit name="family" mode="prepend" binding="strong"><string>Inter</string></edit></match>'
        for family in ("system-ui", "sans", "sans-serif")
    )
)
"""A fontconfig file that makes Inter the system font: a machine's default font differs from what readers have."""


WORDS = b"tEXt", b"Description\0"
"""The type and keyword of the PNG chunk with the texts in the picture, by which a test detects an outdated picture."""


def with_words(png: bytes, words: str) -> bytes:
    """Return a PNG with a description added before its last chunk."""
    kind, keyword = WORDS
    body = kind + keyword + words.encode("latin-1", "replace")
    return png[:-12] + struct.pack(">I", len(body) - 4) + body + struct.pack(">I", zlib.crc32(body)) + png[-12:]


def take(address: str) -> None:
    """Take the picture of the page behind a sign-in link, once jobs have been found."""
    with tempfile.NamedTemporaryFile("w", suffix=".conf") as fonts, sync_playwright() as playwright:
        fonts.write(FONTS)
        fonts.flush()
        browser = playwright.chromium.launch(
            executable_path="/usr/bin/chromium",
            args=["--no-sandbox"],
            env={**os.environ, "FONTCONFIG_FILE": fonts.name},
        )
        page = browser.new_page(viewport=WINDOW, color_scheme="light")
        page.goto(address)
        page.get_by_role("button", name="Sign in to").click()
        page.wait_for_url("**/app/", wait_until="networkidle")
        while page.locator("data[data-field=undecided_jobs]").get_attribute("value") == "0":
            page.wait_for_timeout(1_000)
            page.reload(wait_until="networkidle")
        png = page.screenshot()
        words = page.locator("nav.pages a").all_inner_texts() + page.locator("h2:visible").all_inner_texts()
        PICTURE.write_bytes(with_words(png, "\n".join(words)))
        browser.close()


def main() -> None:
    with demo() as link:
        take(link)
    size = PICTURE.stat().st_size
    print(f"{PICTURE.name}: {size:,} bytes")
    if size > MAX_BYTES:
        sys.exit(f"The picture is larger than {MAX_BYTES:,} bytes.")


if __name__ == "__main__":
    main()
