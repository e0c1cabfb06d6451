"""The command that updates the networks of hosting providers."""

import sys
from ipaddress import ip_network

import pytest

from data.rules.tables import Hosting, parse_rows
from tests.support import hosting

ROW = '[[hosting]]\nsystem = {}\nname = "A"\nevidence = "https://a.example"\nchecked = 2026-11-30\nnetworks = []\n'


@pytest.fixture
def updated(tmp_path, monkeypatch, capsys):
    """Update a table of the autonomous systems 1 and 2; return the table's text and the messages."""
    (tmp_path / "ipv4.txt").write_text("8.8.4.0/24\n8.8.6.0/24\n8.8.7.0/24\n9.0.1.0/24\n52.95.110.0/24\n8.8.9.0/24\n")
    (tmp_path / "asn-ipv4.csv").write_text(
        '8.8.4.0,8.8.9.255,1,"A, Inc."\n9.0.0.0,9.0.0.255,2,B\n52.95.0.0,52.95.255.255,1,A\n'
    )
    (tmp_path / "ipv6.txt").write_text("2a0f:1::/32\n")
    (tmp_path / "asn-ipv6.csv").write_text("2a0f:1::,2a0f:1:ffff:ffff:ffff:ffff:ffff:ffff,1,A\n")
    table = tmp_path / "hosting.toml"
    table.write_text(f"# Head\n\n{ROW.format(1)}\n{ROW.format(2)}")
    monkeypatch.setattr(hosting, "FILE", table)
    monkeypatch.setattr(hosting, "load", lambda row, name: parse_rows(row, name, "hosting.toml", table.read_bytes()))
    monkeypatch.setattr(sys, "argv", ["hosting", str(tmp_path), str(tmp_path)])
    hosting.main()
    return table.read_text(), capsys.readouterr().err


def test_each_system_gets_only_networks_that_iporigin_lacks(updated):
    first, second = parse_rows(Hosting, "hosting", "hosting.toml", updated[0].encode())
    assert [*map(ip_network, first.networks)] == [*map(ip_network, ("8.8.6.0/23", "8.8.9.0/24", "2a0f:1::/32"))]
    assert second.networks == ()
    assert updated[0].startswith("# Head\n\n[[hosting]]\n")


def test_a_system_without_listed_networks_is_reported(updated):
    assert updated[1] == "A (2) announces no listed network; remove its row.\n"
