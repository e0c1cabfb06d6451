"""Refreshes the networks in data/rules/hosting.toml; its rows are chosen by hand.

    uv run python -m tests.support.hosting LISTS ASN

LISTS is a folder with ipv4.txt and ipv6.txt from github.com/X4BNet/lists_vpn (output/datacenter). ASN is a folder with
asn-ipv4.csv and asn-ipv6.csv from the npm package @ip-location-db/asn, which says which system announces a network.
"""

import csv
import sys
import textwrap
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator
from datetime import UTC, datetime
from ipaddress import IPv4Network, IPv6Network, collapse_addresses, ip_address, ip_network
from pathlib import Path

from iporigin._data import dataset

from data.rules.tables import Hosting, load

FILE = Path(__file__).parents[2] / "data/rules/hosting.toml"


def announced(path: Path) -> tuple[list[int], list[tuple[int, int]]]:
    """Return the first addresses of announced ranges in order, and each range's last address and system."""
    with path.open(encoding="utf-8") as file:
        rows = sorted(
            (int(ip_address(first)), int(ip_address(last)), int(system)) for first, last, system, _ in csv.reader(file)
        )
    return [first for first, _, _ in rows], [(last, system) for _, last, system in rows]


def networks_of(lists: Path, systems: Path, version: int) -> Iterator[tuple[int, IPv4Network | IPv6Network]]:
    """Yield the networks of hosting providers that iporigin lacks, each with the system that announces it."""
    firsts, ranges = announced(systems / f"asn-ipv{version}.csv")
    for line in (lists / f"ipv{version}.txt").read_text().split():
        network = ip_network(line)
        first, last = int(network[0]), int(network[-1])
        position = bisect_right(firsts, first) - 1
        is_known = dataset().find(first, version) and dataset().find(last, version)
        if position >= 0 and ranges[position][0] >= first and not is_known:
            yield ranges[position][1], network


def main() -> None:
    """Rewrite the file with its rows and their current networks."""
    lists, systems = map(Path, sys.argv[1:])
    found = defaultdict(list)
    for version in (4, 6):
        for system, network in networks_of(lists, systems, version):
            found[system, version].append(network)
    head = FILE.read_text().partition("[[hosting]]")[0]
    today = datetime.now(UTC).date()
    rows = []
    for row in load(Hosting, "hosting"):
        texts = [str(one) for version in (4, 6) for one in collapse_addresses(found[row.system, version])]
        if not texts:
            print(f"{row.name} ({row.system}) announces no listed network; remove its row.", file=sys.stderr)
        listed = textwrap.fill(
            ", ".join(f'"{text}"' for text in texts), 116, initial_indent="  ", subsequent_indent="  "
        )
        rows.append(
            f'[[hosting]]\nsystem = {row.system}\nname = "{row.name}"\nevidence = "{row.evidence}"\n'
            f"checked = {today}\nnetworks = [\n{listed}\n]\n"
        )
    FILE.write_text(head + "\n".join(rows))


if __name__ == "__main__":
    main()
