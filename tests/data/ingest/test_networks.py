"""The kinds of networks that addresses belong to, and their facts in landed visits."""

import json
from datetime import UTC, datetime
from ipaddress import ip_network

import pytest

from data.ingest.importer import Importer, Options
from data.ingest.live import LiveIngest
from data.logs.reported import Submission
from data.rules.ip_lists import FetchedList, folder_fetcher
from data.rules.networks import NetworkKinds
from data.rules.tables import IpList, load
from data.signals import BITS
from data.store.ip_list_files import refresh
from data.store.pending import flush_all
from tests.support.lakes import rows_of

KINDS = [
    ("52.95.110.1", "from_hosting"),  # in https://ip-ranges.amazonaws.com/ip-ranges.json
    ("2a01:4f8::1", "from_hosting"),  # Hetzner Online
    ("212.227.0.9", "from_hosting"),  # IONOS, only in hosting.toml
    ("104.16.0.9", "from_cdn"),  # in https://www.cloudflare.com/ips-v4
    ("104.28.28.0", "from_relay"),  # in https://mask-api.icloud.com/egress-ip-ranges.csv
    ("2.58.241.66", "from_vpn"),  # ProtonVPN
    ("185.220.101.1", "from_tor"),  # in https://check.torproject.org/torbulkexitlist
    ("66.249.66.1", "from_bot"),  # in https://developers.google.com/static/search/apis/ipranges/googlebot.json
    ("193.186.4.182", ""),  # Google's proxies, through which Chrome prefetches search results
    ("198.51.100.7", ""),
    ("2001:db8::1", ""),  # for documentation, but in a range of Vultr
    ("127.0.0.1", ""),
    ("", ""),
    ("unknown", ""),
]


@pytest.mark.parametrize(("address", "fact"), KINDS)
def test_an_address_has_the_kind_of_its_network(address, fact):
    assert NetworkKinds({}).fact(address) == BITS.get(fact, 0)


LISTED = ["10.0.0.0/8", "104.28.0.0/16", "193.186.4.0/24", "203.0.114.0/24", "2001:df0:0::/48"]
"""Networks in a fetched list of hosting networks: one is private, two are used by people, two are in no other list."""
BY_LISTS = [
    *KINDS,
    ("203.0.114.9", "from_hosting"),
    ("2001:df0::1", "from_hosting"),
    ("203.0.115.9", ""),
    ("10.0.0.9", ""),
]


@pytest.mark.parametrize(("address", "fact"), BY_LISTS)
def test_a_fetched_list_adds_hosting_networks(address, fact):
    lists = {"hosting-ipv4": FetchedList("hosting-ipv4", datetime.now(UTC), [ip_network(one) for one in LISTED])}
    assert NetworkKinds(lists).fact(address) == BITS.get(fact, 0)


def test_an_agents_address_list_does_not_mark_hosting_networks():
    lists = {"openai-gptbot": FetchedList("openai-gptbot", datetime.now(UTC), [ip_network("203.0.114.0/24")])}
    assert NetworkKinds(lists).fact("203.0.114.9") == 0


def fetch_hosting(lake, folder):
    """Fetch a list of hosting networks into a lake, in the form in which it is published."""
    (folder / "hosting-ipv4.txt").write_text("203.0.114.0/24\n198.18.0.0/15\n")
    rows = [row for row in load(IpList, "ip_lists") if row.name == "hosting-ipv4"]
    assert [outcome.error for outcome in refresh(lake, rows, folder_fetcher(folder), datetime.now(UTC))] == [""]


def test_log_visits_land_with_network_kinds_from_fetched_lists(lake, tmp_path):
    fetch_hosting(lake, tmp_path)
    log = tmp_path / "access.log"
    log.write_text('203.0.114.9 - - [01/Mar/2026:10:05:00 +0000] "GET / HTTP/1.1" 200 1 "-" "Chrome"\n')
    Importer(lake).run(log, Options("acme", domain="go.example.com"))
    assert [visit["signals"] for visit in rows_of(lake)] == [BITS["from_hosting"]]


def test_live_visits_land_with_network_kinds_from_fetched_lists(lake, tmp_path):
    fetch_hosting(lake, tmp_path)
    LiveIngest(lake).land([Submission("acme", [b'{"path": "/", "ip": "203.0.114.9"}'])])
    flush_all(lake)
    assert [visit["signals"] for visit in rows_of(lake)] == [BITS["from_hosting"]]


def test_log_visits_land_with_the_kinds_of_their_networks(logs):
    lines = [
        f'{address or "-"} - - [01/Mar/2026:10:05:{number:02} +0000] "GET /{number} HTTP/1.1" 200 1 "-" "Chrome"\n'
        for number, (address, _) in enumerate(KINDS)
    ]
    logs.load("".join(lines), Options("acme", domain="go.example.com"))
    found = {int(visit["path"][1:]): visit["signals"] for visit in logs.visits()}
    assert found == {number: BITS.get(fact) for number, (_, fact) in enumerate(KINDS)}


def test_network_kinds_and_request_facts_are_combined(logs):
    line = '52.95.110.1 - - [01/Mar/2026:10:05:00 +0000] "GET /?id=1\'+union+select+1-- HTTP/1.1" 200 1 "-" "Chrome"\n'
    logs.load(line, Options("acme", domain="go.example.com"))
    assert [visit["signals"] for visit in logs.visits()] == [BITS["attacked"] | BITS["from_hosting"]]


def test_live_visits_land_with_the_kinds_of_their_networks(lake):
    kinds = [(address, fact) for address, fact in KINDS if address[:1].isdigit()]
    rows = [json.dumps({"path": f"/{number}", "ip": address}).encode() for number, (address, _) in enumerate(kinds)]
    LiveIngest(lake).land([Submission("acme", rows)])
    flush_all(lake)
    found = {int(visit["path"][1:]): visit["signals"] for visit in rows_of(lake)}
    assert found == {number: BITS.get(fact) for number, (_, fact) in enumerate(kinds)}
