"""The conversion of request parameters to a Scope, for HTTP, the command line and notebooks."""

from datetime import date, datetime

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from data.hosts import normalized_host
from data.links.index import LinkIndex
from queries import ENTRIES, PARAMETERS, TRAFFIC_TYPES, InvalidParameter, Scope, scope_from, validate
from queries.parameters import NO_LINK
from tests.recount import WORDS
from tests.support.tables import examples_at_once
from tests.support.visits import links

TODAY = date(2026, 3, 15)
DEVICES, BOTS, DOMAINS = (ENTRIES[name] for name in ("devices", "bot-traffic", "domain-breakdown"))


@pytest.fixture
def scoped(lake):
    """Return a function that makes a scope from parameters, for a lake with one link."""
    links(lake, "acme", [{"short_code": "a", "target_url": "https://shop.example/"}])
    targets = LinkIndex(lake)

    def scoped(entry=DEVICES, today=TODAY, **words):
        return scope_from(validate(words.items(), entry), "acme", today, targets)

    return scoped


def test_the_default_scope_is_thirty_days_without_filters(scoped):
    assert scoped() == Scope("acme", date(2026, 2, 14), TODAY)


def test_every_parameter_sets_a_field_of_the_scope(scoped):
    days = {"start_date": "2026-03-01", "end_date": "2026-03-02"}
    words = days | {"domain": "Go.Example", "traffic_type": "AI-Referral", "traffic_group": "People"}
    expected = Scope("acme", date(2026, 3, 1), date(2026, 3, 2), "B", "go.example", "ai_referral", "people")
    assert scoped(BOTS, short_code="B", **words) == expected
    assert scoped(BOTS, short_code="B", target_url="HTTPS://SHOP.EXAMPLE", **words).short_code == "a"


@pytest.mark.parametrize(
    ("given", "expected"),
    [("Go.Example:443", "go.example"), ("bücher.example.", "xn--bcher-kva.example"),
     ("Go.Example/launch?x=1", "go.example/launch?x=1"), ("❤.Example", "❤.example")],
)  # fmt: skip
def test_a_domain_is_normalized_unless_it_is_an_invalid_host(scoped, given, expected):
    assert scoped(domain=given).domain == expected


def test_the_domain_unknown_means_visits_without_a_domain(scoped):
    assert scoped(domain="Unknown") == Scope("acme", date(2026, 2, 14), TODAY, no_domain=True)


@examples_at_once("name", "given", "expected")
def test_filters_match_case_except_for_countries_and_hosts(scoped, name, given, expected):
    assert scoped(**{name: given}) == Scope("acme", date(2026, 2, 14), TODAY, **{name: expected})


def test_pages_prefix_the_parameters_that_campaign_urls_may_use():
    prefixed = {name for name, row in PARAMETERS.items() if row.page_name == f"f_{name}"}
    assert prefixed == {*WORDS}
    assert all(row.page_name == name for name, row in PARAMETERS.items() if name not in prefixed)


def test_an_unknown_target_becomes_a_short_code_without_visits(scoped):
    assert scoped(target_url="https://elsewhere.example").short_code == NO_LINK == ""
    assert scoped(DOMAINS, target_url="https://elsewhere.example", short_code="a").short_code == NO_LINK
    assert scoped(DOMAINS, short_code="a").short_code is None


def test_ranges_span_a_year_end_and_a_leap_day(scoped):
    assert scoped(range="7d", today=date(2026, 1, 3)).start_date == date(2025, 12, 28)
    assert scoped(range="7d", today=date(2024, 3, 1)).start_date == date(2024, 2, 24)
    assert scoped(start_date="2024-02-29", end_date="2024-02-29").start_date == date(2024, 2, 29)


def test_an_error_names_the_parameter_and_the_remedy(scoped):
    for words in ({"range": "x"}, {"traffic_type": "x"}, {"start_date": "x", "end_date": "2026-01-01"}):
        with pytest.raises(InvalidParameter) as caught:
            scoped(BOTS, **words)
        name = next(iter(words))
        assert caught.value.problem.startswith(f"The parameter {name} ")
        assert str(caught.value) == f"{caught.value.problem} {caught.value.remedy}"


@examples_at_once("words", "error")
def test_an_error_quotes_the_given_value(scoped, words, error):
    with pytest.raises(InvalidParameter) as caught:
        scoped(BOTS, **words)
    assert str(caught.value).startswith(error)


def test_the_allowed_traffic_types_are_listed_in_a_fixed_order(scoped):
    """The order of a set differs between runs of the program; messages must not differ."""
    with pytest.raises(InvalidParameter) as caught:
        scoped(BOTS, traffic_type="x")
    told = caught.value.remedy.removeprefix("Use one of ").removesuffix(".").split(", ")
    assert told in (list(TRAFFIC_TYPES), sorted(TRAFFIC_TYPES))


words = st.one_of(
    st.text(max_size=20),
    st.datetimes(datetime(1, 1, 1)).map(lambda moment: f"{moment.isoformat()}Z"),
    st.dates().map(str),
    st.sampled_from(["7d", "30d", "AI", "human", "0001-01-01", "9999-12-31", "9999-12-31T23:59:59-14:00", "x" * 2_049]),
    st.from_regex(r"\d{4}-\d\d-\d\d([Tt ]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d))?", fullmatch=True),
)


@settings(max_examples=150, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.dictionaries(st.sampled_from([*PARAMETERS]), words), st.sampled_from([DEVICES, BOTS, DOMAINS]))
def test_any_parameters_give_a_scope_or_an_error_that_names_one(scoped, given, entry):
    refused = None
    try:
        scope = scoped(entry, **given)
    except InvalidParameter as problem:
        refused = problem
    if refused:
        assert refused.problem.split()[2] in given
        return
    assert scope.organization == "acme"
    assert scope.start_date <= scope.end_date <= TODAY
    assert (scope.end_date - scope.start_date).days < 3_700
    assert scope.domain in (None, normalized_host(given.get("domain", "")), given.get("domain", "").lower())
    assert scope.traffic_type is None or entry is BOTS
    if given.get("target_url"):
        assert scope.short_code in ("a", NO_LINK)
