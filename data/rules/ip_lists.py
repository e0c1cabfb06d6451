"""Parses the lists of IP networks that operators publish for their agents.

The lists are stored by data/store/ip_list_files.py and used by ip_verification.py.
"""

import ipaddress
import json
import re
from bisect import bisect_right
from collections.abc import Callable, Iterable
from datetime import datetime
from pathlib import Path
from typing import Any, Final, NamedTuple

from data.errors import BadInput
from data.hosts import normalized_address
from data.rules.tables import IpList

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network

MAX_LIST_BYTES: Final = 4 << 20
MAX_NETWORKS: Final = 100_000
_MIN_PREFIX_LENGTHS: Final = {4: 8, 6: 19}
"""The minimum prefix length for each IP version. A list with a larger network would verify almost any address."""
_NETWORK_IN_TEXT: Final = re.compile(
    r"(?<![\w.:/-])(?:\d{1,3}(?:\.\d{1,3}){3}(?:/\d{1,2})?|[0-9a-f:]*::?[0-9a-f:]*/\d{1,3})(?![\w/-]|\.\w)",
    re.IGNORECASE,
)


class Networks:
    """A set of networks with a fast test for addresses (binary search over merged ranges)."""

    def __init__(self, networks: Iterable[Network]) -> None:
        ranges = sorted(
            (net.version, start := int(net.network_address), start + (1 << net.max_prefixlen - net.prefixlen) - 1)
            for net in networks  # seven times as fast as broadcast_address
        )
        self._starts: list[tuple[int, int]] = []
        self._ends: list[int] = []
        for version, start, end in ranges:
            if self._starts and self._starts[-1][0] == version and start <= self._ends[-1] + 1:
                self._ends[-1] = max(end, self._ends[-1])
            else:
                self._starts.append((version, start))
                self._ends.append(end)

    def __contains__(self, address: Address) -> bool:
        return self.has(address.version, int(address))

    def has(self, version: int, value: int) -> bool:
        """Return whether the set contains an address, given by its IP version and its value as an integer."""
        index = bisect_right(self._starts, (version, value)) - 1
        return index >= 0 and self._starts[index][0] == version and value <= self._ends[index]


class FetchedList(NamedTuple):
    """The networks that a list contained when it was fetched."""

    name: str
    fetched_at: datetime
    networks: list[Network]


def parse_address(text: str) -> Address | None:
    """Parse an IP address in any spelling that `normalized_address` accepts; return None if it is invalid."""
    try:
        return ipaddress.ip_address(normalized_address(text))
    except ValueError:
        return None


def parse_networks(body: bytes, form: str) -> list[Network]:
    """Parse a published list. Raises BadInput if it is malformed, empty or too large, or has a network that is
    too large or (except in "text", where such a network is ignored) not public.

    Formats: "prefixes", JSON as published by Google and most others; "json:<key>", a JSON array of strings under a key;
    "geofeed", RFC 8805; "text", any text that contains networks.
    """
    if len(body) > MAX_LIST_BYTES:
        raise BadInput(f"the list is larger than {MAX_LIST_BYTES >> 20} MiB")
    try:
        entries = _entries(body.decode("utf-8-sig"), form)
        networks = list[Network]()
        for entry in dict.fromkeys(entries):
            if not isinstance(entry, str):
                raise TypeError(f"{entry!r} is not a network")
            networks.append(ipaddress.ip_network(entry, strict=False))
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
        raise BadInput(f"the list is not in the {form!r} format: {str(error)[:200]}") from error
    if form == "text":  # the text may mention private networks as examples
        networks = [network for network in networks if network.is_global]
    if not 0 < len(networks) <= MAX_NETWORKS:
        raise BadInput(f"the list contains {len(networks):,} networks; it must contain 1 to {MAX_NETWORKS:,}")
    for network in networks:
        if network.prefixlen < _MIN_PREFIX_LENGTHS[network.version] or not network.is_global:
            raise BadInput(f"the list contains {network}, which is too large or not public")
    return networks


def folder_fetcher(folder: Path) -> Callable[[IpList], bytes]:
    """Return a function that reads a list from `<folder>/<name of the list>.*`, for hosts without internet access."""

    def read(row: IpList) -> bytes:
        try:
            return next(iter(sorted(folder.glob(f"{row.name}.*")))).read_bytes()
        except StopIteration:
            raise BadInput(f"{folder} has no file {row.name}.*") from None
        except OSError as error:
            raise BadInput(f"{error.filename} cannot be read: {error.strerror}") from error

    return read


def _entries(text: str, form: str) -> list[Any]:
    if form == "prefixes":
        return [network for entry in json.loads(text)["prefixes"] for network in _prefixes_of(entry)]
    if form.startswith("json:"):
        entries = json.loads(text)[form.removeprefix("json:")]
        if not isinstance(entries, list):
            raise TypeError("not a list")
        return entries
    if form == "geofeed":
        lines = (line.partition("#")[0].strip() for line in text.splitlines())
        return [line.partition(",")[0].strip() for line in lines if line]
    return _NETWORK_IN_TEXT.findall(text)


def _prefixes_of(entry: dict[str, str]) -> list[str]:
    networks = [entry[key] for key in ("ipv4Prefix", "ipv6Prefix") if entry.get(key)]
    if not networks:
        raise LookupError(f"no prefix in {entry}")
    return networks
