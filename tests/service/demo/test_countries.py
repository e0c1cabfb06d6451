"""The sample's addresses have countries, the same ones each time."""

import re
from collections import Counter
from datetime import date

from queries.prelude import sql_text
from service.demo.countries import SampleCountries
from service.demo.sample import Sample

LINES = list(Sample(5_000, date(2026, 3, 1), days=5, links=9).lines())


def countries(word):
    """How often each country occurs in the lines that contain a word."""
    addresses = [line.split()[1] for line in LINES if word in line]
    return Counter(map(SampleCountries().lookup, addresses))


def test_people_come_from_all_over_the_world_most_of_them_from_the_largest_countries():
    found = countries("Safari/")
    assert len(found) > 25
    assert max(found, key=found.__getitem__) == "US"
    assert 0.15 < found["US"] / found.total() < 0.35
    assert set(found) <= set(re.findall(r"'([A-Z]{2})'", sql_text("names/countries")))


def test_agents_run_in_a_few_data_centers():
    assert set(countries("GPTBot")) <= {"US", "IE", "DE", "SG"}


def test_an_address_has_the_same_country_each_time():
    assert SampleCountries().lookup("198.19.64.1") == SampleCountries().lookup("198.19.64.200") == "DE"
    assert SampleCountries().lookup("2001:db8:40ff::1") == "DE"
    assert [SampleCountries().lookup(f"198.18.7.{host}") for host in (0, 49, 50, 63)] == ["US", "US", "IE", "SG"]
