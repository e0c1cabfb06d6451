"""From an address to its country, with databases as MaxMind, DB-IP and IPinfo write them."""

import re
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mmdb_writer import MMDBWriter
from netaddr import IPSet

from data.errors import BadInput
from data.rules.geoip import CountryDatabase, _code_in
from tests.support.forks import ROOT

MAXMIND = {
    "continent": {"code": "EU", "geoname_id": 6255148, "names": {"en": "Europe"}},
    "country": {"geoname_id": 2921044, "is_in_european_union": True, "iso_code": "DE", "names": {"en": "Germany"}},
    "registered_country": {"geoname_id": 2658434, "iso_code": "CH", "names": {"en": "Switzerland"}},
}
CITY = MAXMIND | {"city": {"names": {"en": "Berlin"}}, "location": {"latitude": 52.5, "time_zone": "Europe/Berlin"}}
DB_IP = {
    "continent": {"code": "EU", "geoname_id": 6255148, "names": {"en": "Europe"}},
    "country": {"geoname_id": 2921044, "iso_code": "DE", "names": {"en": "Germany", "fa": "آلمان"}},
}
IPINFO = {"continent": "EU", "continent_name": "Europe", "country": "DE", "country_name": "Germany"}
IPINFO_LITE = {
    "asn": "AS3320",
    "as_name": "Deutsche Telekom AG",
    "continent": "Europe",
    "continent_code": "EU",
    "country": "Germany",
    "country_code": "DE",
}
"""https://ipinfo.io/developers/ipinfo-lite-database: here `country` is the name, and `country_code` the code."""


@pytest.fixture
def database(tmp_path):
    """Writes a database of networks and their records."""

    def database(records, ip_version=6):
        writer = MMDBWriter(ip_version, "Country", ["en"], "CountryDatabase", ipv4_compatible=ip_version == 6)
        for networks, record in records.items():
            writer.insert_network(IPSet(networks.split()), record)
        path = tmp_path / "countries.mmdb"
        writer.to_db_file(str(path))
        return path

    return database


HERE = "81.2.69.0/24 2a01:4f8::/32"
NO_DATABASE = "{} is not a valid country database in MaxMind's format: "


@pytest.mark.parametrize(
    "record",
    [MAXMIND, CITY, DB_IP, IPINFO, IPINFO_LITE, {"country_code": "DE"}],
    ids=["MaxMind Country", "MaxMind City", "DB-IP", "IPinfo", "IPinfo Lite", "bare"],
)
def test_the_country_of_an_address_is_in_the_database_of_every_publisher(database, record):
    countries = CountryDatabase(database({HERE: record}))
    told = [countries.lookup(address) for address in ("81.2.69.0", "81.2.69.255", "2a01:4f8::1", "2A01:4F8:CAFE::1")]
    assert told == ["DE"] * 4


def test_an_address_that_the_database_does_not_hold_and_what_is_none_have_no_country(database):
    countries = CountryDatabase(database({HERE: MAXMIND}))
    for address in (
        "81.2.68.255", "81.2.70.0", "2a01:4f9::1", "10.0.0.1", "127.0.0.1", "::1", "255.255.255.255", "", "-", "nobody",
        "81.2.69", "81.2.69.300", "81.2.69.1:80", "81.2.69.1, 10.0.0.1", " ", "é", "\ufffd",
    ):  # fmt: skip
        assert countries.lookup(address) is None, address


@pytest.mark.parametrize("ip_version", [4, 6])
def test_a_database_of_ipv4_knows_no_ipv6_but_ipv4_addresses_written_as_ipv6(database, ip_version):
    countries = CountryDatabase(database({"81.2.69.0/24": MAXMIND}, ip_version))
    asked = ("81.2.69.7", "2a01:4f8::1", "81.2.69.8", "::ffff:81.2.69.7")
    assert [countries.lookup(address) for address in asked] == ["DE", None, "DE", "DE"]


def test_the_smallest_network_around_an_address_decides(database):
    countries = CountryDatabase(database({"81.2.0.0/16": {"country": "GB"}, "81.2.69.0/24": {"country": "DE"}}))
    assert [countries.lookup(address) for address in ("81.2.69.7", "81.2.70.7")] == ["DE", "GB"]


NO_CODES = [
    {}, "DE", ["DE"], 49, True, {"continent": {"code": "EU"}}, {"registered_country": {"iso_code": "DE"}},
    *({"country": text} for text in ({}, {"names": {"en": "Germany"}}, "", "de", "DEU", "Germany", "ДЕ", ["DE"])),
    *({"country": {"iso_code": code}} for code in (49, "T1", "A1", "A2", "O1", "XX", "ZZ")),
]  # fmt: skip


@pytest.mark.parametrize("record", NO_CODES, ids=str)
def test_a_record_without_the_code_of_a_country_has_no_country(database, record):
    assert CountryDatabase(database({HERE: record})).lookup("81.2.69.7") is None


RECORDS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3) | st.binary(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["country", "country_code", "iso_code"]), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(record=RECORDS)
def test_whatever_a_record_holds_gives_two_characters_or_none(record):
    told = _code_in(record)
    assert told is None or (len(told) == 2 and told.isascii() and told == told.upper())


# Files that are no database


def test_what_is_not_a_database_is_refused_naming_it(tmp_path, database):
    whole = database({HERE: MAXMIND}).read_bytes()
    file = tmp_path / "file.mmdb"
    for path in (tmp_path / "nowhere.mmdb", tmp_path):
        with pytest.raises(BadInput, match=re.escape(NO_DATABASE.format(path))):
            CountryDatabase(path)
    cut = [whole[: int(len(whole) * share)] for share in (0.1, 0.5, 0.9, 0.99)]
    for content in (b"", b"<html>404</html>", b"\0" * 4096, b"\x1f\x8b\x08", b"\xab\xcd\xefMaxMind.com", *cut):
        file.write_bytes(content)
        with pytest.raises(BadInput, match=re.escape(NO_DATABASE.format(file))):
            CountryDatabase(file)


def test_a_database_whose_type_is_damaged_is_read_and_of_no_known_publisher(database):
    path = database({HERE: MAXMIND})
    content = path.read_bytes()
    place = content.index(b"database_type") + len(b"database_type")
    path.write_bytes(
        content[:place] + bytes([content[place] ^ 0b110_00000]) + content[place + 1 :]
    )  # text becomes bytes
    assert CountryDatabase(path).publisher is None
    assert CountryDatabase(path).lookup("81.2.69.7") == "DE"


@settings(deadline=None, max_examples=40)
@given(data=st.data())
def test_a_database_whose_description_is_damaged_is_refused_or_read(tmp_path_factory, data):
    path = tmp_path_factory.mktemp("damaged") / "countries.mmdb"
    writer = MMDBWriter(4, "Country", ["en"], "CountryDatabase")
    writer.insert_network(IPSet(["81.2.69.0/24"]), {"country": "DE"})
    writer.to_db_file(str(path))
    content = bytearray(path.read_bytes())
    content[data.draw(st.integers(content.index(b"MaxMind.com"), len(content) - 1))] = data.draw(st.integers(0, 255))
    damaged = path.with_name("damaged.mmdb")
    damaged.write_bytes(content)
    try:
        told = CountryDatabase(damaged).lookup("81.2.69.7")
    except BadInput as refusal:
        told = str(refusal)
    assert told in {None, "DE"} or str(damaged) in told


def test_an_address_whose_record_is_damaged_has_no_country(database):
    path = database({HERE: IPINFO, "5.5.5.0/24": {"country": "FR"}})
    content = path.read_bytes()
    path.write_bytes(content.replace(b"BDE", b"B\xff\xfe"))
    countries = CountryDatabase(path)
    assert [countries.lookup(address) for address in ("81.2.69.7", "5.5.5.5")] == [None, "FR"]


ASK = """
import sys
from pathlib import Path
from data.rules.geoip import CountryDatabase
print(CountryDatabase(Path(sys.argv[1])).lookup("81.2.69.7"))
"""


def test_a_record_whose_key_is_damaged_ends_no_process(database):
    path = database({"81.2.69.0/24": {"country": {"iso_code": "DE"}}}, ip_version=4)
    content = path.read_bytes()
    path.write_bytes(content.replace(b"Gcountry", b"\xa1country"))  # one byte: the key is a number now
    ended = subprocess.run([sys.executable, "-c", ASK, path], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout) == (0, "None\n")
