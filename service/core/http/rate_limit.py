"""The rate limit: at most 60 requests in any 60 seconds for each source address."""

import ipaddress
import math
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Final, NamedTuple

from starlette.types import Scope

from data.rules.ip_lists import parse_address
from service.core.http.errors import RateLimited
from service.core.setting_values import Network

LIMIT: Final = 60
WINDOW_SECONDS: Final = 60.0
MAX_SOURCES: Final = 65_536
"""Maximum number of tracked sources. Beyond it, the least recently seen source is dropped, to bound memory."""
RATE_LIMIT_HEADERS: Final = (b"x-ratelimit-limit", b"x-ratelimit-remaining", b"x-ratelimit-reset", b"retry-after")


class RateLimitDecision(NamedTuple):
    """The decision on one request, and the state of its source afterwards."""

    accepted: bool
    remaining: int
    wait_seconds: float  # until the oldest counted request leaves the window


class RateLimiter:
    """Limits requests by source, and makes the rate limit headers and the error for responses.

    The algorithm is a "sliding log": the times of accepted requests are stored, so the limit is exact.
    """

    def __init__(
        self,
        trusted_proxies: Iterable[Network] = (),
        clock: Callable[[], float] = time.monotonic,
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        self.sources = SourceResolver(trusted_proxies)
        self._clock = clock
        self._wall_clock = wall_clock
        self._times: OrderedDict[str, list[float]] = OrderedDict()

    def __len__(self) -> int:
        """Return the number of tracked sources."""
        return len(self._times)

    def check(self, scope: Scope) -> RateLimitDecision:
        """Decide on one request, as `hit` does. Reads only `client` and `headers` of the ASGI scope."""
        return self.hit(self.sources.of(scope))

    def hit(self, source: str) -> RateLimitDecision:
        """Accept and count a request unless its source has reached the limit. A rejected request is not counted."""
        now = self._clock()
        times = self._times.get(source)
        if times is None:
            while self._times and now - next(iter(self._times.values()))[-1] >= WINDOW_SECONDS:
                self._times.popitem(last=False)  # least recently seen, without counted requests
            if len(self._times) >= MAX_SOURCES:
                self._times.popitem(last=False)
            times = self._times[source] = []  # a list, because it needs a tenth of the memory of a deque
        else:
            self._times.move_to_end(source)
        while times and now - times[0] >= WINDOW_SECONDS:
            del times[0]
        accepted = len(times) < LIMIT
        if accepted:
            times.append(now)
        return RateLimitDecision(accepted, LIMIT - len(times), times[0] + WINDOW_SECONDS - now)

    def refusal(self, decision: RateLimitDecision) -> RateLimited:
        """Return the error for a request that was not accepted."""
        wait = _milliseconds(decision)
        rule = f"at most {LIMIT} requests per minute are allowed from each source address."
        message = f"Wait {math.ceil(wait / 1000)} s: {rule}"
        return RateLimited(message=message, retryAfter=wait, limit=LIMIT, remaining=0)

    def headers(self, decision: RateLimitDecision) -> list[tuple[bytes, bytes]]:
        """Return the four rate limit headers of a response. Reset is Unix time in seconds, Retry-After the seconds to
        wait.
        """
        reset = math.ceil(self._wall_clock() + decision.wait_seconds)
        wait = 0 if decision.remaining else math.ceil(_milliseconds(decision) / 1000)
        values = (LIMIT, decision.remaining, reset, wait)
        return [(name, b"%d" % value) for name, value in zip(RATE_LIMIT_HEADERS, values, strict=True)]


def _milliseconds(decision: RateLimitDecision) -> int:
    return max(1, math.ceil(decision.wait_seconds * 1000))


class SourceResolver:
    """A resolver of requests' source addresses: an IPv4 address, or the /64 network of an IPv6 address."""

    def __init__(self, trusted_proxies: Iterable[Network] = ()) -> None:
        self._trusted = tuple(trusted_proxies)
        self._resolve_hop = lru_cache(4_096)(self._resolve_hop_uncached)

    def of(self, scope: Scope) -> str:
        """Return the source of a request; behind trusted proxies, the last address in X-Forwarded-For that is not a
        trusted proxy.
        """
        peer = scope["client"][0] if scope.get("client") else ""
        source, is_trusted = self._resolve_hop(peer) or (peer, False)
        if not is_trusted:
            return source
        lines = [value.decode("latin-1") for name, value in scope["headers"] if name == b"x-forwarded-for"]
        for written in reversed(",".join(lines).split(",")):
            hop = self._resolve_hop(written.strip())  # some proxies add a port
            if hop is None:
                break
            source, is_trusted = hop
            if not is_trusted:
                break
        return source

    def is_trusted(self, peer: str) -> bool:
        """Return whether an address belongs to a trusted proxy."""
        hop = self._resolve_hop(peer)
        return hop is not None and hop[1]

    def _resolve_hop_uncached(self, text: str) -> tuple[str, bool] | None:
        """Return the source of an address, and whether it is a trusted proxy; None if `text` is not an IP address."""
        address = parse_address(text)
        if address is None:
            return None
        is_trusted = any(address in network for network in self._trusted)
        if address.version == 4:
            return str(address), is_trusted
        return str(ipaddress.ip_network((int(address) >> 64 << 64, 64))), is_trusted
