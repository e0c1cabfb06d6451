"""Determines the address, scheme and protocol of each client in logs of servers behind proxies."""

import re
from collections import Counter
from collections.abc import Iterable
from functools import lru_cache
from ipaddress import ip_network
from itertools import filterfalse, takewhile
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from data.hosts import normalized_address
from data.ingest.dictionary import composite_key, dictionary_encoded
from data.rules.ip_lists import Network, Networks, parse_address
from data.rules.ip_verification import known_proxies

LOCAL: Final = tuple(
    map(
        ip_network,
        (
            "127.0.0.0/8", "::1/128",  # loopback: RFC 1122 §3.2.1.3, RFC 4291 §2.5.3
            "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7",  # private: RFC 1918 §3, RFC 4193 §3
            "169.254.0.0/16", "fe80::/10",  # link-local: RFC 3927 §2.1, RFC 4291 §2.5.6
            "100.64.0.0/10",  # carrier-grade NAT, also used inside clouds: RFC 6598 §7
        ),
    )
)  # fmt: skip
"""Networks that are not routed on the internet. By default, connections from them are assumed to come from a proxy."""

_LOCAL: Final = Networks(LOCAL)
_OTHER_STARTS: Final = "0|:|[0-9a-f]{1,3}:|unix:"
"""Prefixes of local sockets, and of IPv6 addresses that start with a group of fewer than four digits."""
_NO_TEXT: Final = pa.scalar("", pa.string())
_FORWARDED_FOR: Final = re.compile(r'(?i)(?:^|[;,\s])for="?([^;,"]*)')
_FORWARDED_PROTO: Final = re.compile(r'(?i)(?:^|[;,\s])proto="?([a-z]+)')


class ClientAddresses:
    """Distinguishes clients from proxies, which are listed in proxies.toml and in `proxies` (by default, LOCAL)."""

    def __init__(self, proxies: Iterable[Network] = ()) -> None:
        networks = [*known_proxies(), *(tuple(proxies) or LOCAL)]
        self._proxies = Networks(networks)
        self._may_be_proxy = f"(?i)^(?:{'|'.join(sorted(set(map(_start_of, networks))))}|{_OTHER_STARTS})"
        self.client = lru_cache(1 << 14)(self._client_uncached)

    def resolve(self, requests: pa.Table) -> pa.Table:
        """Return a log's parsed requests with the client's address in `ip`, without `forwarded` and `forwarded_proto`.

        If the log has `forwarded_proto`, as a server's log does, `scheme` and `protocol` are changed to describe the
        client's connection: behind a proxy, `scheme` is what the proxy reports, and `protocol` is empty.
        """
        requests = self._of_own_connection(requests)
        peers, forwarded = requests["ip"], requests["forwarded"]
        requests = requests.drop_columns("forwarded")
        is_chain = pc.or_(pc.not_equal(forwarded, _NO_TEXT), pc.match_substring(peers, ","))
        if not pc.any(is_chain).as_py():
            return requests
        columns = dictionary_encoded(peers), dictionary_encoded(forwarded)
        pairs = composite_key(*(column.indices for column in columns))
        parts = (column.dictionary.take(part).to_pylist() for column, part in zip(columns, pairs.parts, strict=True))
        clients = pa.array(map(self.client, *parts), pa.string())
        return requests.set_column(requests.schema.get_field_index("ip"), "ip", clients.take(pairs.indices))

    def _of_own_connection(self, requests: pa.Table) -> pa.Table:
        """Return the requests with the scheme and protocol of the client's connection, not the nearest proxy's."""
        if "forwarded_proto" not in requests.schema.names:
            return requests
        columns = [dictionary_encoded(pc.fill_null(requests[name], _NO_TEXT)) for name in ("ip", "forwarded")]
        pairs = composite_key(*(column.indices for column in columns))
        peers, chains = (column.dictionary.take(part) for column, part in zip(columns, pairs.parts, strict=True))
        is_chain = pc.or_(pc.not_equal(chains, _NO_TEXT), pc.match_substring(peers, ","))
        may_be = pc.or_(is_chain, pc.match_substring_regex(peers, self._may_be_proxy))
        found = [*map(self._is_behind_proxy, *(texts.filter(may_be).to_pylist() for texts in (peers, chains)))]
        scheme, reported = requests["scheme"], requests["forwarded_proto"]
        requests = requests.drop_columns(["scheme", "forwarded_proto"])
        if any(found):
            is_behind = pc.replace_with_mask(pa.repeat(False, len(may_be)), may_be, pa.array(found, pa.bool_()))
            in_chain = pa.array(map(self._scheme_in, chains.to_pylist()), pa.string()).take(pairs.indices)
            is_behind = is_behind.take(pairs.indices)
            scheme = pc.if_else(is_behind, pc.coalesce(reported, in_chain), scheme)
            protocol = pc.if_else(is_behind, _NO_TEXT, requests["protocol"])
            requests = requests.set_column(requests.schema.get_field_index("protocol"), "protocol", protocol)
        return requests if scheme.null_count == len(scheme) else requests.append_column("scheme", scheme)

    def _scheme_in(self, chain: str) -> str | None:
        """Return the scheme of the client's connection to the first proxy according to `Forwarded`; None if unknown."""
        for hop in reversed(chain.split(",")) if "=" in chain else ():
            address, scheme = _FORWARDED_FOR.search(hop), _FORWARDED_PROTO.search(hop)
            if address is None or not self._is_proxy(address[1].strip()):  # everything further left may be forged
                return scheme[1].lower() if scheme else None
        return None

    def _is_behind_proxy(self, peer: str, forwarded: str) -> bool:
        """Return whether the scheme and protocol in the log describe a proxy's connection.

        True if the peer is a proxy or a local socket, or if the server logged an address from the chain instead of the
        peer's. Without a chain, a loopback address counts as a client's, as in local tests.
        """
        if "," in peer:
            return self._is_proxy(peer.rpartition(",")[2].strip())
        if not forwarded:
            return peer.startswith("unix:") or (self._is_proxy(peer) and not peer.startswith(("127.", "::1")))
        return parse_address(peer) is None or self._is_proxy(peer) or peer in _hops(forwarded)

    def _client_uncached(self, peer: str, forwarded: str) -> str:
        """Return the normalized address of the client; "" if the log has none.

        `peer` is the address that connected, the whole chain, or "" if the log has neither. `forwarded` is the chain
        that came with the request: `X-Forwarded-For`, or `Forwarded` (RFC 7239). Each proxy appends, on the right,
        the address that connected to it. So everything to the left of the rightmost address that is not a proxy's was
        sent by that client, and may be forged.
        """
        near, far = _hops(peer), _hops(forwarded)
        hops = [*takewhile(parse_address, [*reversed(near), *reversed(far)])]  # ends at an invalid entry
        clients = [*filterfalse(self._is_proxy, hops)]
        if not clients:  # use the address reported by the nearest proxy: a client in its network, or another proxy
            clients = (hops[1:] if len(near) == 1 else hops) or near
        return normalized_address(clients[0]) if clients else ""

    def _is_proxy(self, text: str) -> bool:
        address = parse_address(text)
        return address is not None and address in self._proxies


def most_common_local(addresses: pa.ChunkedArray) -> Counter[str]:
    """Count the rows with the most frequent address in a column; count none if that address is not in LOCAL."""
    texts, counts = pc.value_counts(addresses).flatten()
    if not len(texts):
        return Counter()
    most = pc.max(counts).as_py()
    text = texts[pc.index(counts, most).as_py()].as_py()
    address = parse_address(text)
    return Counter({text: most}) if address is not None and address in _LOCAL else Counter()


def _start_of(network: Network) -> str:
    """Return a pattern for the start of a network's addresses. Only addresses that match such a pattern or
    _OTHER_STARTS need to be parsed.
    """
    if network.version == 6:
        return f"{int(network.network_address) >> 112:04x}"[: network.prefixlen // 4]
    return r"\.".join([*str(network).split(".")[: min(network.prefixlen // 8, 3)], ""])


def _hops(text: str) -> list[str]:
    """Return the addresses in a chain, from left to right."""
    if text in ("", "-") or text.startswith("unix:"):
        return []
    if found := _FORWARDED_FOR.findall(text):
        return [hop.strip() for hop in found]
    return [hop.strip() for hop in text.split(",")]
