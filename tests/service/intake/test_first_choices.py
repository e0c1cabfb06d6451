"""Defaults offered before an organization's first visit: the machine's zone and the user's own address."""

import gzip

import pytest

from service.intake.commands.first_choices import guessed_zone, own_address

CONNECTED = {"SSH_CONNECTION": "203.0.113.7 51000 192.0.2.1 22"}


@pytest.fixture
def machine(tmp_path):
    """The root folder of a machine without a configured time zone."""
    (tmp_path / "etc").mkdir()
    return tmp_path


def test_a_machine_without_a_zone_gets_utc(machine):
    assert guessed_zone({}, machine) == "UTC"


@pytest.mark.parametrize(
    "name", ["Europe/Berlin", ":Europe/Berlin", "/usr/share/zoneinfo/Europe/Berlin"], ids=["name", "colon", "path"]
)
def test_a_zone_in_the_environment_takes_precedence(machine, name):
    (machine / "etc/timezone").write_text("Asia/Tokyo\n")
    assert guessed_zone({"TZ": name}, machine) == "Europe/Berlin"


def test_a_posix_rule_instead_of_a_zone_name_is_ignored(machine):
    (machine / "etc/timezone").write_text("Asia/Tokyo\n")
    assert guessed_zone({"TZ": "CET-1CEST"}, machine) == "Asia/Tokyo"


@pytest.mark.parametrize("target", ["/usr/share/zoneinfo/Asia/Tokyo", "../usr/share/zoneinfo/Asia/Tokyo"])
def test_the_etc_localtime_link_names_a_zone(machine, target):
    (machine / "etc/localtime").symlink_to(target)
    assert guessed_zone({}, machine) == "Asia/Tokyo"


def test_etc_utc_is_called_utc(machine):
    (machine / "etc/timezone").write_text("Etc/UTC\n")
    assert guessed_zone({}, machine) == "UTC"


def address_in(path, content, environ=CONNECTED):
    path.write_bytes(content)
    return own_address(environ, [path])


def test_an_address_in_a_log_is_offered(tmp_path):
    assert address_in(tmp_path / "log", b"198.51.100.1 - a\n203.0.113.7 - b\n") == "203.0.113.7"


def test_an_address_in_a_compressed_log_is_offered(tmp_path):
    assert address_in(tmp_path / "log.gz", gzip.compress(b"203.0.113.7 - b\n")) == "203.0.113.7"


def test_an_address_with_a_port_is_offered(tmp_path):
    assert address_in(tmp_path / "log", b"203.0.113.7:443 - b\n") == "203.0.113.7"


@pytest.mark.parametrize("text", [b"203.0.113.70 - a", b"1203.0.113.7 - a", b"203.0.113.7.9 - a", b"198.51.100.1 - a"])
def test_another_address_is_not_offered(tmp_path, text):
    assert address_in(tmp_path / "log", text) == ""


def test_an_ipv6_address_is_offered(tmp_path):
    connected = {"SSH_CONNECTION": "2001:db8::7 51000 2001:db8::1 22"}
    assert address_in(tmp_path / "log", b"2001:db8::7 - a\n", connected) == "2001:db8::7"


def test_without_a_connection_no_address_is_offered(tmp_path):
    assert address_in(tmp_path / "log", b"203.0.113.7 - b\n", {}) == ""
