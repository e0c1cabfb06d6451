"""The world map, drawn like the charts: countries shaded by visits, and a legend of the shades."""

import re
from collections.abc import Mapping
from itertools import zip_longest
from math import ceil, log, sqrt
from typing import Final

from markupsafe import Markup

from service.core.pages.assets import FOLDER
from service.core.pages.markup import joined

SHADES: Final = 5
"""Number of shades on a map, q1 to q5."""

_MAP: Final = (FOLDER / "map.svg").read_text("utf-8")
_MAP_VIEW_BOX: Final = re.findall(r'viewBox="([^"]+)"', _MAP)[0]
MAP_SHAPES: Final = {
    code: (tag, Markup(shape))  # noqa: S704  # our own file
    for tag, code, shape in re.findall(r'<(\w+) id="(\w+)" (.+)/>', _MAP)
}
"""Each country's SVG element and its attributes, by country code, in drawing order."""

_WORLD: Final = Markup(
    '<svg class="map" viewBox="{box}" aria-hidden="true" focusable="false">{countries}</svg>'
    '<ul class="legend shades">{keys}</ul>'
)
_SHADE: Final = Markup(
    '<li><svg viewBox="0 0 12 12" width="12" height="12">'
    '<rect class="q{shade}" width="12" height="12" rx="3"/></svg> {span}</li>'
)
_UNVISITED: Final = {code: Markup("<%s %s/>") % drawn for code, drawn in MAP_SHAPES.items()}
_SHADED: Final = Markup('<%s %s class="q%d"><title>%s: %s</title></%s>')


def world_map(counts: Mapping[str, int], names: Mapping[str, str]) -> Markup:
    """Return a map of countries in shades q1 to q5. Each shade begins at five times the visits of the previous shade.

    `counts` maps ISO 3166-1 alpha-2 codes to numbers of visits; codes that are not on the map, such as "unknown", are
    ignored. `names` maps codes to country names, for the tooltips. The legend states the counts of each shade.
    """
    visited = {code: count for code, count in counts.items() if count > 0 and code in MAP_SHAPES}
    highest = max(visited.values(), default=0)
    shades = {code: max(SHADES - round(log(highest / count, 5)), 1) for code, count in visited.items()}
    countries = (
        _SHADED % (tag, shape, shades[code], names.get(code, code), f"{visited[code]:,}", tag)
        if code in visited
        else _UNVISITED[code]
        for code, (tag, shape) in MAP_SHAPES.items()
    )
    least = [ceil(highest / (5 ** (SHADES - shade) * sqrt(5))) if shade > 1 else 1 for shade in range(1, SHADES + 1)]
    shown = sorted(set(shades.values()))
    keys = []
    for shade, darker in zip_longest(shown, shown[1:]):
        first, last = least[shade - 1], least[darker - 1] - 1 if darker else None
        span = f"{first:,} or more" if last is None else f"{first:,}" if first == last else f"{first:,}–{last:,}"
        keys.append(_SHADE.format(shade=shade, span=span))
    return _WORLD.format(box=_MAP_VIEW_BOX, countries=joined(*countries), keys=joined(*keys))
