"""Whose address a request came from: walked from the right over proxies, never what a client says of itself."""

from ipaddress import ip_network

import pyarrow as pa
import pytest

from data.ingest.client_addresses import ClientAddresses

CLIENT, OTHER, FORGED, CDN = "198.51.100.7", "203.0.113.9", "66.249.66.1", "104.16.0.9"


@pytest.fixture(scope="module")
def clients():
    return ClientAddresses()


@pytest.mark.parametrize(
    ("peer", "forwarded", "client"),
    [
        (CLIENT, "", CLIENT),
        (CLIENT, FORGED, CLIENT),
        ("10.0.0.1", CLIENT, CLIENT),
        ("10.0.0.1", f"{FORGED}, {CLIENT}", CLIENT),
        ("127.0.0.1", f"{FORGED}, {CLIENT}, 10.0.0.2, {CDN}", CLIENT),
        (CDN, f"{FORGED},{CLIENT}", CLIENT),
        ("", f"{FORGED}, {CLIENT}", CLIENT),
        (f"{FORGED},{CLIENT},10.0.0.1", "", CLIENT),
        ("unix:", CLIENT, CLIENT),
        ("-", CLIENT, CLIENT),
        ("fe80::1%eth0", f"[2001:DB8::1]:443, {CLIENT}:51324", CLIENT),
        ("::1", f'for="[2001:db8::1]:4711";proto=https, For={CLIENT}', CLIENT),
        ("::ffff:10.0.0.1", "2001:DB8::0:1", "2001:db8::1"),
    ],
)
def test_a_client_is_the_first_stranger_from_the_right(clients, peer, forwarded, client):
    assert clients.client(peer, forwarded) == client


@pytest.mark.parametrize(
    ("peer", "forwarded", "client"),
    [
        ("10.0.0.1", "", "10.0.0.1"),
        ("10.0.0.1", "10.0.0.5", "10.0.0.5"),
        ("10.0.0.1", "10.0.0.5, 10.0.0.2", "10.0.0.2"),
        ("", "10.0.0.5, 10.0.0.2", "10.0.0.2"),
        ("10.0.0.1", f"{CLIENT}, evil", "10.0.0.1"),
        ("10.0.0.1", f"{FORGED}, evil, 10.0.0.2", "10.0.0.2"),
        ("crawl-66-249.example.net", CLIENT, "crawl-66-249.example.net"),
        ("", "evil", ""),
        ("-", "-", ""),
        ("", "", ""),
    ],
)
def test_without_a_stranger_the_nearest_to_the_server_counts(clients, peer, forwarded, client):
    assert clients.client(peer, forwarded) == client


def test_named_proxies_take_the_place_of_local_networks():
    clients = ClientAddresses([ip_network("203.0.113.0/24")])
    assert clients.client(OTHER, f"{FORGED}, {CLIENT}") == CLIENT
    assert clients.client("10.0.0.1", CLIENT) == "10.0.0.1"
    assert clients.client(CDN, CLIENT) == CLIENT


@pytest.mark.parametrize(
    ("peer", "forwarded", "scheme"),
    [
        (CLIENT, "", "own"),
        (CLIENT, FORGED, "own"),
        ("127.0.0.1", "", "own"),
        ("10.0.0.1", "", "told"),
        ("10.0.0.1", CLIENT, "told"),
        (CDN, "", "told"),
        (CLIENT, f"{FORGED}, {CLIENT}", "told"),
        ("unix:", "", "told"),
        ("unix:", CLIENT, "told"),
        ("", CLIENT, "told"),
    ],
)
def test_a_scheme_is_told_by_the_proxy_in_front(clients, peer, forwarded, scheme):
    request = {"ip": [peer], "forwarded": [forwarded], "scheme": ["own"], "forwarded_proto": ["told"]}
    assert clients.resolved(pa.table(request))["scheme"].to_pylist() == [scheme]


def test_any_network_may_be_one_of_proxies():
    request = {"ip": [CLIENT], "forwarded": [""], "scheme": ["own"], "forwarded_proto": ["told"]}
    for network in map(ip_network, ("0.0.0.0/0", "198.51.0.0/16", "198.51.100.6/31", f"{CLIENT}/32")):
        assert ClientAddresses([network]).resolved(pa.table(request))["scheme"].to_pylist() == ["told"]


def test_the_scheme_of_an_edge_or_a_program_is_its_word(clients):
    request = pa.table({"ip": ["10.0.0.1"], "forwarded": [CLIENT], "scheme": ["https"]})
    assert clients.resolved(request)["scheme"].to_pylist() == ["https"]


def test_requests_get_the_address_of_their_client(clients):
    requests = pa.table({
        "number": [1, 2, 3], "ip": ["10.0.0.1", CLIENT, "10.0.0.1"], "forwarded": [CLIENT, "", f"{FORGED}, {OTHER}"]
    })  # fmt: skip
    assert clients.resolved(requests).to_pydict() == {"number": [1, 2, 3], "ip": [CLIENT, CLIENT, OTHER]}
