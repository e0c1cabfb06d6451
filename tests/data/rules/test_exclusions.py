"""Valid and invalid exclusion rules."""

import pytest

from data import BadInput
from data.rules.exclusions import Exclusion
from data.rules.own_rules import OwnRules, checked_exclusion
from data.signals import BITS


@pytest.mark.parametrize(
    ("kind", "given", "kept"),
    [
        ("address", "203.0.113.7", "203.0.113.7/32"),
        ("address", "203.0.113.7/24", "203.0.113.0/24"),
        ("address", "2001:DB8::/32", "2001:db8::/32"),
        ("agent", "Uptime.*", "Uptime.*"),
        ("path", "/admin/", "/admin"),
        ("path", "/", "/"),
    ],
)
def test_a_rule_has_only_one_normalized_form(kind, given, kept):
    assert checked_exclusion(kind, given) == Exclusion(kind, kept)


@pytest.mark.parametrize(
    ("kind", "given", "problem"),
    [
        ("address", "office", "'office' is not an address or network, such as 203.0.113.7 or 203.0.113.0/24."),
        ("address", "203.0.113.0/33", "'203.0.113.0/33' is not an address or network"),
        ("agent", "(", "'(' is not a valid RE2 pattern for user agents: missing ): (."),
        ("agent", "", "'' matches every user agent; make it match only yours, such as UptimeKuma."),
        ("agent", "a*", "'a*' matches every user agent"),
        ("path", "admin", "'admin' is not a path; write it like /admin, with / at the start and without ? or #."),
        ("path", "/a?b=c", "'/a?b=c' is not a path"),
    ],
)
def test_the_error_about_an_invalid_rule_quotes_its_value(kind, given, problem):
    with pytest.raises(BadInput) as raised:
        checked_exclusion(kind, given)
    assert str(raised.value).startswith(problem)


def test_an_empty_set_of_rules_excludes_nothing():
    own = OwnRules()
    assert [own.of_address("203.0.113.7"), own.of_agent("x"), own.of_path("/"), own.digest] == [0, 0, 0, ""]


def test_the_root_excludes_every_path():
    assert OwnRules([Exclusion("path", "/")]).of_path("/a/b") == BITS["own_rule"]


def test_address_rules_ignore_values_that_are_not_addresses():
    own = OwnRules([checked_exclusion("address", "0.0.0.0/0")])
    assert [own.of_address(text) for text in ("", "-", "unknown", "198.51.100.7")] == [0, 0, 0, BITS["own_address"]]


def test_text_with_a_lone_surrogate_is_searched_like_other_text():
    own = OwnRules([Exclusion("agent", "bot"), Exclusion("path", "/a")])
    assert [own.of_agent("\ud800bot"), own.of_path("/a/\ud800")] == [BITS["own_rule"]] * 2


def test_the_digest_covers_agents_and_paths_but_not_addresses():
    rules = [Exclusion("agent", "a"), Exclusion("path", "/a")]
    digests = {OwnRules(some).digest for some in ([], rules[:1], rules[1:], rules)}
    assert len(digests) == 4
    assert OwnRules([*rules, Exclusion("address", "203.0.113.0/24")]).digest == OwnRules(rules[::-1]).digest
