"""The pages' resources are small, from the same origin, and allowed by the Content-Security-Policy."""

import gzip
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

import service.core.pages
from service.dashboard import panels
from service.dashboard.navigation import NAMED

FOLDER = Path(service.core.pages.__file__).parent
SERVICE = FOLDER.parents[1]
STATIC = FOLDER / "static"
COUNTRIES = Path(__file__).parents[3] / "queries" / "names" / "countries.sql"
SVG = "{http://www.w3.org/2000/svg}"


@pytest.mark.parametrize(
    ("name", "most"), [("app.js", 6_000), ("app.css", 8_500), ("map.svg", 8_500), ("icon.svg", 500)]
)
def test_every_static_file_is_small(name, most):
    assert len(gzip.compress((STATIC / name).read_bytes(), 9)) <= most


PICTURE = STATIC / "dashboard.png"


def test_the_readme_picture_is_small():
    assert PICTURE.stat().st_size <= 200_000


def test_the_readme_picture_is_up_to_date():
    """To update it: uv run --group browser python -m tests.browser.picture"""
    words = PICTURE.read_bytes().partition(b"tEXtDescription\0")[2].decode("latin-1")
    pages = [*(page.title for page in NAMED), "To do", "Settings"]
    assert words.startswith("\n".join([*pages, *(panel.title for panel in panels.OVERVIEW)]))


def test_static_files_load_nothing_external():
    css, script = ((STATIC / name).read_text("utf-8") for name in ("app.css", "app.js"))
    assert not re.findall(r"url\(|@import", css)
    assert not re.findall(r"https?:", script + css)


def test_the_script_inserts_no_html_and_cannot_be_closed_early():
    script = (STATIC / "app.js").read_text("utf-8")
    assert not re.findall(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|new Function|</", script)


def test_templates_have_no_inline_style_or_script():
    templates = sorted(SERVICE.rglob("templates/*.html"))
    assert len(templates) > 20
    for path in templates:
        text = path.read_text("utf-8")
        if path.name == "report.html":  # a separate file that loads nothing, and therefore contains its style
            assert text.count("<style>") == 1
            text = text.replace("<style>", "")
        if path.name == "bare.html":  # our script, which the Content-Security-Policy allows by its hash
            text = text.replace('<script type="module">{{ script }}</script>', "")
        if path.name == "problem.html":  # our style, which the Content-Security-Policy allows by its hash
            text = text.replace("<style>{{ refused_style }}</style>", "")
        assert not re.findall(r"\sstyle=|\son\w+=|<style|<script", text), path.name


MAP = STATIC / "map.svg"


@pytest.fixture(scope="module")
def world():
    """The map as a tree of shapes, each with the code of its country."""
    return ElementTree.parse(MAP).getroot()


@pytest.mark.parametrize(
    "fact",
    ["Natural Earth", "public domain", "world-atlas 2.0.2", "d3-geo 3.1.2", "topojson-simplify 3.0.3", "make_map.mjs"],
)
def test_the_map_file_names_its_source(fact):
    assert fact in MAP.read_text("utf-8").partition("-->")[0]


def test_the_map_has_every_country_but_antarctica_once(world):
    drawn = [element.get("id") for element in world]
    codes = set(re.findall(r"\('([A-Z]{2})', '", COUNTRIES.read_text("utf-8")))
    assert len(codes) > 240
    assert len(drawn) == len(set(drawn))
    assert codes - set(drawn) == {"AQ"}


def test_small_countries_are_circles_within_the_map(world):
    _, _, width, height = map(int, world.get("viewBox").split())
    circles = world.findall(f"{SVG}circle")
    assert circles
    for circle in circles:
        assert 0 <= int(circle.get("cx")) <= width
        assert 0 <= int(circle.get("cy")) <= height


def test_countries_are_drawn_with_relative_lines(world):
    paths = world.findall(f"{SVG}path")
    assert paths
    assert not [path.get("id") for path in paths if re.search(r"[^mz\d\s-]", path.get("d"))]
