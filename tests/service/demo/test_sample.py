"""The sample traffic: its amount, its times and its sources."""

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


def test_in_a_sample_only_common_or_scanned_paths_are_missing(lines):
    missing = set(re.findall(r'"GET ([^ ?]+)\S* HTTP/1.1" 404 ', "\n".join(lines)))
    assert missing == {"/robots.txt", "/favicon.ico", "/wp-login.php", "/.env", "/sitemap.xml"}


def countries_of(lines, word):
    """Return the number of lines that contain a word, by country."""
    return Counter(SampleCountries().lookup(line.split()[1]) for line in lines if word in line)


def test_people_come_from_many_countries(lines):
    people = countries_of(lines, "Safari/")
    assert len(people) > 25
    assert max(people, key=people.__getitem__) == "US"
    assert 0.15 < people["US"] / people.total() < 0.35
    assert set(people) <= set(re.findall(r"'([A-Z]{2})'", sql_text("names/countries")))


def test_agents_come_from_few_countries(lines):
    assert set(countries_of(lines, "GPTBot")) <= {"US", "IE", "DE", "SG"}


def test_addresses_of_a_network_have_one_country():
    addresses = ["198.19.64.1", "198.19.64.200", "2001:db8:40ff::1"]
    assert [SampleCountries().lookup(address) for address in addresses] == ["DE"] * 3


def test_the_last_part_of_an_agents_address_sets_its_country():
    assert [SampleCountries().lookup(f"198.18.7.{host}") for host in (0, 49, 50, 63)] == ["US", "US", "IE", "SG"]
