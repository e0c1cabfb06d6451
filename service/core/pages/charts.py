"""Charts as SVG, drawn on the server: rows of an answer in, markup out.

Charts are hidden from screen readers; the table below each has the same content. Colours are in app.css: classes name
the meaning of a shape (people, ai, other). Text is never stretched: labels are at percentages of the real width, and
only the shapes between them are stretched.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import date
from math import ceil
from typing import Any, Final

from markupsafe import Markup, escape

from service.core.pages.formats import short_day
from service.core.pages.markup import joined
from service.core.pages.spans import Label

HEIGHT: Final = 200
"""Pixels from the baseline of a chart to its top gridline."""
LEAST: Final = 4
"""Minimum width of a share in a bar, in percent."""
END: Final = 0.925
"""Share of a chart's width after which labels are right-aligned: centred, they would stick out on phones."""
MAX_WIDE: Final = 12
"""Maximum number of columns that are wide enough for centred labels anywhere."""
TOP: Final = 10
"""Pixels above the top gridline, for half a line of text."""
_FRAME: Final = Markup(
    '<svg class="series" width="100%" height="{height}" aria-hidden="true" focusable="false" data-count="{count}">'
    "{grid}{shapes}{labels}</svg>"
)
_STRETCHED: Final = Markup(
    '<svg y="{top}" width="100%" height="{height}" viewBox="0 0 {width} {height}" preserveAspectRatio="none">'
    "{shapes}</svg>"
)
_GRIDLINE: Final = Markup(
    '<line class="grid" x2="100%" y1="{y}" y2="{y}"/><text class="scale" x="-8" y="{y}">{text}</text>'
)
_LABEL: Final = Markup('<text class="{classes}" x="{x}%" y="{y}">{text}</text>')
_PATH: Final = Markup('<path class="{kind}" d="{path}"/>')
_PREVIOUS: Final = Markup('<polyline class="previous" points="{points}"/>')
_HATCH: Final = Markup(
    '<pattern id="{id}" width="5" height="5" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">'
    '<rect class="{id}" width="2.5" height="5"/></pattern>'
)
_HATCHES: Final = _HATCH.format(id="hatch") + _HATCH.format(id="void")
"""Hatchings: `hatch`, over columns, in the background's colour; `void`, over the full height, in the lines' colour."""
_HATCHED: Final = Markup('<rect class="{kind}" x="{x}%" y="{y}" width="{width}%" height="{height}" fill="url(#{id})"/>')
_STEP: Final = Markup(
    '<line class="shipped" x1="{x}%" x2="{x}%" y1="{top}" y2="{bottom}"/>'
    '<text class="shipped" x="{x}%" dx="{dx}" y="{y}" text-anchor="{anchor}">{text}</text>'
)
_MARK: Final = Markup(
    '<line class="event" x1="{x}%" x2="{x}%" y1="14" y2="{y}"/>'
    '<text class="event" x="{x}%" y="8" text-anchor="middle">{text}</text>'
)
_BAR: Final = Markup(
    '<svg class="bar" viewBox="0 0 100 4" preserveAspectRatio="none" focusable="false" {role}>'
    '<rect class="track" width="100" height="4"/>'
)
_SPARKLINE: Final = Markup(
    '<svg class="sparkline" viewBox="0 0 80 20" width="80" height="20" aria-hidden="true" focusable="false">'
    '<polyline points="{points}"/><circle cx="{x}" cy="{y}" r="2"/></svg>'
)
_MULTIPLES: Final = Markup('<ul class="multiples">{items}</ul>')
_MULTIPLE: Final = Markup('<li><span class="name">{name}</span>{line}<span class="last">{last}</span></li>')
_NOTHING: Final = Markup("")
_NO_MARKS: Final[Mapping[int, str]] = {}


def time_series(
    rows: Sequence[Mapping[str, Any]],
    previous: Sequence[Mapping[str, Any]] | None,
    labels: Iterable[Label],
    *,
    partial: Collection[int] = (),
    ahead: Collection[int] = (),
    missing: Collection[int] = (),
    marks: Mapping[int, str] = _NO_MARKS,
) -> Markup:
    """Draw columns of people, AI-related and other visits for each hour, day, week or month. Empty without rows.

    `rows` have total_visits, human_clicks and ai_visits, the earliest first. `previous` are the rows of the previous
    period, drawn as a dashed line over the columns in the same positions. Incomplete columns (`partial`) are hatched;
    columns for times that have not begun (`ahead`) or that lack data (`missing`) are hatched over the full height of
    the chart. `marks` are short texts at the top of columns, each with a line down to the baseline.
    """
    if not rows:
        return _NOTHING
    totals = [row["total_visits"] for row in rows]
    before = [row["total_visits"] for row in previous or ()][: len(rows)]
    scale = _gridlines(max(*totals, *before, 0, 0))
    people = [row["human_clicks"] for row in rows]
    ai = [row["ai_visits"] for row in rows]
    other = [total - person - agent for total, person, agent in zip(totals, people, ai, strict=True)]
    shapes = _stack([("people", people), ("ai", ai), ("other", other)], scale[-1])
    if any(before):
        shapes += _dashed_line(before, scale[-1])
    hatched = [
        _hatching("partial", number, len(rows), _pixels(totals[number], scale[-1])) for number in sorted(partial)
    ]
    for kind, numbers in (("ahead", ahead), ("missing", missing)):
        hatched += [_hatching(kind, number, len(rows), HEIGHT, "void") for number in sorted(numbers)]
    marked = [
        _MARK.format(x=_number(100 * (number + 0.5) / len(rows)), y=TOP + HEIGHT, text=text)
        for number, text in marks.items()
    ]
    drawn = joined(_stretch(len(rows), shapes), *([_HATCHES, *hatched] if hatched else []), *marked)
    return _frame(len(rows), scale, drawn, labels)


def _dashed_line(values: Sequence[float], highest: int) -> Markup:
    """Draw a dashed line through the centres of columns."""
    points = (f"{10 * i + 5},{_number(HEIGHT - _pixels(value, highest))}" for i, value in enumerate(values))
    return _PREVIOUS.format(points=" ".join(points))


def columns(values: Sequence[tuple[str, float]], kind: str) -> Markup:
    """Draw one column for each (label, amount) in the order given, such as the hours of a day. Empty without values."""
    if not values:
        return _NOTHING
    counts = [count for _, count in values]
    scale = _gridlines(ceil(max(counts)))
    labels = [(number, label, number % 3 == 0 or len(values) <= 8) for number, (label, _) in enumerate(values)]
    return _frame(len(values), scale, _stretch(len(values), _stack([(kind, counts)], scale[-1])), labels)


def measured_days(
    days: Sequence[tuple[date, int, int]],
    steps: Mapping[date, str],
    expected: Sequence[float] | None = None,
    *,
    are_apart: bool = False,
) -> Markup:
    """Draw a column for each day, with events (class ai) below the other visits (class other), and a vertical line
    with a word for each step.

    The first day, the day of the last step and, if there is room, the last day have labels. `days` are (day, events,
    visits), the earliest first, and contain the days of all steps, which are in order. With `are_apart`, the visits do
    not include the events, and are drawn in full. `expected` are the numbers of events that each day's visits would
    bring at the rate of other subjects; they are drawn as a dashed line.
    """
    events = [count for _, count, _ in days]
    others = [visits if are_apart else max(visits - count, 0) for _, count, visits in days]
    totals = [count + more for count, more in zip(events, others, strict=True)]
    scale = _gridlines(ceil(max(*totals, *expected or (0,)) * 1.15))  # with room for the words above the columns
    marks = _NOTHING
    for place, (step, text) in enumerate(reversed([*steps.items()])):
        x = 100 * ((step - days[0][0]).days + 0.5) / len(days)
        dx, anchor = (6, "start") if x < 50 else (-6, "end")
        marks += _STEP.format(
            x=_number(x), top=14 * place, bottom=TOP + HEIGHT, dx=dx, y=8 + 14 * place, anchor=anchor, text=text
        )
    shapes = _stack([("ai", events), ("other", others)], scale[-1])
    shapes += _dashed_line(expected, scale[-1]) if expected else _NOTHING
    reached, last = (max(steps) - days[0][0]).days, len(days) - 1
    labels = [(number, short_day(days[number][0]), True) for number in dict.fromkeys((0, reached))]
    if last - reached >= len(days) / 12:  # otherwise, the labels would touch; narrow screens need twice this distance
        labels.append((last, short_day(days[last][0]), last - reached >= len(days) / 6))
    return _frame(len(days), scale, _stretch(len(days), shapes) + marks, labels)


def bar(percentage: float | None, kind: str) -> Markup:
    """Draw a bar filled to a percentage between 0 and 100, in the colour of the kind; empty for None.

    A share above 0 takes at least LEAST percent, so that it is visible.
    """
    return _bar([(kind, min(max(percentage, LEAST), 100) if percentage and percentage > 0 else 0)])


def split_bar(people: int, ai: int, other: int) -> Markup:
    """Draw a full bar divided into people, AI-related and other visits; empty without visits."""
    total = people + ai + other
    counts = {"people": people, "ai": ai, "other": other}
    words = f"{people:,} by people, {ai:,} by AI, {other:,} by other bots"
    return _bar([(kind, 100 * count / total) for kind, count in counts.items() if total], words)


def sparkline(values: Sequence[int]) -> Markup:
    """Draw a line chart as high as text, from 0 to the largest value, ending in a dot. Empty without values."""
    if not values:
        return _NOTHING
    step = 72 / max(len(values) - 1, 1)
    highest = max(*values, 1)
    points = [(4 + i * step, 17 - 14 * value / highest) for i, value in enumerate(values)]
    if len(points) == 1:
        points = [(4, points[0][1]), (76, points[0][1])]
    x, y = points[-1]
    text = " ".join(f"{_number(x)},{_number(y)}" for x, y in points)
    return _SPARKLINE.format(points=text, x=_number(x), y=_number(y))


def multiples(series: Mapping[str, Sequence[int]]) -> Markup:
    """Draw a line for each name next to its last value, the largest sum first, each on its own scale."""
    ordered = sorted(series.items(), key=lambda item: -sum(item[1]))
    items = [_MULTIPLE.format(name=name, line=sparkline(values), last=f"{values[-1]:,}") for name, values in ordered]
    return _MULTIPLES.format(items=joined(*items))


def compact(count: int) -> str:
    """Format a count with at most three digits and a unit: 950, 1.5k, 20M. The exact number is in the table."""
    size = float(count)
    for unit in ("", "k", "M", "G", "T"):
        if size < 999.5 or unit == "T":
            break
        size /= 1000
    return f"{size:,.0f}{unit}" if size >= 99.5 or size == int(size) else f"{size:.2g}{unit}"


def _number(value: float) -> str:
    """Format a coordinate with at most two decimals."""
    return f"{value:.2f}".rstrip("0").rstrip(".")


def _gridlines(highest: int) -> list[int]:
    """Return the gridlines of a scale from 0 to at least `highest`: round numbers, including the baseline."""
    least = max(ceil(highest / 4), 1)
    magnitude = 10 ** (len(str(least)) - 1)
    step = next(step for step in (1 * magnitude, 2 * magnitude, 5 * magnitude, 10 * magnitude) if step >= least)
    return [step * number for number in range(max(-(-highest // step), 1) + 1)]


def _pixels(count: float, top: int) -> float:
    """Return the height of a count on a scale with the top gridline at `top`."""
    return HEIGHT * count / top


def _stack(series: Sequence[tuple[str, Sequence[float]]], top: int) -> Markup:
    """Draw one path for each (kind, counts), stacked on the previous series."""
    count = len(series[0][1])
    gap = 1 if count <= 120 else 0
    base = [0.0] * count
    drawn = _NOTHING
    for kind, counts in series:
        path = ""
        for number, value in enumerate(counts):
            if value > 0:
                y = _number(HEIGHT - _pixels(base[number], top))
                height = _number(_pixels(value, top))
                path += f"M{10 * number + gap} {y}v-{height}h{10 - 2 * gap}v{height}z"
                base[number] += value
        drawn += _PATH.format(kind=kind, path=path) if path else _NOTHING
    return drawn


def _hatching(kind: str, column: int, count: int, height: float, pattern: str = "hatch") -> Markup:
    """Draw the hatching over one of `count` columns."""
    share = 100 / count
    x, y = _number(share * column), _number(TOP + HEIGHT - height)
    return _HATCHED.format(kind=kind, x=x, y=y, width=_number(share), height=_number(height), id=pattern)


def _stretch(count: int, shapes: Markup) -> Markup:
    """Stretch the shapes of a chart with this many columns, each ten units wide, to the real width."""
    return _STRETCHED.format(top=TOP, width=10 * count, height=HEIGHT, shapes=shapes)


def _frame(count: int, scale: Sequence[int], shapes: Markup, labels: Iterable[Label]) -> Markup:
    """Draw the whole chart: the gridlines of a scale, the shapes and the labels."""
    grid, texts = _NOTHING, _NOTHING
    for value in scale:
        grid += _GRIDLINE.format(y=_number(TOP + HEIGHT - _pixels(value, scale[-1])), text=compact(value))
    for column, text, is_major in labels:
        is_end = column + 0.5 > END * count and count > MAX_WIDE and len(text) > 2
        x, classes = _number(100 * (column + (1 if is_end else 0.5)) / count), "label" if is_major else "label minor"
        classes += " end" if is_end else ""
        texts += _LABEL.format(classes=classes, x=x, y=TOP + HEIGHT + 20, text=text)
    return _FRAME.format(height=TOP + HEIGHT + 26, count=count, grid=grid, shapes=shapes, labels=texts)


def _bar(shares: Iterable[tuple[str, float]], words: str = "") -> Markup:
    """Draw a bar of adjacent parts, each with a class and a width in percent. `words` is text for screen readers."""
    role = f'role="img" aria-label="{words}"' if words else 'aria-hidden="true"'
    x = 0.0
    parts = ""
    for kind, width in shares:
        if width:
            parts += f'<rect class="{escape(kind)}" x="{_number(x)}" width="{_number(width)}" height="4"/>'
        x += width
    return Markup(f"{_BAR.format(role=Markup(role))}{parts}</svg>")  # noqa: S704  # numbers, or escaped
