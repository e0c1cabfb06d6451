"""At most 60 requests in any 60 seconds for each source address: what is counted, and what a source is told.

It is asked in middleware.py, before authentication and before routing.
"""

import ipaddress
import math
import socket
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Final, NamedTuple

from starlette.types import Scope

from service.http.errors import RateLimited
from service.settings import Network

LIMIT: Final = 60
WINDOW_SECONDS: Final = 60.0
MAX_SOURCES: Final = 65_536
"""Past it the source that was silent longest is forgotten: memory is bounded whoever asks."""
RATE_LIMIT_HEADERS: Final = (b"x-ratelimit-limit", b"x-ratelimit-remaining", b"x-ratelimit-reset", b"retry-after")
_IPV4_MAPPED_PREFIX: Final = bytes(10) + b"\xff\xff"
"""What an IPv4 address within IPv6 begins with (RFC 4291, 2.5.5.2)."""


class RateLimitDecision(NamedTuple):
    """What the limiter says of one request."""

    accepted: bool
    remaining: int
    wait_seconds: float  # until the oldest counted request leaves the window


class SlidingLog:
    """The times of the accepted requests of every source: exact, where counters and buckets only come near."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._times: OrderedDict[str, list[float]] = OrderedDict()

    def __len__(self) -> int:
        """How many sources are remembered."""
        return len(self._times)

    def hit(self, source: str) -> RateLimitDecision:
        """Count a request unless its source has used up its window. A refused request is not counted."""
        now = self._clock()
        times = self._times.get(source)
        if times is None:
            if len(self._times) >= MAX_SOURCES:
                self._times.popitem(last=False)
            times = self._times[source] = []  # a tenth of a deque: most sources come once
        else:
            self._times.move_to_end(source)
        while times and now - times[0] >= WINDOW_SECONDS:
            del times[0]
        accepted = len(times) < LIMIT
        if accepted:
            times.append(now)
        return RateLimitDecision(accepted, LIMIT - len(times), times[0] + WINDOW_SECONDS - now)


class RateLimiter:
    """Counts every request for its source, and says what the source is told."""

    def __init__(
        self,
        trusted_proxies: Iterable[Network] = (),
        log: SlidingLog | None = None,
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        self.sources = SourceResolver(trusted_proxies)
        self._log = SlidingLog() if log is None else log
        self._wall_clock = wall_clock

    def check(self, scope: Scope) -> RateLimitDecision:
        """Count one request, known by its `client` and `headers`."""
        return self._log.hit(self.sources.of(scope))

    def refusal(self, decision: RateLimitDecision) -> RateLimited:
        """What a source is told that sent too much."""
        return RateLimited(LIMIT, _milliseconds(decision))

    def headers(self, decision: RateLimitDecision) -> list[tuple[bytes, bytes]]:
        """The four headers of a response. Reset is Unix time in seconds, Retry-After seconds to wait."""
        reset = math.ceil(self._wall_clock() + decision.wait_seconds)
        wait = 0 if decision.remaining else math.ceil(_milliseconds(decision) / 1000)
        values = (LIMIT, decision.remaining, reset, wait)
        return [(name, b"%d" % value) for name, value in zip(RATE_LIMIT_HEADERS, values, strict=True)]

    def __len__(self) -> int:
        """How many sources are remembered."""
        return len(self._log)


def _milliseconds(decision: RateLimitDecision) -> int:
    return max(1, math.ceil(decision.wait_seconds * 1000))


_Hop = tuple[str, bool]
"""What an address counts as, and whether it is a trusted proxy's."""


class SourceResolver:
    """Tells the source that a request counts for: an IPv4 address or the /64 of an IPv6 address."""

    def __init__(self, trusted_proxies: Iterable[Network] = ()) -> None:
        self._trusted = [(net.version, int(net.netmask), int(net.network_address)) for net in trusted_proxies]
        self._resolve_hop = lru_cache(4_096)(self._resolve_hop_uncached)

    def of(self, scope: Scope) -> str:
        """The source of a request.

        X-Forwarded-For is believed only from a trusted peer, and read from the right as far as trust reaches.
        """
        peer = scope["client"][0] if scope.get("client") else ""
        source, is_trusted = self._resolve_hop(peer) or (peer, False)
        if not is_trusted:
            return source
        lines = [value.decode("latin-1") for name, value in scope["headers"] if name == b"x-forwarded-for"]
        for written in reversed(",".join(lines).split(",")):
            hop = self._resolve_hop(_without_port(written.strip()))
            if hop is None:
                break
            source, is_trusted = hop
            if not is_trusted:
                break
        return source

    def is_trusted(self, peer: str) -> bool:
        """Whether an address is a trusted proxy's."""
        hop = self._resolve_hop(peer)
        return hop is not None and hop[1]

    def _resolve_hop_uncached(self, text: str) -> _Hop | None:
        """What an address counts as; None for what is no address."""
        try:
            packed = socket.inet_pton(socket.AF_INET6 if ":" in text else socket.AF_INET, text.partition("%")[0])
        except (OSError, ValueError):
            return None
        if packed[:12] == _IPV4_MAPPED_PREFIX:
            packed = packed[12:]
        version, number = 4 if len(packed) == 4 else 6, int.from_bytes(packed)
        is_trusted = False
        for one, mask, network in self._trusted:
            is_trusted = is_trusted or (version == one and number & mask == network)
        if version == 4:
            return (socket.inet_ntop(socket.AF_INET, packed) if ":" in text else text), is_trusted
        return str(ipaddress.ip_network((number >> 64 << 64, 64))), is_trusted


def _without_port(hop: str) -> str:
    """`1.2.3.4:5` and `[::1]:5` as some proxies write them, without port and brackets."""
    if hop.startswith("["):
        return hop[1:].partition("]")[0]
    return hop.partition(":")[0] if hop.count(":") == 1 else hop
