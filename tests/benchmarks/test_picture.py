"""The picture of the figures."""

from itertools import pairwise
from xml.etree.ElementTree import fromstring

import pytest

from benchmarks.figures import Figure
from benchmarks.picture import CASES, picture
from tests.support.docs import ROOT

BENCHMARKS = ROOT / "benchmarks"
SVG = "{http://www.w3.org/2000/svg}"


def drawn(*figures):
    """The texts of a picture, its bars as (class, left end, right end), and where its lines stand."""
    svg = fromstring(picture(figures))
    texts = [text.text for text in svg.iter(f"{SVG}text")]
    bars = [
        (bar.get("class"), float(bar.get("x")), float(bar.get("x")) + float(bar.get("width")))
        for bar in svg.iter(f"{SVG}rect")
    ]
    return texts, bars, [float(line.get("x1")) for line in svg.iter(f"{SVG}line")]


def of(case, unit, ratio, who="a peer"):
    return Figure(case, unit, 1, 1, 1, who, ratio, 1_000)


@pytest.mark.parametrize(
    ("unit", "ratio", "expected", "text"),
    [("ms", 0.1, "faster", "10"), ("ms", 2, "slower", "0.5"), ("requests/s", 2, "faster", "2")],
)
def test_a_bar_says_who_is_faster_and_by_how_much(unit, ratio, expected, text):
    texts, ((kind, start, end),), lines = drawn(of("import", unit, ratio))
    assert kind == expected
    assert text in texts
    assert {"import, 1,000 visits", "a peer"} <= set(texts)
    equal = lines[texts.index("1") - 1]
    assert (start if expected == "faster" else end) == pytest.approx(equal, abs=0.2)


def test_the_scale_is_logarithmic_and_bars_end_on_it():
    _, bars, lines = drawn(of("import", "s", 0.001), of("cold dashboard", "ms", 0.01), of("cold dashboard", "ms", 1))
    steps = [after - before for before, after in pairwise(lines)]
    assert steps == pytest.approx([steps[0]] * 3, abs=0.2)
    assert [end for _, _, end in bars] == pytest.approx([lines[2], lines[0], lines[3]], abs=0.2)


def test_only_peers_are_drawn_and_without_any_there_is_a_picture_too():
    other = [Figure("import", "s", 1, 1, 1), of("on disk", "bytes", 0.5), of("import", "s", 1, "itself at 5 visits")]
    assert drawn(*other)[1] == []


def test_the_picture_of_the_documents_is_that_of_their_table():
    rows = [line.strip("|").split("|") for line in (BENCHMARKS / "figures.md").read_text("utf-8").splitlines()]
    cells = [[cell.strip() for cell in row] for row in rows if len(row) == 10]
    figures = [
        Figure(case, unit, 0, 0, 0, who, float(ratio) if ratio else None, int(visits.replace(",", "")))
        for case, visits, who, unit, _, _, _, ratio, *_ in cells
        if case in CASES
    ]
    assert len(figures) > 10
    assert (BENCHMARKS / "ratios.svg").read_text("utf-8") == picture(figures)
