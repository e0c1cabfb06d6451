"""Hosts are validated by RFC 3986 and IDNA, and have one normal form."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from data import BadInput
from data.hosts import check_host, normalized_address, normalized_host
from tests.support.tables import examples_at_once


@examples_at_once("text", "host")
def test_a_host_has_only_one_normalized_form(text, host):
    assert normalized_host(text) == host
    assert normalized_host(host) == host


@examples_at_once("text")
def test_invalid_hosts_are_rejected(text):
    assert normalized_host(text) is None
    with pytest.raises(BadInput) as refused:
        check_host(text, "--domain")
    assert str(refused.value) == "--domain must be a host or host:port, such as go.example.com or [2001:db8::1]:8080."


@pytest.mark.parametrize(("label", "labels"), [("a", 126), ("a" * 63, 3), ("a" * 62 + "b", 3)])
def test_a_host_may_have_253_characters_and_a_label_63(label, labels):
    host = ".".join([label] * labels)
    longest = f"{host}.{'a' * (252 - len(host))}" if len(host) < 252 else host
    assert normalized_host(f"{longest}.:65535") == longest
    assert normalized_host(f"{longest}aa") is None
    assert normalized_host(f"a{label if len(label) == 63 else 'a' * 63}.example") is None


def test_a_long_string_is_rejected_immediately():
    assert normalized_host("ü" * 1_000_000) is None
    assert normalized_host("ü" * 250) is None


@given(st.text(max_size=40) | st.text("aü-.:[]%/@", max_size=12))
@settings(max_examples=500, derandomize=True)
def test_normalization_is_idempotent(text):
    host = normalized_host(text)
    if host is not None:
        assert host == normalized_host(host)
        assert host == host.lower()
        assert host.isascii()
        assert not set(host) & set("/?#@% \\\n\0,;=&")


@pytest.mark.parametrize(
    ("address", "spellings"),
    [
        ("203.0.113.7", ["203.0.113.7:443", "::ffff:203.0.113.7", "::FFFF:cb00:7107", "[::ffff:203.0.113.7]:443"]),
        ("2001:db8::1", ["2001:DB8::1", "2001:0db8:0:0:0:0:0:0001", "[2001:db8::1]", "[2001:DB8:0::1]:443"]),
        ("fe80::1", ["fe80::1%eth0", "[fe80::1%25eth0]:80"]),
        ("", [""]),
        ("unknown", ["unknown"]),
        ("a:b:c", ["a:b:c"]),
    ],
)
def test_an_address_has_only_one_normalized_form(address, spellings):
    assert {normalized_address(spelling) for spelling in [address, *spellings]} == {address}
