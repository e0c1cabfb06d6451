"""Sample traffic: how much of it there is, when, and from where."""

import re
from collections import Counter
from datetime import date

import pytest

from queries.prelude import sql_text
from service.demo.countries import SampleCountries
from service.demo.sample import Sample


@pytest.fixture(scope="module")
def lines():
    return list(Sample(3_000, date(2026, 3, 10), days=5, links=20).lines())


def test_an_unfinished_last_day_has_no_visits_in_the_future(lines):
    until_six = list(Sample(3_000, date(2026, 3, 10), days=5, links=20, last_second=6 * 3_600).lines())
    assert len(lines) == len(until_six) == 3_000
    clocks = [re.search(r"\[10/Mar/2026:(\S+) ", line) for line in until_six]
    today = [clock[1] for clock in clocks if clock]
    assert 100 < len(today) < sum("[10/Mar/2026:" in line for line in lines) / 3
    assert today == sorted(today)
    assert today[-1] < "06:00:00"


def test_only_common_and_scanned_paths_are_missing_in_a_sample(lines):
    missing = set(re.findall(r'"GET ([^ ?]+)\S* HTTP/1.1" 404 ', "\n".join(lines)))
    assert missing == {"/robots.txt", "/favicon.ico", "/wp-login.php", "/.env", "/sitemap.xml"}


def test_people_come_from_everywhere_and_agents_from_few_places(lines):
    people, agents = (
        Counter(SampleCountries().lookup(line.split()[1]) for line in lines if word in line)
        for word in ("Safari/", "GPTBot")
    )
    assert len(people) > 25
    assert max(people, key=people.__getitem__) == "US"
    assert 0.15 < people["US"] / people.total() < 0.35
    assert set(people) <= set(re.findall(r"'([A-Z]{2})'", sql_text("names/countries")))
    assert set(agents) <= {"US", "IE", "DE", "SG"}
    addresses = ["198.19.64.1", "198.19.64.200", "2001:db8:40ff::1"]  # each has the same country each time
    assert [SampleCountries().lookup(address) for address in addresses] == ["DE"] * 3
    assert [SampleCountries().lookup(f"198.18.7.{host}") for host in (0, 49, 50, 63)] == ["US", "US", "IE", "SG"]
