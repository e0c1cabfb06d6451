import csv
import io
import json
from datetime import datetime

from hypothesis import given
from hypothesis import strategies as st

from service.core.csv_files import csv_of
from tests.support.tables import examples

FORMULAS = "=+-@\uff1d\uff0b\uff0d\uff20"


def cells_of(body, separator=","):
    return list(csv.reader(io.StringIO(body.decode(), newline=""), delimiter=separator))


def text_cell(text, **how):
    ((_,), (cell,)) = cells_of(csv_of(["a"], [{"a": text}], **how))
    return cell


@examples("text", "cell")
def test_formulas_in_csv_cells_are_escaped_with_an_apostrophe(text, cell):
    assert text_cell(text) == cell
    assert text_cell(text, is_raw=True) == text


@given(st.lists(st.text(f"{FORMULAS};,\t\r\n\"' a\0\u00a0", max_size=8), min_size=2, max_size=2))
def test_no_csv_cell_is_a_formula_whatever_the_separator(texts):
    body = csv_of(["a", "b"], [dict(zip("ab", texts, strict=True))])
    for separator in ",;\t":
        cells = [cell for row in cells_of(body, separator) for cell in row]
        assert [cell for cell in cells if cell.strip(' \t\r\n\0\u00a0"')[:1] in set(FORMULAS)] == []


def test_csv_headers_are_escaped_and_values_written_as_in_json():
    assert csv_of(["=1"], []) == b"'=1\r\n"
    assert csv_of([], [{}]) == b""
    row = {"number": -1.5, "none": None, "yes": True, "list": ["a", "b"], "time": datetime(2026, 3, 4, 5, 6, 7)}
    _, (number, none, yes, values, moment) = cells_of(csv_of(list(row), [row]))
    assert (number, none, yes, json.loads(values), moment) == ("-1.5", "", "true", ["a", "b"], "2026-03-04T05:06:07Z")
