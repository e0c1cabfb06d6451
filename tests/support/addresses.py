"""Sources of facts about addresses: lists of agents' networks, and country databases."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from ipaddress import ip_network
from pathlib import Path
from typing import Any

from mmdb_writer import MMDBWriter
from netaddr import IPSet

from data.rules.geoip import CountryDatabase
from data.rules.tables import IpList
from data.store.ip_list_files import refresh
from data.store.lake import Lake

FETCHED = datetime(2026, 3, 15, 12, tzinfo=UTC)
LISTS = {"openai-gptbot": ["20.42.10.0/24", "2603:1030::/48"], "perplexity-user": ["20.42.20.0/24"]}
PROXIES = [ip_network("5.6.7.0/24")]
ROAMING = (
    "Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko; compatible; Perplexity-User/1.0; "
    "+https://perplexity.ai/perplexity-user)"
)
"""The user agent of an agent that its IP list can verify, but that may also come from other addresses."""


def fetch_lists(lake: Lake, at: datetime = FETCHED) -> None:
    """Put LISTS into a lake, like `traffic agents refresh`."""
    rows = [
        IpList(name, "-", "https://list.example/", "json:here", evidence="https://docs.example/", checked=at.date())
        for name in LISTS
    ]
    outcomes = refresh(lake, rows, lambda row: json.dumps({"here": LISTS[row.name]}).encode(), at)
    assert [outcome.error for outcome in outcomes] == [""] * len(LISTS)


def country_database(path: Path, records: Mapping[str, Any], ip_version: int = 6) -> CountryDatabase:
    """Write a country database from records by their networks (separated by spaces), and open it."""
    writer = MMDBWriter(ip_version, "Country", ["en"], "CountryDatabase", ipv4_compatible=ip_version == 6)
    for networks, record in records.items():
        writer.insert_network(IPSet(networks.split()), record)
    writer.to_db_file(str(path))
    return CountryDatabase(path)
