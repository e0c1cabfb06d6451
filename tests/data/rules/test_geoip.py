"""Looking up an address's country in databases from MaxMind, DB-IP and IPinfo."""

import json
import re
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from data.errors import BadInput
from data.rules.geoip import CountryDatabase, _code_in
from tests.support.addresses import country_database
from tests.support.forks import ROOT
from tests.support.tables import examples_at_once, tables

PUBLISHED = tables(__file__)["published"]
"""A record of each publisher's database. In IPinfo Lite, `country` is the name, and `country_code` the code:
https://ipinfo.io/developers/ipinfo-lite-database"""
MAXMIND, IPINFO = PUBLISHED["MaxMind Country"], PUBLISHED["IPinfo"]


@pytest.fixture
def file(tmp_path):
    return tmp_path / "countries.mmdb"


@pytest.fixture
def database(file):
    """Write a database of networks and their records."""
    return lambda records, ip_version=6: country_database(file, records, ip_version)


HERE = "81.2.69.0/24 2a01:4f8::/32"
NO_DATABASE = "{} is not a valid country database in MaxMind's format: "


@pytest.mark.parametrize("record", PUBLISHED.values(), ids=PUBLISHED)
def test_databases_from_every_publisher_name_the_country(database, record):
    countries = database({HERE: record})
    told = [countries.lookup(address) for address in ("81.2.69.0", "81.2.69.255", "2a01:4f8::1", "2A01:4F8:CAFE::1")]
    assert told == ["DE"] * 4


def test_unknown_and_invalid_addresses_have_no_country(database):
    countries = database({HERE: MAXMIND})
    for address in (
        "81.2.68.255", "81.2.70.0", "2a01:4f9::1", "10.0.0.1", "127.0.0.1", "::1", "255.255.255.255", "", "-", "nobody",
        "81.2.69", "81.2.69.300", "81.2.69.1, 10.0.0.1", " ", "é", "\ufffd",
    ):  # fmt: skip
        assert countries.lookup(address) is None, address


@pytest.mark.parametrize("ip_version", [4, 6])
def test_an_ipv4_database_finds_ipv4_addresses_written_as_ipv6(database, ip_version):
    countries = database({"81.2.69.0/24": MAXMIND}, ip_version)
    asked = ("81.2.69.7", "2a01:4f8::1", "81.2.69.8", "::ffff:81.2.69.7", "81.2.69.1:80")
    assert [countries.lookup(address) for address in asked] == ["DE", None, "DE", "DE", "DE"]


def test_the_smallest_network_around_an_address_decides(database):
    countries = database({"81.2.0.0/16": {"country": "GB"}, "81.2.69.0/24": {"country": "DE"}})
    assert [countries.lookup(address) for address in ("81.2.69.7", "81.2.70.7")] == ["DE", "GB"]


@examples_at_once("record")
def test_a_record_without_a_country_code_has_no_country(database, record):
    record = json.loads(json.dumps(record))  # with lists, which databases support, instead of tuples
    assert database({HERE: record}).lookup("81.2.69.7") is None


RECORDS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3) | st.binary(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["country", "country_code", "iso_code"]), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(record=RECORDS)
def test_any_record_gives_a_two_letter_country_code_or_none(record):
    told = _code_in(record)
    assert told is None or (len(told) == 2 and told.isascii() and told == told.upper())


# Files that are not databases


def test_the_error_about_an_invalid_database_names_its_path(tmp_path, file, database):
    database({HERE: MAXMIND})
    whole = file.read_bytes()
    for path in (tmp_path / "nowhere.mmdb", tmp_path):
        with pytest.raises(BadInput, match=re.escape(NO_DATABASE.format(path))):
            CountryDatabase(path)
    cut = [whole[: int(len(whole) * share)] for share in (0.1, 0.5, 0.9, 0.99)]
    for content in (b"", b"<html>404</html>", b"\0" * 4096, b"\x1f\x8b\x08", b"\xab\xcd\xefMaxMind.com", *cut):
        file.write_bytes(content)
        with pytest.raises(BadInput, match=re.escape(NO_DATABASE.format(file))):
            CountryDatabase(file)


def test_a_database_with_a_damaged_type_has_no_known_publisher(file, database):
    database({HERE: MAXMIND})
    content = bytearray(file.read_bytes())
    content[content.index(b"database_type") + len(b"database_type")] ^= 0b110_00000  # text becomes bytes
    file.write_bytes(content)
    assert CountryDatabase(file).provider is None
    assert CountryDatabase(file).lookup("81.2.69.7") == "DE"


@settings(max_examples=40)
@given(data=st.data())
def test_a_database_with_damaged_metadata_is_rejected_or_read(tmp_path_factory, data):
    path = tmp_path_factory.mktemp("damaged") / "countries.mmdb"
    country_database(path, {"81.2.69.0/24": {"country": "DE"}}, 4)
    content = bytearray(path.read_bytes())
    content[data.draw(st.integers(content.index(b"MaxMind.com"), len(content) - 1))] = data.draw(st.integers(0, 255))
    damaged = path.with_name("damaged.mmdb")
    damaged.write_bytes(content)
    try:
        told = CountryDatabase(damaged).lookup("81.2.69.7")
    except BadInput as refusal:
        told = str(refusal)
    assert told in {None, "DE"} or str(damaged) in told


def test_an_address_with_a_damaged_record_has_no_country(file, database):
    database({HERE: IPINFO, "5.5.5.0/24": {"country": "FR"}})
    file.write_bytes(file.read_bytes().replace(b"BDE", b"B\xff\xfe"))
    countries = CountryDatabase(file)
    assert [countries.lookup(address) for address in ("81.2.69.7", "5.5.5.5")] == [None, "FR"]


ASK = """
import sys
from pathlib import Path
from data.rules.geoip import CountryDatabase
print(CountryDatabase(Path(sys.argv[1])).lookup("81.2.69.7"))
"""


def test_a_damaged_key_in_a_record_does_not_crash_the_program(file, database):
    database({"81.2.69.0/24": {"country": {"iso_code": "DE"}}}, ip_version=4)
    file.write_bytes(file.read_bytes().replace(b"Gcountry", b"\xa1country"))  # one byte turns the key into a number
    ended = subprocess.run([sys.executable, "-c", ASK, file], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout) == (0, "None\n")
