"""The client's address is determined from the right end of the chain, never from the client's own claims."""

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
def test_the_client_is_the_rightmost_untrusted_address(clients, peer, forwarded, client):
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
def test_without_an_untrusted_address_the_nearest_proxy_decides(clients, peer, forwarded, client):
    assert clients.client(peer, forwarded) == client


def test_named_proxies_replace_local_networks():
    clients = ClientAddresses([ip_network("203.0.113.0/24")])
    assert clients.client(OTHER, f"{FORGED}, {CLIENT}") == CLIENT
    assert clients.client("10.0.0.1", CLIENT) == "10.0.0.1"
    assert clients.client(CDN, CLIENT) == CLIENT


SCHEMES = {"scheme": ["own"], "forwarded_proto": ["told"]}


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
        (f"{CLIENT}, 10.0.0.1", "", "told"),
        (f"10.0.0.1, {CLIENT}", "", "own"),
    ],
)
def test_behind_a_proxy_the_reported_scheme_is_used(clients, peer, forwarded, scheme):
    request = {"ip": [peer], "forwarded": [forwarded], "protocol": ["HTTP/2"], **SCHEMES}
    found = clients.resolve(pa.table(request))
    assert found["scheme"].to_pylist() == [scheme]
    assert found["protocol"].to_pylist() == ["HTTP/2" if scheme == "own" else ""]


@pytest.mark.parametrize(
    ("forwarded", "scheme"),
    [
        (f"for={CLIENT};proto=https", "https"),
        (f'by=a;Proto="HTTPS";For="{CLIENT}:80"', "https"),
        (f"for={FORGED};proto=http, for={CLIENT};proto=https, for=10.0.0.2;proto=http", "https"),
        (f"for={FORGED};proto=https, for={CLIENT}", None),
        ("for=10.0.0.3;proto=https", None),
        ("for=unknown;proto=https", "https"),
    ],
)
def test_the_forwarded_header_determines_the_clients_scheme(clients, forwarded, scheme):
    request = {"ip": ["10.0.0.1"], "forwarded": [forwarded], "protocol": ["HTTP/1.1"], "scheme": ["http"]}
    found = clients.resolve(pa.table(request | {"forwarded_proto": pa.array([None], pa.string())}))
    assert (found["scheme"].to_pylist() if "scheme" in found.schema.names else [None]) == [scheme]


def test_lines_without_an_address_keep_their_scheme_and_protocol(clients):
    requests = {"ip": [None, "10.0.0.1"], "forwarded": ["", ""], "protocol": ["HTTP/2"] * 2}
    found = clients.resolve(pa.table(requests | {name: 2 * value for name, value in SCHEMES.items()}))
    assert found["scheme"].to_pylist() == ["own", "told"]
    assert found["protocol"].to_pylist() == ["HTTP/2", ""]


def test_any_network_may_be_a_proxy_network():
    request = {"ip": [CLIENT], "forwarded": [""], "protocol": ["HTTP/1.1"], **SCHEMES}
    for network in map(ip_network, ("0.0.0.0/0", "198.51.0.0/16", "198.51.100.6/31", f"{CLIENT}/32")):
        assert ClientAddresses([network]).resolve(pa.table(request))["scheme"].to_pylist() == ["told"]


def test_the_scheme_from_an_edge_or_a_program_is_accepted(clients):
    request = pa.table({"ip": ["10.0.0.1"], "forwarded": [CLIENT], "scheme": ["https"]})
    assert clients.resolve(request)["scheme"].to_pylist() == ["https"]


def test_requests_get_the_address_of_their_client(clients):
    requests = pa.table({
        "number": [1, 2, 3], "ip": ["10.0.0.1", CLIENT, "10.0.0.1"], "forwarded": [CLIENT, "", f"{FORGED}, {OTHER}"]
    })  # fmt: skip
    assert clients.resolve(requests).to_pydict() == {"number": [1, 2, 3], "ip": [CLIENT, CLIENT, OTHER]}


@pytest.mark.parametrize(
    ("network", "address"),
    [
        ("fc00::/7", "FD12::5"),
        ("fe80::/10", "febf::1"),
        ("2400:cb00::/32", "2400:CB00::1"),
        ("2001:db8::/29", "2001:dbf::1"),
        ("64:ff9b::/96", "0064:ff9b::c000:201"),
        ("::/0", "2001:db8::1"),
        ("203.0.113.0/24", "::ffff:203.0.113.9"),
        ("203.0.112.0/20", "203.0.127.255"),
        ("192.0.0.0/3", "223.1.1.1"),
    ],
)
def test_an_address_matches_the_prefix_pattern_of_its_network(network, address):
    request = {"ip": [address], "forwarded": [""], "protocol": ["HTTP/1.1"], **SCHEMES}
    assert ClientAddresses([ip_network(network)]).resolve(pa.table(request))["scheme"].to_pylist() == ["told"]
