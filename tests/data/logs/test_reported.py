"""Each field of reported requests, and every reason for rejecting them."""

import json
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from operator import attrgetter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from data.errors import BadInput
from data.hosts import normalized_host
from data.logs.reported import (
    MAX_BYTES_SENT,
    MAX_ROW_BYTES,
    MAX_ROWS,
    Reported,
    ReportedVisit,
    TooManyRows,
    _short_array,
    parse_reported,
    split_rows,
)
from tests.faults.trials import tried
from tests.support.memory import traced_peak
from tests.support.reported import REPORTED
from tests.support.tables import examples_at_once

FIELDS = Reported.__struct_fields__
NOW = datetime(2026, 3, 15, 12)
EPOCH = datetime(1970, 1, 1)
NO_OBJECT = "the visit is not a valid JSON object"
DEEP = 100_000  # brackets: far deeper than any stack
some = tried(60)


def read(row):
    """Return the facts in a row, given as a string or as fields."""
    text = json.dumps(row) if isinstance(row, dict) else row
    return parse_reported(text if isinstance(text, bytes) else text.encode(), NOW)


def facts_of(**fields):
    """Return the facts about a request with these fields; by default, it is for /."""
    return read({"path": "/"} | fields)


def refusal(row):
    """Return why a row is rejected; the arguments are the same as for `read`."""
    with pytest.raises(BadInput) as refused:
        read(row)
    return str(refused.value)


# Complete rows


def test_reported_fields_become_the_facts_of_a_visit():
    row = {
        "time": "2026-03-04T12:30:00.25+02:00", "ip": "203.0.113.7", "method": "POST", "status": 404,
        "url": "https://Go.Example:8443/abc?utm_source=News#top", "user_agent": "Mozilla/5.0",
        "referrer": "https://T.co/xyz?q=1#top", "country": "de", "bytes_sent": 5316,
    }  # fmt: skip
    at, target = datetime(2026, 3, 4, 10, 30, 0, 250_000), ("go.example", "/abc", "utm_source=News")
    assert read(row) == ReportedVisit(
        at, "203.0.113.7", target, "POST", 404, "Mozilla/5.0", "https://T.co/xyz", "DE", 5316
    )


@pytest.mark.parametrize("nothing", [{}, dict.fromkeys(FIELDS)], ids=["absent", "null"])
def test_missing_fields_have_their_defaults(nothing):
    expected = ReportedVisit(NOW, "", ("", "/abc", ""), "GET", 200, "", "", "", None)
    assert read(nothing | {"path": "/abc"}) == expected


@pytest.mark.parametrize("domain", ["", "go.example"])
def test_a_url_with_only_a_path_is_read_like_a_path(domain):
    assert read({"url": "/a?x=1", "domain": domain, "path": ""}) == facts_of(path="/a?x=1", domain=domain)


def test_the_last_of_duplicate_keys_counts():
    assert read('{"path": "/a", "status": 404, "path": "/b", "status": 200}') == facts_of(path="/b")


@pytest.mark.parametrize("text", ['  {"path": "/"}\r', '\t{"path":\r\n"/"} ', r'{"\u0070ath": "\u002f"}'])
def test_the_formatting_of_json_does_not_matter(text):
    assert read(text) == facts_of()


@examples_at_once("why", "rows")
def test_an_invalid_row_is_rejected_with_its_reason(why, rows):
    """The rows, given as bytes, are not JSON, not text, not a request, or too large."""
    for row in rows:
        assert refusal(row.encode("latin-1")) == why, row


def test_nul_becomes_the_replacement_character():
    assert read(r'{"url": "https://g/\u0000?\u0000"}').target == ("g", "/\ufffd", "\ufffd")


def test_a_row_may_have_16384_bytes_but_no_more():
    longest = '{"path": "/%s"}' % ("x" * (MAX_ROW_BYTES - 13))
    assert MAX_ROW_BYTES == 16_384
    assert len(read(longest).target.path) == MAX_ROW_BYTES - 12
    assert refusal(longest + " ") == "the visit is longer than 16,384 bytes"
    assert refusal(" " * 1_000_000 + '{"path": "/"}') == "the visit is longer than 16,384 bytes"
    assert refusal(b'{"path": "/' + b"x" * 1_000_000) == "the visit is longer than 16,384 bytes"


@pytest.mark.parametrize("start", ["[", '{"path":', '{"path":[', '{"x":', '{"x":[', '{"path":"/","time":['])
def test_a_row_of_brackets_is_rejected(start):
    assert refusal((start * MAX_ROW_BYTES)[:MAX_ROW_BYTES]).startswith((NO_OBJECT, "Expected `", "Object contains"))


KINDS = {"7": "int", "7.5": "float", "true": "bool", "[]": "array", "{}": "object", '"7"': "str"}


@pytest.mark.parametrize("name", FIELDS)
def test_a_type_error_names_the_field_and_both_types(name):
    integer = dict.fromkeys(("status", "bytes_sent"), "int | null")
    wanted = (integer | {"time": "int | float | datetime | null"}).get(name, "str | null")
    for value, kind in KINDS.items():
        if kind not in wanted and not (name == "time" and kind == "str"):
            assert refusal(f'{{"{name}": {value}}}') == f"Expected `{wanted}`, got `{kind}`: {name}"


# One field each

FACT_OF = {"time": lambda facts: facts.visited_at.isoformat(), "domain": attrgetter("target.domain")}


@examples_at_once("field", "values")
def test_a_value_is_converted_to_its_normal_form(field, values):
    """A time may be given in RFC 3339 format or as a number in a supported unit."""
    for value, expected in values:
        facts = facts_of(**{field: value})
        assert FACT_OF.get(field, attrgetter(field))(facts) == expected, value


@examples_at_once("field", "why", "values")
def test_an_invalid_value_is_rejected_with_its_reason(field, why, values):
    for value in values:
        assert refusal({"path": "/", field: value}) == why, value
        if field == "path":
            assert refusal({"url": value}) == refusal({"url": value, "domain": "go.example"}) == why, value


@pytest.mark.parametrize("time", ["1e999", "-1e999", "1" * 400 + ".5", "1" + "0" * 5_000, "-1" + "0" * 5_000])
def test_a_time_that_is_an_unrepresentable_number_is_rejected(time):
    why = refusal(f'{{"path": "/", "time": {time}}}')
    assert why in {"Number out of range: time", "Integer value out of range: time"}


@given(st.datetimes(datetime(1973, 3, 4), NOW + timedelta(1)))
@some
def test_text_and_numbers_in_every_unit_give_the_same_time(moment):
    micros = (moment - EPOCH) // timedelta(microseconds=1)
    assert facts_of(time=micros).visited_at == moment
    assert facts_of(time=f"{moment.isoformat()}Z").visited_at == moment
    assert abs(facts_of(time=micros * 1_000 + 999).visited_at - moment) <= timedelta(microseconds=1)
    assert facts_of(time=micros // 1_000).visited_at == moment.replace(microsecond=micros // 1_000 % 1_000 * 1_000)
    assert facts_of(time=micros // 1_000_000).visited_at == moment.replace(microsecond=0)


@given(st.datetimes(datetime(1990, 1, 1), datetime(2025, 1, 1), timezones=st.timezones()))
@some
def test_a_time_with_a_zone_is_stored_in_utc(moment):
    text = moment.isoformat()
    if len(text.rpartition(":")[2]) == 2:  # RFC 3339 has no seconds in a zone
        assert facts_of(time=text).visited_at == moment.astimezone(UTC).replace(tzinfo=None)


# Targets


@examples_at_once("url", "target")
def test_a_url_gives_domain_path_and_query(url, target):
    assert read({"url": url}).target == target
    assert read({"path": url}).target == target


def test_the_domain_in_a_url_overrides_the_domain_field():
    assert read('{"url": "https://a.example/x", "domain": "b.example"}').target == ("a.example", "/x", "")
    assert read('{"url": "/x", "domain": "b.example"}').target == ("b.example", "/x", "")


# Reasons

CANARY = "canary-198-51-100-23"
NUMBER = 918_273_645
WORDS = st.sampled_from(
    [CANARY, f"/{CANARY}", f"https://{CANARY}/", f"2026-03-04T12:30:00{CANARY}", f"{CANARY}\0", f"DE{CANARY}",
     f"GET{CANARY}", f"{NUMBER}-03-04T12:30:00Z", f"198.51.100.23:{NUMBER}", CANARY * 900]
)  # fmt: skip
NUMBERS = st.sampled_from([NUMBER, -NUMBER, NUMBER * 10**9, float(f"{NUMBER}e99"), NUMBER + 0.5, 10**400 + NUMBER])
VALUES = st.recursive(
    WORDS | NUMBERS | st.booleans() | st.none(),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.just(CANARY), inner, max_size=1),
    max_leaves=3,
)
ROWS = st.dictionaries(st.sampled_from(sorted(FIELDS)), VALUES).map(json.dumps)


def outcome(row):
    """Return the facts in a row, or the reason for rejecting it; any other exception fails the test."""
    try:
        return parse_reported(row, NOW)
    except BadInput as error:
        return str(error)


@given(ROWS, st.integers(0, 300), st.sampled_from(["whole", "cut", "spoilt"]))
@some
def test_no_reason_repeats_a_sent_value(text, place, damage):
    row = text.encode()
    row = {"whole": row, "cut": row[:place], "spoilt": row[:place] + b"\xff" + row[place + 1 :]}[damage]
    why = outcome(row)
    if isinstance(why, str):
        assert len(why) < 100
        assert not [sent for sent in ("canary", "198", "51-100", "9182", "918_2", "e+") if sent in why]


@given(REPORTED)
@some
def test_every_reported_row_becomes_valid_facts_or_a_reason(row):
    facts = outcome(json.dumps(row).encode())
    if isinstance(facts, str):
        return
    assert EPOCH <= facts.visited_at <= NOW + timedelta(1)
    assert facts.visited_at.tzinfo is None
    assert 100 <= facts.status <= 999
    assert facts.bytes_sent is None or 0 <= facts.bytes_sent <= MAX_BYTES_SENT
    assert facts.target.path.startswith("/")
    assert not set("?#") & set(facts.target.path)
    assert "#" not in facts.target.query
    assert facts.target.domain == (normalized_host(facts.target.domain) or "")
    assert not set("?#") & set(facts.referrer)
    assert facts.method.isascii()
    assert facts.country == "" or (facts.country.isascii() and len(facts.country) == 2)
    texts = [facts.ip, *facts.target, facts.method, facts.user_agent, facts.referrer, facts.country]
    assert not [text for text in texts if "\0" in text]
    assert [text.encode().decode() for text in texts] == texts


@given(
    st.binary(max_size=60) | st.text(max_size=30).map(lambda text: f'{{"path": "{text}"}}'.encode("utf-8", "replace"))
)
@some
def test_any_bytes_give_facts_or_a_reason(body):
    assert isinstance(outcome(body), ReportedVisit | str)
    for row in split_rows(body) if b"[" not in body else ():
        assert isinstance(outcome(row), ReportedVisit | str)


# The rows of a body

A, B = b'{"path":"/a"}', b'{"path":"/b"}'


@pytest.mark.parametrize(
    ("body", "paths"),
    [
        *((body, ["/a", "/b"]) for body in (
            A + b"\n" + B, A + b"\n" + B + b"\n", A + b"\r\n" + B + b"\r\n", b"\n\n" + A + b"\n \t\n\r\n" + B + b"\n\n",
            b"[" + A + b"," + B + b"]", b"[\n  " + A + b",\r\n" + B + b"\n]\n", b" \r\n\t[" + A + b" , " + B + b"] ",
            b"\xef\xbb\xbf" + A + b"\n" + B, b"\xef\xbb\xbf[" + A + b"," + B + b"]",
        )),
        *((body, []) for body in (b"", b"\n", b" \r\n\t\n", b"[]", b"\n[ \n]\n")),
    ],
)  # fmt: skip
def test_lines_and_an_array_are_split_into_the_same_rows(body, paths):
    assert [parse_reported(row, NOW).target.path for row in split_rows(body)] == paths


@pytest.mark.parametrize(
    "body",
    [b"[", b"[1", b"[1,]", b"[1]x", b"[1] [2]", b"[" + A, b"[" + A + b"]\n" + B, b"[\xff]", b"[NaN]",
     b"[" + A + B + b"]", b"[" * DEEP, b'[{"path":' * DEEP, b"[" + A + b"," + b"[" * DEEP + b"]" * DEEP + b"]"],
)  # fmt: skip
def test_a_malformed_array_is_rejected(body):
    with pytest.raises(BadInput):
        split_rows(body)


def test_text_between_two_newlines_is_a_row_of_its_own():
    rows = split_rows(A + b"\n{\n" + B + b"\nnull\n[1]\n" + A)
    wrong = [NO_OBJECT, None, "Expected `object`, got `null`", "Expected `object`, got `array`"]
    assert [why if isinstance(why := outcome(row), str) else None for row in rows] == [None, *wrong, None]


def test_array_rows_that_are_not_objects_are_rejected_one_by_one():
    rows = split_rows(b"[" + A + b',7,"x",null,[],{},["\xff"],' + B + b"]")
    assert [type(outcome(row)) for row in rows] == [ReportedVisit, str, str, str, str, str, str, ReportedVisit]


MANY = 1_000_000  # rows or blank lines; 2 MB


@pytest.mark.parametrize("body", [b"[" + b"0," * MANY + b"0]", b'["",' * MANY, b"0\n" * MANY, b"\n" * 2 * MANY])
def test_memory_for_a_body_of_a_million_rows_is_limited(body):
    def split():
        _short_array.cache_clear()
        with suppress(BadInput):
            assert len(split_rows(body)) == 0

    assert traced_peak(split) < 3 * len(body)


@pytest.mark.parametrize(("start", "between", "end"), [(b"[", b",", b"]"), (b"", b"\n", b""), (b"", b"\n\n", b"\n")])
def test_too_many_rows_are_rejected_regardless_of_content(start, between, end):
    for row in (A, b"0", b'{"a":",,,,"}'):
        assert len(split_rows(start + between.join([row] * MAX_ROWS) + end)) == MAX_ROWS
        with pytest.raises(TooManyRows):
            split_rows(start + between.join([row] * (MAX_ROWS + 1)) + end)


def test_unicode_line_separators_do_not_split_lines():
    assert len(split_rows('{"path":"/\u2028\x85\x0b"}'.encode())) == 1
