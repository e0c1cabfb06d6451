"""How the query string of a request becomes parameters and a scope."""

import contextlib
from datetime import date, timedelta
from itertools import product
from urllib.parse import quote, urlencode

from hypothesis import given, settings
from hypothesis import strategies as st

from data.links.index import LinkIndex
from queries import ENTRIES, PARAMETERS, InvalidParameter, Scope, parameters_of
from service.reports.query_string import parse_parameters, parse_scope

DEVICES = ENTRIES["devices"]


def test_a_query_string_is_decoded_like_a_form():
    for query, read in (
        (b"domain=a%2Eb+c&short_code=%C3%BC&unknown=1&range=&end_date", {"domain": "a.b c", "short_code": "ü"}),
        (b"", {}),
        (b"&&=&=x&;domain=a", {}),
        (b"domain=%ff", {"domain": "\ufffd"}),
    ):
        assert parse_parameters(query, parameters_of(DEVICES)) == read


def test_the_scope_depends_on_the_caller_and_the_day(lake):
    targets = LinkIndex(lake)
    for organization, day in product(("acme", "globex"), (date(2026, 5, 1), date(2026, 5, 2))):
        scope = parse_scope(b"range=7d&domain=a.example", DEVICES, organization, day, targets)
        assert scope == Scope(organization, day - timedelta(days=6), day, domain="a.example")


def test_a_target_without_links_gives_no_scope(lake):
    for query in (b"target_url=https://a.example/", b"target%5Furl=https://a.example/", b"target_url=" + b"a" * 600):
        assert parse_scope(query, DEVICES, "acme", date(2026, 5, 1), LinkIndex(lake)) is None


@settings(max_examples=50, derandomize=True)
@given(
    st.binary(max_size=60)
    | st.lists(st.tuples(st.sampled_from([*PARAMETERS]), st.text(max_size=9))).map(
        lambda pairs: urlencode(pairs, quote_via=quote).encode()
    )
)
def test_any_query_string_gives_parameters_or_an_error(query):
    with contextlib.suppress(InvalidParameter):
        found = parse_parameters(query, PARAMETERS)
        assert all(found.values())
        assert set(found) <= {*PARAMETERS}
