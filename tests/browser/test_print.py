"""Printed pages: the tables are in them, folded or not, and what only a screen needs is not."""

import unicodedata

import pytest


def words(text):
    """The text without spaces and ligatures, which fonts add."""
    return "".join(unicodedata.normalize("NFKC", text).split())


def not_printed(page, text):
    """The cells of all tables of a page that a text of its print does not have."""
    cells = page.locator("table.rows tr > *").all_text_contents()
    assert len(cells) > 20
    return [cell for cell in cells if words(cell) not in words(text)]


@pytest.mark.parametrize(
    ("path", "has_script"), [("", True), ("", False), ("ai", True), ("times", False), ("agents", True)]
)
def test_the_print_has_the_text_of_every_table(opened, text_of, pictures, path, has_script):
    page = opened(java_script_enabled=has_script, color_scheme="dark").goto(path)
    pdf = page.pdf(format="A4")
    if pictures and has_script:
        (pictures / f"{path or 'overview'}.pdf").write_bytes(pdf)
    assert not_printed(page, text_of(pdf)) == []


def test_the_print_has_no_controls(opened, text_of):
    printed = words(text_of(opened().goto("").pdf(format="A4")))
    assert [control for control in ("Signout", "Runityourself", "Apply") if control in printed] == []
