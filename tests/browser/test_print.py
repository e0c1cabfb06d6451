"""Printed pages: the tables are in them, folded or not, and what only a screen needs is not."""

import unicodedata

import pytest


def words(text):
    """The text without spaces and ligatures, which fonts add."""
    return "".join(unicodedata.normalize("NFKC", text).split())


@pytest.mark.parametrize(
    ("path", "has_script"), [("", True), ("", False), ("ai", True), ("times", False), ("agents", True)]
)
def test_the_print_has_the_text_of_every_table(opened, text_of, pictures, path, has_script):
    page = opened(java_script_enabled=has_script, color_scheme="dark").goto(path)
    cells = page.locator("table.rows tr > *").all_text_contents()
    pdf = page.pdf(format="A4")
    if pictures and has_script:
        (pictures / f"{path or 'overview'}.pdf").write_bytes(pdf)
    printed = words(text_of(pdf))
    assert len(cells) > 20
    assert [cell for cell in cells if words(cell) not in printed] == []


def test_the_print_has_no_controls(opened, text_of):
    printed = words(text_of(opened().goto("").pdf(format="A4")))
    assert "Signout" not in printed
    assert "Runityourself" not in printed
    assert "Apply" not in printed
