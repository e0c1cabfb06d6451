"""Draws the ratios to each peer as SVG: how much faster or slower we are, on a logarithmic scale."""

import math
from collections.abc import Iterable
from typing import Final
from xml.etree.ElementTree import Element, SubElement, tostring

from benchmarks.figures import Figure

CASES: Final = ("cold dashboard", "cold dashboard of one link", "import", "cached dashboard")
"""The cases in the picture, from top to bottom."""
_GREATER_IS_BETTER: Final = ("requests/s",)
_WIDTH, _LEFT, _RIGHT = 860, 330, 60  # widths of the picture, of its labels, and of the last number
_ROW, _HEADER, _TOP = 20, 34, 60  # heights of a bar's row and of a case's name, and the top of the first case
_STYLE: Final = """
text { font: 13px system-ui, sans-serif; fill: #1f2328 }
.title { font-size: 15px; font-weight: 600 } .case { font-weight: 600 }
.quiet { fill: #59636e } .grid { stroke: #d1d9e0 } .equal { stroke: #59636e }
.faster { fill: #1a7f5a } .slower { fill: #b4541a }
@media (prefers-color-scheme: dark) {
  text { fill: #f0f6fc } .quiet { fill: #9198a1 } .grid { stroke: #3d444d } .equal { stroke: #9198a1 }
  .faster { fill: #3fb68b } .slower { fill: #e0823d }
}
"""


def picture(figures: Iterable[Figure]) -> str:
    """Return an SVG of the peers' figures in CASES. A bar to the right of 1 means that we are faster, by that
    factor.
    """
    peers = [
        figure for figure in figures if figure.ratio and figure.case in CASES and not figure.who.startswith("itself")
    ]
    groups: dict[tuple[str, int], list[Figure]] = {}
    for figure in sorted(peers, key=lambda figure: (CASES.index(figure.case), figure.visits)):
        groups.setdefault((figure.case, figure.visits), []).append(figure)
    height = _TOP + len(groups) * _HEADER + len(peers) * _ROW + 10
    svg = Element("svg", xmlns="http://www.w3.org/2000/svg", viewBox=f"0 0 {_WIDTH} {height}", role="img")
    SubElement(svg, "title").text = "Our speed as a multiple of each peer's, on a logarithmic scale"
    SubElement(svg, "style").text = _STYLE
    _text(svg, 0, 18, "Our speed as a multiple of each peer's", "title")
    logarithms = [0.0, *(math.log10(speedup(figure)) for figure in peers)]
    least, most = math.floor(min(logarithms)), max(1, math.ceil(max(logarithms)))

    def place(factor: float) -> float:
        return _LEFT + (_WIDTH - _LEFT - _RIGHT) * (math.log10(factor) - least) / (most - least)

    for power in range(least, most + 1):
        x = f"{place(10**power):.1f}"
        line = {"x1": x, "x2": x, "y1": str(_TOP - 12), "y2": str(height - 10)}
        SubElement(svg, "line", {**line, "class": "grid" if power else "equal"})
        _text(svg, place(10**power), _TOP - 18, f"{10.0**power:g}", "quiet", "middle")
    y = _TOP
    for (case, visits), rows in groups.items():
        y += _HEADER
        _text(svg, 0, y - 10, f"{case}, {visits:,} visits", "case")
        for figure in rows:
            factor = speedup(figure)
            start, end = sorted((place(1), place(factor)))
            _text(svg, _LEFT - 10, y + 8, figure.who, "quiet", "end")
            shape = {"x": f"{start:.1f}", "y": f"{y - 3}", "width": f"{end - start:.1f}", "height": "14"}
            SubElement(svg, "rect", {**shape, "class": "faster" if factor >= 1 else "slower"})
            _text(svg, end + 6, y + 8, f"{factor:.2g}" if factor < 10 else f"{factor:.0f}")
            y += _ROW
    return tostring(svg, "unicode") + "\n"


def speedup(figure: Figure) -> float:
    """Return the ratio of our speed to a peer's; below 1, we are slower."""
    ratio = figure.ratio or 1
    return ratio if figure.unit in _GREATER_IS_BETTER else 1 / ratio


def _text(svg: Element, x: float, y: float, text: str, kind: str = "", anchor: str = "start") -> None:
    place = {"x": f"{x:.1f}", "y": f"{y:.1f}", "text-anchor": anchor}
    SubElement(svg, "text", {**place, "class": kind} if kind else place).text = text
