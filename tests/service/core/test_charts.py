"""The dashboard's charts: rows become SVG, exact to the pixel."""

import re
from datetime import date, timedelta
from xml.etree import ElementTree

import pytest

from service.core.pages import charts, spans
from service.dashboard.world_map import MAP_SHAPES, world_map
from tests.support.tables import examples


def day(written, people=0, ai=0, other=0):
    return {"date": written, "total_visits": people + ai + other, "human_clicks": people, "ai_visits": ai}


def november(count, **visits):
    return [day(f"2026-11-{number:02}", **visits) for number in range(1, count + 1)]


def parsed(markup):
    """Return the elements of a chart, which must be well-formed XML."""
    return ElementTree.fromstring(markup)


def classes(root, name):
    return [element for element in root.iter() if name in element.get("class", "").split()]


def texts(root, name):
    return [element.text for element in classes(root, name)]


def heights(root, kind):
    """Return the heights of the columns of a kind, in pixels."""
    [path] = classes(root, kind)
    return [float(height) for height in re.findall(r"v-([\d.]+)", path.get("d"))]


def test_columns_are_stacked_in_proportion_to_their_visits():
    root = parsed(series([day("2026-11-01", people=200, ai=100, other=50)], None, ["2026-11-02"]))
    assert texts(root, "scale") == ["0", "100", "200", "300", "400"]
    assert [heights(root, kind) for kind in ("people", "ai", "other")] == [[100.0], [50.0], [25.0]]
    starts = [re.match(r"M1 ([\d.]+)", classes(root, kind)[0].get("d"))[1] for kind in ("people", "ai", "other")]
    assert starts == ["200", "100", "50"]


def test_a_kind_without_visits_has_no_column():
    root = parsed(series([day("2026-11-22", people=7)], [day("2026-11-21", people=1)], ["2026-11-22"]))
    assert heights(root, "people") == [175.0]
    assert texts(root, "label") == ["22 Nov"]
    assert classes(root, "ai") + classes(root, "other") == []


def test_the_largest_number_stays_within_the_chart():
    root = parsed(series([day("2026-11-01", people=2**62)], None, []))
    assert 0 < heights(root, "people")[0] <= charts.HEIGHT
    assert texts(root, "scale")[-1] == "6,000,000T"


def test_days_are_drawn_from_left_to_right():
    root = parsed(series(november(5, people=1), None, []))
    [people] = classes(root, "people")
    assert re.findall(r"M(\d+)", people.get("d")) == ["1", "11", "21", "31", "41"]
    assert (root.get("data-count"), root.find("{*}svg").get("viewBox")) == ("5", "0 0 50 200")
    assert texts(root, "label") == ["1 Nov", "2 Nov", "3 Nov", "4 Nov", "5 Nov"]


def test_columns_keep_the_given_order():
    root = parsed(charts.columns([("Monday", 4), ("Tuesday", 0), ("Wednesday", 2)], "ai"))
    assert texts(root, "label") == ["Monday", "Tuesday", "Wednesday"]
    assert heights(root, "ai") == [200.0, 100.0]


def series(days, previous, partial=()):
    """Return the chart of days; days in `partial` are incomplete."""
    dates = [one["date"] for one in days]
    hatched = [number for number, date in enumerate(dates) if date in partial]
    return charts.time_series(days, previous, spans.day_labels(dates) if dates else [], partial=hatched)


def test_no_chart_is_drawn_without_days():
    assert series([], None, ["2026-11-22"]) == charts.columns([], "people") == charts.sparkline([]) == ""


def test_days_without_visits_get_a_scale_from_0_to_1():
    root = parsed(series(november(3), [day("2026-10-31")], ["2026-11-03"]))
    assert texts(root, "scale") == ["0", "1"]
    assert classes(root, "people") + classes(root, "previous") == []


def test_a_partial_day_is_hatched_as_high_as_its_column():
    root = parsed(series([*november(3, people=4), day("2026-11-04", people=2)], None, ["2026-11-04"]))
    [today] = classes(root, "partial")
    assert (today.get("x"), today.get("width"), today.get("height")) == ("75%", "25%", "100")
    assert (today.get("fill"), float(today.get("y"))) == ("url(#hatch)", charts.TOP + charts.HEIGHT - 100)


def test_every_partial_week_is_hatched():
    weeks = [day(f"2026-11-{number:02}", people=number) for number in (2, 9, 16)]
    root = parsed(series(weeks, None, {"2026-11-02", "2026-11-16"}))
    assert [one.get("x") for one in classes(root, "partial")] == ["0%", "66.67%"]
    assert [one.get("id") for one in root.findall(".//{*}pattern")] == ["hatch", "void"]


def test_missing_and_future_days_are_hatched_differently():
    root = parsed(charts.time_series(november(4, people=4), None, [], partial=[1], ahead=[3], missing=[2]))
    shown = [[one.get(name) for name in ("class", "x", "height", "fill")] for one in root.iter() if one.get("fill")]
    assert shown == [
        ["partial", "25%", "200", "url(#hatch)"], ["ahead", "75%", "200", "url(#void)"],
        ["missing", "50%", "200", "url(#void)"],
    ]  # fmt: skip


def test_a_partial_day_outside_the_chart_is_not_hatched():
    assert classes(parsed(series(november(3, people=4), None, ["2026-11-22"])), "partial") == []


def test_the_previous_period_is_a_line_on_the_same_scale():
    before = [day("2026-10-30", people=8), day("2026-10-31", ai=4), day("2026-11-01", people=99)]
    root = parsed(series(november(2, people=4), before, []))
    [line] = classes(root, "previous")
    assert line.get("points") == "5,0 15,100"
    assert texts(root, "scale")[-1] == "8"


MAXIMA = (1, 3, 4, 5, 9, 10, 11, 39, 41, 99, 100, 101, 12_345, 10**18)


@pytest.mark.parametrize("highest", MAXIMA)
def test_a_scale_has_2_to_5_gridlines(highest):
    assert 2 <= len(texts(parsed(charts.columns([("a", highest)], "plain")), "scale")) <= 5


@pytest.mark.parametrize("highest", MAXIMA)
def test_the_maximum_is_at_least_half_of_the_scale(highest):
    root = parsed(charts.columns([("a", highest)], "plain"))
    assert charts.HEIGHT / 2 <= heights(root, "plain")[0] <= charts.HEIGHT


@examples("unit", "count", "labels")
def test_time_labels_are_few_and_readable_for_any_range(unit, count, labels):
    months = [str(date(2016 + number // 12, number % 12 + 1, 1)) for number in range(count)]
    days = [str(date(2016, 1, 1) + timedelta(number)) for number in range(count)]
    label = {"hour": spans.hour_labels, "day": spans.day_labels, "month": spans.month_labels}[unit]
    assert [text for _, text, _ in label(months if unit == "month" else days)] == list(labels)


@examples("percentage", "width")
def test_a_bar_is_as_wide_as_its_percentage(percentage, width):
    track, *parts = parsed(charts.bar(percentage, "ai"))
    assert (track.get("class"), tuple(part.get("width") for part in parts)) == ("track", width)


def test_a_split_bar_without_visits_is_an_empty_track():
    assert len(list(parsed(charts.split_bar(0, 0, 0)))) == 1


SCRIPT = '"><script>alert(1)</script>'


def test_the_label_of_a_column_is_escaped():
    root = parsed(charts.columns([(SCRIPT, 1)], "people"))
    assert texts(root, "label") == [SCRIPT]
    assert not list(root.iter("script"))


def test_the_class_of_a_bar_is_escaped():
    assert "<script>" not in charts.bar(5, SCRIPT)


def test_a_name_on_the_map_is_escaped():
    root, _ = parsed(f"<p>{world_map({'SG': 1}, {'SG': '<script>'})}</p>")
    assert [use[0].text for use in root if use.get("class")] == ["<script>: 1"]


def test_a_split_bar_is_divided_in_order_and_shows_its_numbers():
    root = parsed(charts.split_bar(1, 2, 5))
    assert root.get("aria-label") == "1 by people, 2 by AI, 5 by other bots"
    parts = [(part.get("class"), part.get("x"), part.get("width")) for part in list(root)[1:]]
    assert parts == [("people", "0", "12.5"), ("ai", "12.5", "25"), ("other", "37.5", "62.5")]


def test_a_sparkline_ends_with_its_dot_on_the_right():
    [line, dot] = list(parsed(charts.sparkline([0, 5, 10])))
    assert line.get("points") == "4,17 40,10 76,3"
    assert (dot.get("cx"), dot.get("cy")) == ("76", "3")


def test_a_sparkline_of_one_week_is_level():
    assert next(iter(parsed(charts.sparkline([7])))).get("points") == "4,3 76,3"


def test_small_multiples_are_sorted_by_their_sum():
    root = parsed(charts.multiples({"Devin": [1, 2], "ChatGPT": [900, 1200], "<b>": [3, 1]}))
    assert [item[0].text for item in root] == ["ChatGPT", "<b>", "Devin"]
    assert [item[2].text for item in root] == ["1,200", "1", "2"]
    assert all(classes(item, "sparkline") for item in root)


def test_the_map_shades_the_countries_with_visits():
    names = {"SG": "Singapore", "US": "United States"}
    root, legend = parsed(f"<p>{world_map({'SG': 1, 'US': 3125, 'DE': 0, 'unknown': 9}, names)}</p>")
    assert ["".join(item.itertext()).strip() for item in legend] == ["1–1,397", "1,398 or more"]  # 3,125 / sqrt(5)
    assert [shape.tag.rpartition("}")[2] for shape in root] == [tag for tag, _ in MAP_SHAPES.values()]
    assert len(root) > 240
    shaded = [(shape.get("class"), shape[0].text) for shape in root if shape.get("class")]
    assert shaded == [("q5", "United States: 3,125"), ("q1", "Singapore: 1")]


def test_a_map_without_visited_countries_has_no_legend():
    _, legend = parsed(f"<p>{world_map({'T1': 3, 'unknown': 9}, {})}</p>")
    assert len(legend) == 0


@examples("count", "text")
def test_a_count_is_written_with_its_unit(count, text):
    assert charts.compact(count) == text


@pytest.mark.parametrize(("shipped_on", "x", "anchor"), [(2, "37.5%", "start"), (4, "87.5%", "end")])
def test_the_chart_of_measured_days_marks_the_shipping_day(shipped_on, x, anchor):
    days = [(date(2026, 11, number), events, visits) for number, events, visits in
            ((1, 7, 10), (2, 10, 10), (3, 0, 0), (4, 5, 2))]  # fmt: skip
    on = date(2026, 11, shipped_on)
    root = parsed(charts.measured_days(days, {on: "shipped"}))
    line, label = classes(root, "shipped")
    assert (line.get("x1"), line.get("x2"), label.get("x"), label.get("text-anchor")) == (x, x, x, anchor)
    assert heights(root, "ai") == [93.33, 133.33, 66.67]  # of 200 pixels for 15: there is room for the label above 10
    assert heights(root, "other") == [40]


def measured(count, approved, shipped, **more):
    days = [(date(2026, 11, 1) + timedelta(number), 7, 10) for number in range(count)]
    return parsed(charts.measured_days(days, {days[approved][0]: "approved", days[shipped][0]: "shipped"}, **more))


@pytest.mark.parametrize(
    ("approved", "shipped", "texts"),
    [(28, 28, {"50%": "shipped"}), (28, 35, {"44.53%": "approved", "55.47%": "shipped"})],
)
def test_the_chart_of_measured_days_marks_the_approval(approved, shipped, texts):
    root = measured(shipped + 29, approved, shipped)
    assert {text.get("x"): text.text for text in classes(root, "shipped") if text.text} == texts


@pytest.mark.parametrize(
    ("count", "shipped", "labels"),
    [(57, 28, ["1 Nov", "29 Nov", "27 Dec"]), (32, 28, ["1 Nov", "29 Nov", "2 Dec"]), (29, 28, ["1 Nov", "29 Nov"])],
)
def test_measured_days_have_labels_at_the_ends_and_at_shipping(count, shipped, labels):
    assert [text.text for text in measured(count, 28, shipped).iter() if "label" in text.get("class", "")] == labels


def test_visits_are_drawn_in_full_if_events_are_not_among_them():
    assert heights(measured(3, 0, 0, are_apart=True), "other") == [100] * 3
    assert heights(measured(3, 0, 0), "other") == [40] * 3


@pytest.mark.parametrize(
    ("column", "x", "classes_of_label"),
    [(26, "88.33", "label"), (27, "91.67", "label"), (28, "96.67", "label end"), (29, "100", "label end")],
)
def test_labels_near_the_end_are_right_aligned(column, x, classes_of_label):
    root = parsed(charts.time_series(november(30, people=1), None, [(column, "30 Nov", True)]))
    [label] = classes(root, "label")
    assert (label.get("x"), label.get("class")) == (f"{x}%", classes_of_label)
